package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
)

// numbered are rows whose one feature is their number, with labels by its parity, named by its last digit.
func numbered(n int) (rows []convex.Example, names []string) {
	for i := range n {
		rows = append(rows, convex.Example{Value: []float64{float64(i)}, Label: float64(2*(i%2) - 1)})
		names = append(names, fmt.Sprint(i%10))
	}
	return rows, names
}

func numbersOf(rows []convex.Example) (out []int) {
	for _, x := range rows {
		out = append(out, int(x.Value[0]))
	}
	return out
}

// Every row is in one silo, in the order of the file, and a silo has the labels that its way to be made says.
func TestSilosHaveEveryRowOnce(t *testing.T) {
	rows, names := numbered(103)
	for split, c := range map[string]struct{ count, labels, names int }{
		"blocks": {7, 2, 10}, "sorted-label": {2, 2, 10}, "label": {10, 1, 1}, "label-pairs": {25, 2, 2}, "column:x": {10, 1, 1},
	} {
		silos, err := sim.Silos(split, c.count, rows, names)
		if err != nil || len(silos) != c.count {
			t.Fatalf("%s: %d silos, %v", split, len(silos), err)
		}
		var all []int
		for _, silo := range silos {
			of := numbersOf(silo)
			labels, digits := map[float64]bool{}, map[int]bool{}
			for i, n := range of {
				labels[silo[i].Label], digits[n%10] = true, true
			}
			if len(labels) > c.labels || len(digits) > c.names || len(of) < 4 {
				t.Errorf("%s: a silo of %v", split, of)
			}
			if split == "label-pairs" && (len(labels) != 2 || len(digits) != 2) {
				t.Errorf("%s: a silo of %v: want two digits", split, of)
			}
			all = append(all, of...)
		}
		if slices.Sort(all); !slices.Equal(all, numbersOf(rows)) {
			t.Errorf("%s: the silos have %v", split, all)
		}
	}
	sorted, err := sim.Silos("sorted-label", 2, rows, nil)
	if err != nil || sorted[0][50].Label != -1 || sorted[1][1].Label != 1 || sorted[1][0].Value[0] != 102 {
		t.Errorf("sorted by label: %v, %v", sorted, err)
	}
	for split, count := range map[string]int{"label": 9, "label-pairs": 10, "column:x": 11} {
		if _, err := sim.Silos(split, count, rows, names); err == nil {
			t.Errorf("%s: %d silos: accepted", split, count)
		}
	}
	for _, split := range []string{"", "column:", "labels"} {
		if sim.CheckSplit(split) == nil {
			t.Errorf("%q: accepted", split)
		}
	}
}

// In one pass a row is in one block at most, those of one silo come in its order, and of as many blocks one after the other as there are silos no
// two are of one silo; many passes have one block of all rows of a silo.
func TestBlocksOfSilos(t *testing.T) {
	rows, _ := numbered(103)
	silos, err := sim.Silos("blocks", 4, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	blocks, left := sim.BlocksOf(silos, 6, 1)
	if len(blocks) != 16 || left != 103-16*6 {
		t.Fatalf("%d blocks, %d rows left: want 16 and 7", len(blocks), left)
	}
	siloOf := func(b int) int {
		return slices.IndexFunc(silos, func(s []convex.Example) bool { return slices.Contains(numbersOf(s), int(blocks[b].Rows[0].Value[0])) })
	}
	next := make([]int, 4)
	for i, b := range blocks {
		of := siloOf(i)
		if got, want := numbersOf(b.Rows), numbersOf(silos[of][next[of]:next[of]+6]); b.Units() != 6 || !slices.Equal(got, want) {
			t.Errorf("block %d of silo %d: %v, want %v", i, of, got, want)
		}
		next[of] += 6
		for k := max(0, i-3); k < i; k++ {
			if siloOf(k) == of {
				t.Errorf("blocks %d and %d are both of silo %d", k, i, of)
			}
		}
	}
	whole, left := sim.BlocksOf(silos, 0, 1)
	if len(whole) != 4 || left != 0 || whole[3].Units() != len(silos[3]) {
		t.Errorf("many passes: %d blocks, %d rows left", len(whole), left)
	}
}
