package task

import (
	"math"

	"pgregory.net/rapid"
)

// drawPublic draws a public model of the columns or the vector.
func drawPublic(t *rapid.T, f *Features) *Public {
	p := &PublicModel{Version: 1, Sample: PublicSample{Rows: 10, Leaf: 1}, Inputs: f.PublicInputs()}
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
	out, err := NewPublic(p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// askable returns the inputs that trees may ask about.
func askable(f *Features) (out []int) {
	i := 0
	for _, may := range f.eachInput {
		if may {
			out = append(out, i)
		}
		i++
	}
	return out
}

func drawBlock(t *rapid.T, inputs int, asked []int, outputs int) PublicBlock {
	b := PublicBlock{Outputs: outputs}
	number := rapid.Float64Range(-3, 3)
	matrix := func(cols int) *Matrix {
		var rows [][]float64
		for range outputs {
			rows = append(rows, rapid.SliceOfN(number, cols, cols).Draw(t, "matrix"))
		}
		return NewMatrix(rows, rapid.SampledFrom([]int{8, 16}).Draw(t, "bits"))
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
		b.Forest = &Forest{}
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
func drawTree(t *rapid.T, asked []int) Tree {
	n := rapid.IntRange(1, 6).Draw(t, "questions")
	tree := Tree{Feature: make([]int, n), Threshold: make([]float32, n), Left: make([]int, n), Right: make([]int, n)}
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

// publicOutput computes a coordinate from the public model as it is described, question by question.
func publicOutput(t rapid.TB, c Coordinate, fields map[string]string, vector []float64) float64 {
	var scaled []float64
	var asked []float32
	add := func(s, raw float64) { scaled, asked = append(scaled, s), append(asked, float32(raw)) }
	addNumber := func(s *Source, raw float64) {
		v := scaledNumber(s, raw)
		if s.Kind == Indicator {
			raw = v
		}
		add(v, raw)
	}
	for _, s := range c.Sources {
		switch {
		case s.Column == "":
			for _, x := range vector {
				addNumber(s, x)
			}
		case s.Kind.Number():
			x, missing := quantity(t, s, fields)
			if missing {
				x = s.Fill
			}
			addNumber(s, x)
			if s.Told && missing {
				add(1, 1)
			} else if s.Told {
				add(0, 0)
			}
		case s.Kind == Hats || s.Kind == Text:
			for i := range s.Positions() {
				kind := map[ColumnKind]string{Hats: "hats", Text: "text"}[s.Kind]
				add(base(t, Coordinate{Kind: kind, Column: s.Column, Position: i, Sources: []*Source{s}}, fields, nil), 0)
			}
		default:
			p := position(t, s, fields)
			for i := range s.Positions() {
				if i == p {
					add(1, 1)
				} else {
					add(0, 0)
				}
			}
		}
	}
	for i := range c.Derived.Public.Blocks {
		if b := &c.Derived.Public.Blocks[i]; b.Name == c.Derived.Block {
			return math.Max(-1, math.Min(1, blockOutput(b, c.Position, scaled, asked)/b.Range))
		}
	}
	t.Fatalf("no block %q", c.Derived.Block)
	return 0
}

// blockOutput computes output k of a block.
func blockOutput(b *PublicBlock, k int, scaled []float64, asked []float32) float64 {
	var sum float64
	if len(b.Bias) > 0 {
		sum = b.Bias[k]
	}
	if b.Weights != nil {
		for j, f := range scaled {
			sum += b.Weights.At(k, j) * f
		}
	}
	leafOf := func(t *Tree) int {
		for at := 0; ; {
			branch := t.Right[at]
			if asked[t.Feature[at]] <= t.Threshold[at] {
				branch = t.Left[at]
			}
			if branch < 0 {
				return -branch - 1
			}
			at = branch
		}
	}
	for i := range b.Trees {
		if t := &b.Trees[i]; t.Output == k {
			sum += float64(t.Leaf[leafOf(t)])
		}
	}
	if b.Forest != nil {
		first := 0
		for i := range b.Forest.Trees {
			t := &b.Forest.Trees[i]
			sum += b.Forest.Leaves.At(k, first+leafOf(t))
			first += len(t.Feature) + 1
		}
	}
	return sum
}
