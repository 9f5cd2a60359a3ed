package model

import (
	"math"
	"strings"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/task"
)

// drawPublic draws a public model of the columns or the vector.
func drawPublic(t *rapid.T, f *task.Features) *task.Public {
	p := &task.PublicModel{Version: 1, Sample: task.PublicSample{Rows: 10, Leaf: 1}, Inputs: f.PublicInputs()}
	asked := askable(f)
	for _, name := range []string{"stage", "z"}[:rapid.IntRange(1, 2).Draw(t, "blocks")] {
		b := drawBlock(t, len(p.Inputs), asked, rapid.IntRange(1, 4).Draw(t, "outputs"))
		b.Name, b.Range = name, rapid.Float64Range(0.01, 10).Draw(t, "range")
		p.Blocks = append(p.Blocks, b)
	}
	if rapid.Bool().Draw(t, "public offset") {
		b := drawBlock(t, len(p.Inputs), asked, 1)
		p.Offset = &b
	}
	out, err := task.NewPublic(p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// askable returns the inputs that trees may ask about: all but hats.
func askable(f *task.Features) (out []int) {
	for i, name := range f.PublicInputs() {
		if !strings.Contains(name, "@") {
			out = append(out, i)
		}
	}
	return out
}

func drawBlock(t *rapid.T, inputs int, asked []int, outputs int) task.PublicBlock {
	b := task.PublicBlock{Outputs: outputs}
	number := rapid.Float64Range(-3, 3)
	matrix := func(cols int) *task.Matrix {
		var rows [][]float64
		for range outputs {
			rows = append(rows, rapid.SliceOfN(number, cols, cols).Draw(t, "matrix"))
		}
		return task.NewMatrix(rows, rapid.SampledFrom([]int{8, 16}).Draw(t, "bits"))
	}
	parts := rapid.IntRange(1, 7).Draw(t, "parts")
	if len(asked) == 0 {
		parts = 1
	}
	if parts&1 > 0 {
		b.Weights = matrix(inputs)
	}
	if parts&2 > 0 {
		b.Bias = rapid.SliceOfN(number, outputs, outputs).Draw(t, "bias")
		for range rapid.IntRange(1, 3).Draw(t, "trees") {
			tree := drawTree(t, asked)
			tree.Output = rapid.IntRange(0, outputs-1).Draw(t, "output")
			for range len(tree.Feature) + 1 {
				tree.Leaf = append(tree.Leaf, float32(number.Draw(t, "leaf")))
			}
			b.Trees = append(b.Trees, tree)
		}
	}
	if parts&4 > 0 {
		b.Forest = &task.Forest{}
		leaves := 0
		for range rapid.IntRange(1, 3).Draw(t, "forest") {
			tree := drawTree(t, asked)
			leaves += len(tree.Feature) + 1
			b.Forest.Trees = append(b.Forest.Trees, tree)
		}
		b.Forest.Leaves = matrix(leaves)
	}
	return b
}

// drawTree draws a tree by putting each question in the place of a leaf.
func drawTree(t *rapid.T, asked []int) task.Tree {
	n := rapid.IntRange(1, 6).Draw(t, "questions")
	tree := task.Tree{Feature: make([]int, n), Threshold: make([]float32, n), Left: make([]int, n), Right: make([]int, n)}
	open := []*int{} // branches that lead nowhere yet
	for i := range n {
		if i > 0 {
			at := rapid.IntRange(0, len(open)-1).Draw(t, "branch")
			*open[at] = i
			open = append(open[:at], open[at+1:]...)
		}
		tree.Feature[i] = rapid.SampledFrom(asked).Draw(t, "feature")
		tree.Threshold[i] = rapid.SampledFrom([]float32{0, 0.5, 1, -20, 33.3, float32(math.Inf(1))}).Draw(t, "threshold")
		if math.IsInf(float64(tree.Threshold[i]), 0) {
			tree.Threshold[i] = rapid.Float32Range(-100, 100).Draw(t, "any threshold")
		}
		open = append(open, &tree.Left[i], &tree.Right[i])
	}
	for i, branch := range open {
		*branch = -i - 1
	}
	return tree
}
