package draft

import (
	"fmt"
	"strings"
	"testing"
)

// TestGroupsOfNumberedColumns: a group has a name that says what it is of, where columns are named by numbers, and two
// groups whose names begin alike have two names.
func TestGroupsOfNumberedColumns(t *testing.T) {
	one := func(n, at int) string {
		cells := strings.Split(strings.Repeat("0", n), "")
		cells[at] = "1"
		return strings.Join(cells, ",")
	}
	rows := func(begin string) string {
		return lines(begin, 400, func(i int) string {
			return fmt.Sprintf("%s,%s,%s,%d", wave(i), one(4, i*7919%13%4), one(3, i*31%17%3), i*13%11%2)
		})
	}
	for begin, want := range map[string][2]string{
		wave(7) + ",0,1,0,0,1,0,0,1":                    {"c2..c5", "c6..c8"},
		"h,soil1,soil2,soil3,soil4,wood1,wood2,wood3,y": {"soil", "wood"},
		"h,is_a,is_b,is_c,is_d,is_x,is_y,is_z,y":        {"is_a..is_d", "is_x..is_z"},
		"h,c11,c12,c13,c14,c1,k2,k3,y":                  {"c11..c14", "c1..k3"},
	} {
		_, file, valid, n := draft(t, write(t, "groups.csv", rows(begin)), Options{})
		for _, name := range want {
			if !strings.Contains(file, "{column: "+text(name)+", kind: onehot-group") {
				t.Errorf("no group %s in\n%s", name, file)
			}
		}
		if valid != n {
			t.Errorf("%d of %d rows are valid", valid, n)
		}
	}
}

// TestIdentifiersAreNoLabels: what only says which row it is cannot be predicted.
func TestIdentifiersAreNoLabels(t *testing.T) {
	path := write(t, "ids.csv", lines("height,row,user_id,age", 300, func(i int) string {
		return fmt.Sprintf("%s,%d,%d,%d", wave(i), i+1, i*7919%100003, i*13%77)
	}))
	for label, why := range map[string]string{"row": "a running number", "user_id": "an identifier"} {
		if _, err := FromSample(path, Options{Label: label}); err == nil || !strings.Contains(err.Error(), why) ||
			!strings.Contains(err.Error(), "another --label") {
			t.Errorf("%s: %v", label, err)
		}
	}
	if _, err := FromSample(path, Options{Label: "age"}); err != nil {
		t.Error(err)
	}
}

// TestNamesThatYAMLTakesForSomethingElse: a file may be called null, as any other, and so may the task.
func TestNamesThatYAMLTakesForSomethingElse(t *testing.T) {
	path := write(t, "rows.csv", crooked(120, "two"))
	for _, name := range []string{"null", "true", "0x1f", "2024-01-01", "1e3"} {
		d, err := FromSample(path, Options{Name: name + ".yaml"})
		if err != nil || d.Spec.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNumbersThatAreLeftOut: a column of numbers with infinite ones, or ones too large, is not called an identifier.
func TestNumbersThatAreLeftOut(t *testing.T) {
	for name, odd := range map[string]func(i int) string{
		"infinite": func(i int) string { return [...]string{wave(i), wave(i), wave(i), "-inf", "inf"}[i%10/2] },
		"large":    func(i int) string { return wave(i) + "7e200" },
	} {
		d, err := FromSample(write(t, "rows.csv", lines("height,odd,y", 300, func(i int) string {
			return fmt.Sprintf("%s,%s,%d", wave(i), odd(i), i*13%11%2)
		})), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if text := string(d.Task); !strings.Contains(text, "Left out: odd, most values are numbers, but ") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
