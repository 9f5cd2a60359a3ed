package block

import (
	"iter"

	"github.com/panlearn/panlearn/learner/convex"
)

// Each groups rows, or people, n by n in their order. A block ends at the end of a file at the latest, so that
// a file that is added between others moves no row of theirs into another block; file returns the file of a
// row; if it is nil, all rows are of one file. Rows left at the end of a file, fewer than n, are in no block:
// left is called with their number.
func Each[R any](rows iter.Seq[R], n int, file func(R) string, left func(rows int)) iter.Seq[[]R] {
	if n < 1 {
		panic("block: Each of less than one row")
	}
	return func(yield func([]R) bool) {
		var block []R
		var name string
		end := func() {
			if len(block) > 0 {
				left(len(block))
			}
			block = nil
		}
		for r := range rows {
			if file != nil && file(r) != name {
				end()
				name = file(r)
			}
			if block = append(block, r); len(block) < n {
				continue
			}
			if !yield(block) {
				return
			}
			block = nil
		}
		end()
	}
}

// Join returns the block of these units, each with all of its rows: the people of an organisation, or one alone.
func Join(units ...[]convex.Example) Block {
	b := Block{Ends: make([]int, 0, len(units))}
	for _, rows := range units {
		b.Rows = append(b.Rows, rows...)
		b.Ends = append(b.Ends, len(b.Rows))
	}
	return b
}
