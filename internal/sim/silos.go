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
	// a silo for each pair of a label that counts as the lower class and one that counts as the higher
	SplitLabelPairs = "label-pairs"
	SplitColumn     = "column:" // a silo for each value of the column
)

// ValidateSplit refuses a word that is no way to make silos.
func ValidateSplit(split string) error {
	switch {
	case slices.Contains([]string{SplitBlocks, SplitSortedLabel, SplitLabel, SplitLabelPairs}, split):
	case strings.HasPrefix(split, SplitColumn) && len(split) > len(SplitColumn):
	default:
		return fmt.Errorf("%q: want blocks, sorted-label, label, label-pairs or column:NAME", split)
	}
	return nil
}

// SplitNames reports whether a split needs a name of each row: its label as the file has it, or the value of
// the column.
func SplitNames(split string) bool { return split != SplitBlocks && split != SplitSortedLabel }

// Silos returns the numbers of the rows of count silos, each in the order of the file. names are wanted by
// SplitNames alone; rows without one are in no silo. It refuses a file that makes another number of silos.
func Silos(split string, count int, rows []convex.Example, names []string) ([][]int, error) {
	if SplitNames(split) && len(names) != len(rows) {
		return nil, fmt.Errorf("split %s: %d names of %d rows", split, len(names), len(rows))
	}
	var out [][]int
	all := make([]int, len(rows))
	for i := range all {
		all[i] = i
	}
	switch split {
	case SplitSortedLabel:
		slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(rows[a].Label, rows[b].Label) })
		out = parts(all, count)
	case SplitBlocks:
		out = parts(all, count)
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
		_, out = byName(names)
	}
	if len(out) != count {
		return nil, fmt.Errorf("split %s: silos that the rows make: %d, and silo.count is %d", split, len(out), count)
	}
	return out, nil
}

// parts cuts rows into n parts. Their lengths differ by one at most.
func parts(rows []int, n int) (out [][]int) {
	for i := range n {
		out = append(out, rows[i*len(rows)/n:(i+1)*len(rows)/n])
	}
	return out
}

// byName returns the rows of each name, in the order of the first ones. A row without a readable name is in none.
func byName(names []string) (order []string, out [][]int) {
	at := map[string]int{}
	for i, name := range names {
		if name == "" {
			continue
		}
		k, known := at[name]
		if !known {
			k = len(out)
			at[name], order, out = k, append(order, name), append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return order, out
}

// labelsOf returns the rows of each label, by the class that it counts as, of two; in the order of the
// labels' names.
func labelsOf(rows []convex.Example, names []string) (lows, highs [][]int, err error) {
	order, all := byName(names)
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
		label := rows[all[i][0]].Label
		for _, k := range all[i] {
			if x := rows[k].Label; x != label || x != low && x != high {
				return nil, nil, fmt.Errorf("split %s: want labels that count as one of two classes each", SplitLabelPairs)
			}
		}
		if label == low {
			lows = append(lows, all[i])
		} else {
			highs = append(highs, all[i])
		}
	}
	return lows, highs, nil
}

// BlocksOf returns the blocks of silos, which of makes from units, and the silo of each. With units 0 a silo
// is one block of all of its units. Otherwise each block has that many units, disjoint, in the order of the
// units, and silos take turns as long as they fill blocks; the seed decides which comes first. left counts
// the units at the ends of silos that fill no block.
func BlocksOf[U any](silos [][]U, units int, seed uint64, of func(...U) block.Block) (out []block.Block, silo []int,
	left int) {
	order := rand.New(Entropy(seed, "silos")).Perm(len(silos))
	if units == 0 {
		for i, all := range silos {
			out, silo = append(out, of(all...)), append(silo, i)
		}
		return out, silo, 0
	}
	for turn, more := 0, true; more; turn++ {
		more = false
		for _, i := range order {
			if end := (turn + 1) * units; end <= len(silos[i]) {
				out, silo, more = append(out, of(silos[i][end-units:end]...)), append(silo, i), true
			}
		}
	}
	for _, all := range silos {
		left += len(all) % units
	}
	return out, silo, left
}
