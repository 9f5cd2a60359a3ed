package block_test

import (
	"testing"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
)

func TestUnitsHaveTheirRows(t *testing.T) {
	rows := make([]convex.Example, 5)
	for i := range rows {
		rows[i].Label = float64(i)
	}
	for _, c := range []struct {
		block block.Block
		want  [][]float64
	}{
		{block.Of(rows[:2]...), [][]float64{{0}, {1}}},
		{block.Block{Rows: rows, Ends: []int{2, 2, 5}}, [][]float64{{0, 1}, {}, {2, 3, 4}}},
		{block.Block{}, nil},
	} {
		if c.block.Units() != len(c.want) {
			t.Fatalf("%d units, want %d", c.block.Units(), len(c.want))
		}
		for i, want := range c.want {
			got := c.block.Unit(i)
			if len(got) != len(want) {
				t.Fatalf("unit %d has %d rows, want %d", i, len(got), len(want))
			}
			for j := range got {
				if got[j].Label != want[j] {
					t.Errorf("unit %d, row %d: %v, want %v", i, j, got[j].Label, want[j])
				}
			}
		}
	}
}
