// Package block defines the contents of a report: a block of units. A unit is the object that privacy protects, one row
// or all rows of one person, and a block is one unit of a person's device, or the units of an organisation.
package block

import "github.com/panlearn/panlearn/learner/convex"

// A Block is rows in units. A row that is no event of the task is an Example that the loss refuses: it
// contributes the zero vector and counts. It is private data.
type Block struct {
	Rows []convex.Example
	// Ends are the ends of the units: the rows of unit i are Rows[Ends[i-1]:Ends[i]]. nil: each row is a unit.
	Ends []int
}

// Of returns the block of one row, or of rows that are a unit each.
func Of(rows ...convex.Example) Block { return Block{Rows: rows} }

// Units returns the number of units.
func (b Block) Units() int {
	if b.Ends == nil {
		return len(b.Rows)
	}
	return len(b.Ends)
}

// Unit returns the rows of a unit, from 0.
func (b Block) Unit(i int) []convex.Example {
	if b.Ends == nil {
		return b.Rows[i : i+1]
	}
	first := 0
	if i > 0 {
		first = b.Ends[i-1]
	}
	return b.Rows[first:b.Ends[i]]
}
