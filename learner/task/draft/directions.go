package draft

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/draft/publicmodel"
)

// addDirections adds the block of directions to a public model, as many and as fine as fit into its file, and returns
// how many there are.
func (m *modeller) addDirections(p *task.PublicModel, most int) int {
	z := m.directions(most)
	if z == nil {
		return 0
	}
	for bits := 16; z.outputs >= leastDirections; bits = 8 {
		with := *p
		with.Blocks = append(slices.Clone(p.Blocks), z.block(bits))
		if _, err := with.Encode(); err == nil {
			*p = with
			return z.outputs
		}
		if bits == 8 {
			z.outputs -= (z.outputs + 3) / 4
		}
	}
	return 0
}

// A pooled holds directions of inputs and of the leaves of a forest.
type pooled struct {
	outputs        int
	bias           []float64
	inputs, leaves [][]float64
	trees          []task.Tree
}

// block returns the first directions as a block of a public model.
func (z *pooled) block(bits int) task.PublicBlock {
	out := task.PublicBlock{Name: "z", Outputs: z.outputs, Range: directionRange, Bias: z.bias[:z.outputs],
		Weights: task.NewMatrix(z.inputs[:z.outputs], bits)}
	if len(z.trees) > 0 {
		out.Forest = &task.Forest{Trees: z.trees, Leaves: task.NewMatrix(z.leaves[:z.outputs], 8)}
	}
	return out
}

// directions returns whitened directions of the pool of all inputs and the leaves of a forest; nil where
// the pool has none.
func (m *modeller) directions(most int) *pooled {
	s := m.sample
	grown := publicmodel.Forest(m.table, &s.labels, forestTrees, forestLeaves, leafRows)
	var trees []task.Tree
	leaves := 0
	for _, g := range grown {
		if t, asks := m.tree(g, 1); asks {
			leaves += len(t.Leaf)
			t.Leaf = nil
			trees = append(trees, t)
		}
	}
	width := len(s.inputs)
	if min(width+leaves, len(s.labels.Y)) > mostPool {
		return nil
	}
	rows := make([][]float64, len(s.scaled))
	for i, row := range s.scaled {
		line := make([]float64, width+leaves)
		copy(line, row)
		at := width
		for t := range trees {
			line[at+m.leaf(&trees[t], i)] = 1
			at += len(trees[t].Feature) + 1
		}
		rows[i] = line
	}
	first, second := evenOut(rows, 0, width), evenOut(rows, width, width+leaves)
	weights := make([]float64, len(rows))
	for i, score := range m.blend.Scores {
		p := 1 / (1 + math.Exp(-score))
		weights[i] = p * (1 - p)
	}
	d := publicmodel.Whiten(rows, weights, most)
	if len(d.Matrix) < leastDirections {
		return nil
	}
	z := &pooled{outputs: len(d.Matrix), bias: d.Bias, trees: trees}
	for _, line := range d.Matrix {
		for j := range line {
			if j < width {
				line[j] *= first
			} else {
				line[j] *= second
			}
		}
		z.inputs, z.leaves = append(z.inputs, line[:width]), append(z.leaves, line[width:])
	}
	return z
}

// evenOut divides columns by the root of their whole variance, and returns the factor.
func evenOut(rows [][]float64, from, to int) float64 {
	total := 0.0
	column := make([]float64, len(rows))
	for j := from; j < to; j++ {
		for i, row := range rows {
			column[i] = row[j]
		}
		if lowest(column) < highest(column) {
			_, std, _ := momentsOf(column)
			total += std * std
		}
	}
	if total == 0 {
		return 1
	}
	factor := 1 / math.Sqrt(total)
	for _, row := range rows {
		for j := from; j < to; j++ {
			row[j] *= factor
		}
	}
	return factor
}

func lowest(x []float64) float64 { return slices.Min(x) }

func highest(x []float64) float64 { return slices.Max(x) }
