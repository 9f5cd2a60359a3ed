package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestPaperColumns, by hand: words are numbered by the alphabet, the last column is one, and a silo's numbers are less
// the mean of its rows to train on, over their standard deviation, or of all silos' where they are pooled.
func TestPaperColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte("age,place,charges\n20,west,5\n40,east,6\n30,north,7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := paperColumns{label: "charges", standard: []string{"age"}}
	rows, labels, err := p.read(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{20, 2, 1}, {40, 0, 1}, {30, 1, 1}} {
		if !slices.Equal(rows[i].Value, want) || rows[i].Label != float64(5+i) || labels[i] != string(rune('5'+i)) {
			t.Errorf("row %d: %v %v %q", i, rows[i].Value, rows[i].Label, labels[i])
		}
	}
	at, err := p.places(path)
	if err != nil || !slices.Equal(at, []int{0}) {
		t.Fatalf("%v, %v", at, err)
	}
	one := func(v float64) convex.Example { return convex.Example{Value: []float64{v, 1}} }
	train, test := [][]convex.Example{{one(1), one(3)}, {one(7), one(9)}}, [][]convex.Example{{one(2)}, {one(10)}}
	root := math.Sqrt2 // the standard deviation of 1 and 3, and of 7 and 9
	check := func(what string, got [][]convex.Example, want ...float64) {
		t.Helper()
		for i, x := range slices.Concat(got...) {
			if math.Abs(x.Value[0]-want[i]) > 1e-12 || x.Value[1] != 1 {
				t.Errorf("%s, row %d: %v, want %v", what, i, x.Value, want[i])
			}
		}
	}
	of, other := p.standardise(at, train, test)
	check("to train on", of, -1/root, 1/root, -1/root, 1/root)
	check("to test on", other, 0, 2/root)
	p.pooled = true
	sd := math.Sqrt((16 + 4 + 4 + 16) / 3.) // of 1, 3, 7, 9 around 5
	of, other = p.standardise(at, train, test)
	check("to train on, pooled", of, -4/sd, -2/sd, 2/sd, 4/sd)
	check("to test on, pooled", other, -3/sd, 5/sd)
	if train[0][0].Value[0] != 1 {
		t.Error("rows were changed")
	}
}

// TestPaperStudies: with the paper's features insurance has 7 coordinates and obesity 17 times 7 classes; no row is
// longer than is declared; and sizes of steps along means are M times those along sums.
func TestPaperStudies(t *testing.T) {
	data := os.Getenv("PANLEARN_DATA")
	if data == "" {
		data = "../../../../shared/data"
	}
	t.Chdir("../../..") // where task files are
	if !filepath.IsAbs(data) {
		data = filepath.Join("..", "shared", "data")
	}
	for name, dim := range map[string]int{"insurance-paper": 7, "obesity-paper": 17 * 7} {
		s := studies[name]
		path := filepath.Join(data, s.data)
		if _, err := os.Stat(path); err != nil {
			t.Logf("NOT RUN: %s: no %s", name, s.data)
			continue
		}
		of, err := s.load(path, s.of[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := of.job.Problem.Dim; got != dim {
			t.Errorf("%s: %d coordinates, want %d", name, got, dim)
		}
		for _, rows := range of.divide(1).silos {
			for _, x := range rows {
				if !(x.Norm() <= s.columns.norm) {
					t.Fatalf("%s: a row of norm %v, declared %v", name, x.Norm(), s.columns.norm)
				}
			}
		}
		if name == "insurance-paper" {
			first := of.choices(contenders[1])
			if want := 3 * math.Exp(-8); len(first) != 50 || math.Abs(first[0].step/want-1) > 1e-12 {
				t.Errorf("%d choices from a step of %v on, want 50 from %v on", len(first), first[0].step, want)
			}
		}
	}
}
