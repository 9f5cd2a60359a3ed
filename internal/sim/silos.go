package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
)

// Ways to make silos of the rows of one file. SplitColumn is followed by the name of a column.
const (
	SplitBlocks      = "blocks"       // parts of the file, as it is
	SplitSortedLabel = "sorted-label" // parts of the file, sorted by label
	SplitLabel       = "label"        // a silo for each label
	SplitLabelPairs  = "label-pairs"  // a silo for each pair of a label that counts as the lower class and one that counts as the higher
	SplitColumn      = "column:"      // a silo for each value of the column
)

// CheckSplit refuses a word that is no way to make silos.
func CheckSplit(split string) error {
	switch {
	case slices.Contains([]string{SplitBlocks, SplitSortedLabel, SplitLabel, SplitLabelPairs}, split):
	case strings.HasPrefix(split, SplitColumn) && len(split) > len(SplitColumn):
	default:
		return fmt.Errorf("%q: want blocks, sorted-label, label, label-pairs or column:NAME", split)
	}
	return nil
}

// SplitNames says whether a split asks for a name of each row: its label as the file has it, or the value of the column.
func SplitNames(split string) bool { return split != SplitBlocks && split != SplitSortedLabel }

// Silos are the rows of count silos, each in the order of the file. names are wanted by SplitNames alone. It refuses a file that makes another
// number of silos.
func Silos(split string, count int, rows []convex.Example, names []string) ([][]convex.Example, error) {
	if SplitNames(split) && len(names) != len(rows) {
		return nil, fmt.Errorf("split %s: %d names of %d rows", split, len(names), len(rows))
	}
	var out [][]convex.Example
	switch split {
	case SplitSortedLabel:
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, func(a, b convex.Example) int { return cmp.Compare(a.Label, b.Label) })
		out = parts(rows, count)
	case SplitBlocks:
		out = parts(rows, count)
	case SplitLabelPairs:
		lows, highs, err := labelsOf(rows, names)
		if err != nil {
			return nil, err
		}
		for i, low := range lows {
			for k, high := range highs {
				out = append(out, slices.Concat(parts(low, len(highs))[k], parts(high, len(lows))[i]))
			}
		}
	default:
		_, out = byName(rows, names)
	}
	if len(out) != count {
		return nil, fmt.Errorf("split %s: the rows make %d silos: want silo.count %d", split, len(out), count)
	}
	return out, nil
}

// parts cuts rows into n, whose lengths differ by one at most.
func parts(rows []convex.Example, n int) (out [][]convex.Example) {
	for i := range n {
		out = append(out, rows[i*len(rows)/n:(i+1)*len(rows)/n])
	}
	return out
}

// byName are the rows of each name, in the order of the first ones.
func byName(rows []convex.Example, names []string) (order []string, out [][]convex.Example) {
	at := map[string]int{}
	for i, name := range names {
		k, known := at[name]
		if !known {
			k = len(out)
			at[name], order, out = k, append(order, name), append(out, nil)
		}
		out[k] = append(out[k], rows[i])
	}
	return order, out
}

// labelsOf are the rows of each label, by the class that it counts as, of two; in the order of the labels' names.
func labelsOf(rows []convex.Example, names []string) (lows, highs [][]convex.Example, err error) {
	order, all := byName(rows, names)
	index := make([]int, len(order))
	for i := range index {
		index[i] = i
	}
	slices.SortFunc(index, func(a, b int) int { return cmp.Compare(order[a], order[b]) })
	low, high := 0.0, 0.0
	for i, x := range rows {
		if i == 0 {
			low, high = x.Label, x.Label
		}
		low, high = min(low, x.Label), max(high, x.Label)
	}
	for _, i := range index {
		for _, x := range all[i] {
			if x.Label != all[i][0].Label || x.Label != low && x.Label != high {
				return nil, nil, fmt.Errorf("split %s: want labels that count as one of two classes each", SplitLabelPairs)
			}
		}
		if all[i][0].Label == low {
			lows = append(lows, all[i])
		} else {
			highs = append(highs, all[i])
		}
	}
	return lows, highs, nil
}

// BlocksOf are the blocks of silos. With units 0 a silo is one block of all of its rows. Else each block is of so many, disjoint, in the order of
// the rows, and blocks come silo by silo in turn, so that as many as there are silos, one after the other, are of as many silos: a round
// has one of a silo at most. The seed says which silo comes first; left counts the rows at the ends of silos that fill no block. A silo
// whose blocks are fewer than another's ends the turns: what the others still have is left, too.
func BlocksOf(silos [][]convex.Example, units int, seed uint64) (out []block.Block, left int) {
	if units == 0 {
		for _, rows := range silos {
			out = append(out, block.Of(rows...))
		}
		return out, 0
	}
	turns := len(silos[0]) / units
	for _, rows := range silos {
		turns = min(turns, len(rows)/units)
	}
	order := rand.New(Entropy(seed, "silos")).Perm(len(silos))
	for turn := range turns {
		for _, i := range order {
			out = append(out, block.Of(silos[i][turn*units:(turn+1)*units]...))
		}
	}
	for _, rows := range silos {
		left += len(rows) - turns*units
	}
	return out, left
}
