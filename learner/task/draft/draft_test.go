package draft

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// write makes a file of a sample.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// draft drafts a task and maps the sample by it: what is drafted has to fit where it came from.
func draft(t *testing.T, path string, o Options) (spec *task.Spec, file string, valid, rows int) {
	t.Helper()
	d, err := FromSample(path, o)
	if err != nil {
		t.Fatal(err)
	}
	if spec, err = task.Parse(d.Task, nil); err != nil {
		t.Fatal(err)
	}
	m, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	r, err := source.OpenFitting(path, m)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var x convex.Example
	for row, err := range r.All() {
		if rows++; err == nil && m.Map(row, &x) == nil {
			valid++
		}
	}
	return spec, string(d.Task), valid, rows
}

// lines makes lines of a header and n rows.
func lines(header string, n int, row func(i int) string) string {
	var b strings.Builder
	b.WriteString(header + "\n")
	for i := range n {
		b.WriteString(row(i) + "\n")
	}
	return b.String()
}

// wave returns a number without a pattern that a rule looks for.
func wave(i int) string { return fmt.Sprintf("%.2f", 10*float64(i*7919%1009)/1009) }

func TestWhatColumnsBecome(t *testing.T) {
	data := lines(
		"no,when,height,colour,floor,flag,same,gone,hollow,notes,mixed,street,kind_a,kind_b,kind_c,copy,one,two,y", 3000,
		func(i int) string {
			kind := [...]string{"1,0,0", "0,1,0", "0,0,1"}[i*i%7%3]
			one, two := i*31%17, i*17%23
			hollow := wave(i)
			if i%4 == 0 {
				hollow = [...]string{"?", "NA", ""}[i/4%3]
			}
			return fmt.Sprintf(`%d,2024-01-%02d,%s,%s,%d,%d,x,,%s,"a long story, number %d",%s,%s,%s,%d,%d,%d,%d`, i+1, i%28+1,
				wave(i),
				[...]string{"red", "green", "red", "blue; dark"}[i%4], i%5, i*13%11%2, hollow, i, [...]string{"3.5", "3.5 kg"}[i%2]+
					strings.Repeat(" ", i%2), fmt.Sprintf("w%d", i*i%997), kind, one+two, one, two, one+two)
		})
	_, file, valid, rows := draft(t, write(t, "Things of 2024.csv", data), Options{})
	for _, want := range []string{
		"name: things-of-2024\n",
		`# Left out: "no", a running number.`,
		"# when: parts of a date that come again; its zone is passed over.",
		`{column: "weekday of when", field: when, part: weekday, kind: bucketed, edges: [2, 3, 4, 5, 6, 7]}`,
		"{column: height, kind: numeric, min: 0, max: 10, scale: unit}",
		`{column: colour, kind: categorical, vocabulary: [red, "blue; dark", green], unknown: drop}`,
		`{column: floor, kind: categorical, vocabulary: ["0", "1", "2", "3", "4"], unknown: drop}`,
		"{column: flag, kind: indicator}",
		"# Left out: same, all rows have the same value.",
		"# Left out: gone, no row has a value.",
		`{column: hollow, kind: numeric, min: 0, max: 10, scale: unit, missing: {tokens: ["?", NA], fill: `,
		"# Left out: notes, free text; {column: notes, kind: text, buckets: 256} would take its words.",
		`{column: mixed, kind: categorical, vocabulary: ["3.5", "3.5 kg"], unknown: drop}`,
		"# Left out: street, 499 words, of which 50 cover too few rows; {column: street, kind: hashed",
		"{column: kind, kind: onehot-group, columns: [kind_a, kind_b, kind_c]}",
		"# Left out: copy, it says in other words what the label says",
		"# Left out: one, with two it adds up to the label y.",
		"# Left out: two, with one it adds up to the label y.",
		"# They look like counts: loss: poisson",
		`label: {column: "y", min: 0, max: 38}`,
		"model: {loss: squared",
		"schedule: {users: 3000}",
		"delta: 1e-5",
	} {
		if !strings.Contains(file, want) {
			t.Errorf("no %q", want)
		}
	}
	if valid != rows || rows != 3000 {
		t.Errorf("%d of %d rows are valid", valid, rows)
	}
	if t.Failed() {
		t.Log(file)
	}
}
