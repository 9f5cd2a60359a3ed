package draft

import (
	"fmt"
	"strings"
	"testing"
)

// TestNumbersWithMarks: numbers with a currency, thousands or per cents are numbers, and the task file says so that
// devices read them alike; a decimal comma is refused as before.
func TestNumbersWithMarks(t *testing.T) {
	data := lines("price,share,debt,inf,paid", 500, func(i int) string {
		return fmt.Sprintf(`$%d.50,%d%%,"%s%d,%03d",%s,€ %s`, i*7919%100, i*31%101, []string{"", "-"}[i%2], i%90+1, i*17%1000,
			wave(i), wave(i*3))
	})
	_, file, valid, rows := draft(t, write(t, "prices.csv", data), Options{Label: "paid"})
	for _, want := range []string{
		`{column: price, kind: numeric, min: 0, max: 100, scale: unit, marks: ["$"]}`,
		`{column: share, kind: numeric, min: 0, max: 100, scale: unit, marks: ["%"]}`,
		`marks: [","]}`, "debt: a comma was taken for that of thousands.", `{column: "inf", kind: numeric`,
		`label: {column: paid, min: 0, max: 10, marks: ["€"]}`,
	} {
		if !strings.Contains(file, want) {
			t.Errorf("no %q in\n%s", want, file)
		}
	}
	if valid != rows || rows != 500 {
		t.Errorf("%d of %d rows are valid", valid, rows)
	}
	for cell, want := range map[string]float64{"$12.00": 12, "1,234.56": 1234.56, "-$1,000": -1000, "45 %": 45,
		"£-3": -3} {
		if x, _, ok := marked(cell); !ok || x != want {
			t.Errorf("%q is read as %v, %v", cell, x, ok)
		}
	}
	for _, cell := range []string{"1,5", "0,123", "12,34", "$", "%", "1.234,56", "--3", "$1$", ""} {
		if x, _, ok := marked(cell); ok {
			t.Errorf("%q is read as %v", cell, x)
		}
	}
}
