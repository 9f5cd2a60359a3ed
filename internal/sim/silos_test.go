package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
)

// numbered returns rows whose one feature is their number, with labels by its parity, named by its last
// digit.
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
		"blocks": {7, 2, 10}, "sorted-label": {2, 2, 10}, "label": {10, 1, 1}, "label-pairs": {25, 2, 2},
		"column:x": {10, 1, 1},
	} {
		silos, err := sim.Silos(split, c.count, rows, names)
		if err != nil || len(silos) != c.count {
			t.Fatalf("%s: %d silos, %v", split, len(silos), err)
		}
		var all []int
		for _, silo := range silos {
			of := silo // a row's one feature is its number
			labels, digits := map[float64]bool{}, map[int]bool{}
			for i, n := range of {
				labels[rows[silo[i]].Label], digits[n%10] = true, true
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
	if err != nil || rows[sorted[0][50]].Label != -1 || rows[sorted[1][1]].Label != 1 || sorted[1][0] != 102 {
		t.Errorf("sorted by label: %v, %v", sorted, err)
	}
	for split, count := range map[string]int{"label": 9, "label-pairs": 10, "column:x": 11} {
		if _, err := sim.Silos(split, count, rows, names); err == nil {
			t.Errorf("%s: %d silos: accepted", split, count)
		}
	}
	for _, split := range []string{"", "column:", "labels"} {
		if sim.ValidateSplit(split) == nil {
			t.Errorf("%q: accepted", split)
		}
	}
}

// In one pass a row is in one block at most, a silo's blocks come in its order as long as it fills one, and silos take
// turns; many passes have one block of all rows of a silo.
func TestBlocksOfSilos(t *testing.T) {
	rows, _ := numbered(103)
	silos := [][]convex.Example{rows[:25], rows[25:50], rows[50:53], rows[53:]}
	blocks, of, left := sim.BlocksOf(silos, 6, 1, block.Of)
	if len(blocks) != 4+4+0+8 || left != 1+1+3+2 {
		t.Fatalf("%d blocks, %d rows left: want 16 and 7", len(blocks), left)
	}
	next, turns := make([]int, 4), [][]int{}
	for i, b := range blocks {
		if got, want := numbersOf(b.Rows), numbersOf(silos[of[i]][next[of[i]]:next[of[i]]+6]); b.Units() != 6 ||
			!slices.Equal(got, want) {
			t.Errorf("block %d of silo %d: %v, want %v", i, of[i], got, want)
		}
		if turn := next[of[i]] / 6; turn == len(turns) {
			turns = append(turns, nil)
		} else if turn != len(turns)-1 {
			t.Errorf("block %d is silo %d's in turn %d, after turn %d", i, of[i], turn, len(turns)-1)
		}
		turns[len(turns)-1] = append(turns[len(turns)-1], of[i])
		next[of[i]] += 6
	}
	if slices.Sort(turns[3]); !slices.Equal(turns[3], []int{0, 1, 3}) || len(turns) != 8 || len(turns[4]) != 1 {
		t.Errorf("turns %v", turns)
	}
	whole, of, left := sim.BlocksOf(silos, 0, 1, block.Of)
	if len(whole) != 4 || left != 0 || whole[3].Units() != len(silos[3]) || !slices.Equal(of, []int{0, 1, 2, 3}) {
		t.Errorf("many passes: %d blocks, %d rows left", len(whole), left)
	}
	people := [][][]convex.Example{{rows[:3], rows[3:4], rows[4:9]}, {rows[9:10]}}
	some, _, left := sim.BlocksOf(people, 2, 1, block.Join)
	if len(some) != 1 || left != 2 || some[0].Units() != 2 || len(some[0].Unit(0)) != 3 {
		t.Errorf("people: %v, %d left", some, left)
	}
}
