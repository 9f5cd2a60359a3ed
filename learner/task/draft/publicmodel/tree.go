package publicmodel

import (
	"math/rand/v2"
	"slices"
)

// A Tree is nodes; node 0 is the root. A row goes to Left where its input is at most the threshold, else to Right,
// until a node that points to itself: a leaf.
type Tree struct {
	Input     []int32
	Threshold []float32
	Left      []int32
	Right     []int32
	Value     []float64 // of leaves; 0 elsewhere
	cut       []uint8   // the last bin that goes left
}

// leaf returns the leaf of a row of the table that the tree was grown on.
func (t *Tree) leaf(d *Table, row int) int {
	at := 0
	for int(t.Left[at]) != at {
		if d.bins[t.Input[at]][row] <= t.cut[at] {
			at = int(t.Left[at])
		} else {
			at = int(t.Right[at])
		}
	}
	return at
}

// A growth is a way to grow trees.
type growth struct {
	leaves int     // at most
	rows   int     // of a leaf, at least
	ridge  float64 // added to the sum of second derivatives
	inputs int     // that a node may choose from, drawn for each node; 0: all
}

// A cell is the sums of one bin.
type cell struct {
	g, h float64
	n    float64
}

// A node is a leaf that can still be split.
type node struct {
	at   int // in the tree
	rows []int32
	sums []cell
	all  cell

	gain  float64
	input int
	bin   int
}

// A grower grows trees on a table, one after another. It is not safe for concurrent use.
type grower struct {
	table *Table
	growth
	random *rand.Rand // of drawn inputs
	free   [][]cell
	g, h   []float64 // of the rows of a node, in their order
	spare  []int32
}

const leastCurvature = 1e-3 // sum of second derivatives of a leaf

// grow grows a tree, leaf by leaf where the loss falls most, on rows with first and second derivatives, which are
// indexed by row. rows is reordered.
func (w *grower) grow(rows []int32, g, h []float64) *Tree {
	t := &Tree{}
	root := &node{at: t.add(), rows: rows}
	w.sum(root, g, h)
	w.search(root)
	open := []*node{root}
	for leaves := 1; leaves < w.leaves; leaves++ {
		best := -1
		for i, n := range open {
			if n.gain > 0 && (best < 0 || n.gain > open[best].gain) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		left, right := w.split(t, open[best], g, h)
		open[best] = left
		open = append(open, right)
	}
	for _, n := range open {
		t.Value[n.at] = -n.all.g / (n.all.h + w.ridge)
		w.free = append(w.free, n.sums)
	}
	return t
}

// add adds a leaf.
func (t *Tree) add() int {
	at := len(t.Left)
	t.Input, t.Threshold = append(t.Input, 0), append(t.Threshold, 0)
	t.Left, t.Right = append(t.Left, int32(at)), append(t.Right, int32(at))
	t.Value, t.cut = append(t.Value, 0), append(t.cut, 0)
	return at
}

// split turns a leaf into a node with two leaves.
func (w *grower) split(t *Tree, n *node, g, h []float64) (left, right *node) {
	t.Input[n.at], t.cut[n.at] = int32(n.input), uint8(n.bin)
	t.Threshold[n.at] = w.table.edges[n.input][n.bin]
	left, right = &node{at: t.add()}, &node{at: t.add()}
	t.Left[n.at], t.Right[n.at] = int32(left.at), int32(right.at)
	w.spare = w.spare[:0]
	column, kept := w.table.bins[n.input], n.rows[:0]
	for _, r := range n.rows {
		if int(column[r]) <= n.bin {
			kept = append(kept, r)
		} else {
			w.spare = append(w.spare, r)
		}
	}
	copy(n.rows[len(kept):], w.spare)
	left.rows, right.rows = kept, n.rows[len(kept):]
	small, large := left, right
	if len(small.rows) > len(large.rows) {
		small, large = large, small
	}
	w.sum(small, g, h)
	large.sums, n.sums = n.sums, nil // the parent's less the other's
	for i := range large.sums {
		large.sums[i].g -= small.sums[i].g
		large.sums[i].h -= small.sums[i].h
		large.sums[i].n -= small.sums[i].n
	}
	large.all = cell{n.all.g - small.all.g, n.all.h - small.all.h, n.all.n - small.all.n}
	w.search(left)
	w.search(right)
	return left, right
}

// sum adds up the derivatives of a node's rows in each bin.
func (w *grower) sum(n *node, g, h []float64) {
	if k := len(w.free); k > 0 {
		n.sums, w.free = w.free[k-1], w.free[:k-1]
		clear(n.sums)
	} else {
		n.sums = make([]cell, w.table.total)
	}
	w.g, w.h = slices.Grow(w.g[:0], len(n.rows))[:len(n.rows)], slices.Grow(w.h[:0], len(n.rows))[:len(n.rows)]
	for i, r := range n.rows {
		w.g[i], w.h[i] = g[r], h[r]
		n.all.g += g[r]
		n.all.h += h[r]
	}
	n.all.n = float64(len(n.rows))
	for j, column := range w.table.bins {
		sums := n.sums[w.table.first[j]:][:len(w.table.edges[j])+1]
		for i, r := range n.rows {
			c := &sums[column[r]]
			c.g += w.g[i]
			c.h += w.h[i]
			c.n++
		}
	}
}

// search finds the split of a node that lowers the loss most; the first of equals.
func (w *grower) search(n *node) {
	n.gain = 0
	if n.all.n < 2*float64(w.growth.rows) {
		return
	}
	whole := n.all.g * n.all.g / (n.all.h + w.ridge)
	least := 1e-10 * (1 + whole)
	if w.inputs == 0 || w.inputs >= len(w.table.bins) {
		for j := range w.table.bins {
			w.scan(n, j, whole, least)
		}
		return
	}
	for _, j := range w.random.Perm(len(w.table.bins))[:w.inputs] {
		w.scan(n, j, whole, least)
	}
}

// scan looks at the thresholds of one input.
func (w *grower) scan(n *node, j int, whole, least float64) {
	sums := n.sums[w.table.first[j]:][:len(w.table.edges[j])]
	rows := float64(w.growth.rows)
	var l cell
	for b := range sums {
		l.g += sums[b].g
		l.h += sums[b].h
		l.n += sums[b].n
		if l.n < rows {
			continue
		}
		if n.all.n-l.n < rows {
			return
		}
		r := cell{n.all.g - l.g, n.all.h - l.h, 0}
		if l.h < leastCurvature || r.h < leastCurvature {
			continue
		}
		gain := l.g*l.g/(l.h+w.ridge) + r.g*r.g/(r.h+w.ridge) - whole
		if gain > least && gain > n.gain {
			n.gain, n.input, n.bin = gain, j, b
		}
	}
}
