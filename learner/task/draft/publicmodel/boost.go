package publicmodel

import (
	"math/rand/v2"
)

// A Boosting is a way to train boosted trees.
type Boosting struct {
	Leaves int
	Trees  int // of each output
	Rate   float64
}

// trees are boosted trees: of a row the scores are Base and the leaf values of all trees. Steps[i][k] is the i-th tree
// of output k.
type trees struct {
	Base  []float64
	Steps [][]*Tree
}

// boost trains on some rows and calls after, with the scores of all rows, after each step.
func boost(t *Table, l *Labels, rows []int32, how Boosting, leaf int, after func(step int, scores []float64)) *trees {
	k := l.Outputs
	out := &trees{Base: l.base(rows)}
	scores := make([]float64, t.rows*k)
	for i := range scores {
		scores[i] = out.Base[i%k]
	}
	w := &grower{table: t, growth: growth{leaves: how.Leaves, rows: leaf, ridge: boostRidge}}
	g, h := make([][]float64, k), make([][]float64, k)
	for j := range g {
		g[j], h[j] = make([]float64, t.rows), make([]float64, t.rows)
	}
	one, two := make([]float64, k), make([]float64, k)
	order := make([]int32, len(rows))
	for step := range how.Trees {
		for _, r := range rows {
			l.slopes(one, two, scores[int(r)*k:][:k], int(r))
			for j := range k {
				g[j][r], h[j][r] = one[j], two[j]
			}
		}
		trees := make([]*Tree, k)
		for j := range k {
			copy(order, rows)
			tree := w.grow(order, g[j], h[j])
			for i := range tree.Value {
				tree.Value[i] *= how.Rate
			}
			for r := range t.rows {
				scores[r*k+j] += tree.Value[tree.leaf(t, r)]
			}
			trees[j] = tree
		}
		out.Steps = append(out.Steps, trees)
		if after != nil {
			after(step, scores)
		}
	}
	return out
}

// boostRidge is added to the curvature of a leaf of boosted trees.
const boostRidge = 1

// Forest grows trees on random parts of the rows with random inputs at each node: its leaves are places where labels
// differ. Of K classes tree i looks at the class i modulo K. No leaf has fewer than leaf rows.
func Forest(t *Table, l *Labels, trees, leaves, leaf int) []*Tree {
	const part = 0.632 // of the rows for each tree, as many different ones as a sample with repetition has
	random := rand.New(rand.NewPCG(forestSeed, 0))
	w := &grower{table: t, growth: growth{leaves: leaves, rows: leaf, inputs: rootOf(len(t.bins))}, random: random}
	g, h := make([]float64, t.rows), make([]float64, t.rows)
	var out []*Tree
	for i := range trees {
		for r, y := range l.Y {
			if h[r] = 1; l.Kind == Many {
				y = indicator(int(y) == i%l.Outputs)
			}
			g[r] = y
		}
		var rows []int32
		for _, r := range random.Perm(t.rows)[:int(part*float64(t.rows))] {
			rows = append(rows, int32(r))
		}
		mean := 0.0
		for _, r := range rows {
			mean += g[r] / float64(len(rows))
		}
		for r := range g {
			g[r] -= mean
		}
		out = append(out, w.grow(rows, g, h))
	}
	return out
}

// Seeds of folds and forests: fixed, so that the same rows give the same model.
const (
	foldSeed   = 1
	forestSeed = 2
)

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// rootOf returns the root, rounded down, at least 1.
func rootOf(n int) int {
	k := 1
	for (k+1)*(k+1) <= n {
		k++
	}
	return k
}
