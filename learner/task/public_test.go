package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

// samplePublic is a model of four inputs with every part that one can have.
func samplePublic() *PublicModel {
	question := func(output int, leaf ...float32) Tree {
		return Tree{Output: output, Feature: []int{0, 1}, Threshold: []float32{30.5, 0.5}, Left: []int{-1, -2},
			Right: []int{1, -3}, Leaf: leaf}
	}
	return &PublicModel{
		Version: 1, Sample: PublicSample{Rows: 100, Leaf: 15}, Inputs: []string{"age", "job=a", "job=b", "x"},
		Blocks: []PublicBlock{
			{Name: "stage", Outputs: 2, Range: 6, Bias: []float64{0.25, -1},
				Trees: []Tree{question(0, 1, 2, 3), question(1, -1, 0.1, 7)}},
			{Name: "z", Outputs: 2, Range: 2.5,
				Weights: NewMatrix([][]float64{{1, -2, 0.5, 0}, {0, 0, 0, 0}}, 8),
				Forest: &Forest{Trees: []Tree{question(0), question(0)},
					Leaves: NewMatrix([][]float64{{1, 2, 3, 4, 5, 6}, {-1, 0, 1, 0, 1, 0}}, 16)}},
		},
		Offset: &PublicBlock{Outputs: 1, Bias: []float64{1000}, Trees: []Tree{question(0, 5, 6, 7)}},
	}
}

// TestPublicModelFile: a model is what its file says, and a file that says more is refused.
func TestPublicModelFile(t *testing.T) {
	data, err := samplePublic().Encode()
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePublic(data)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Encode(); err != nil || !bytes.Equal(again, data) {
		t.Errorf("encoded again: %v\n%s\n%s", err, data, again)
	}
	for name, bad := range map[string]string{
		"key":    strings.Replace(string(data), `"version":1`, `"version":1,"more":2`, 1),
		"tail":   string(data) + "{}",
		"JSON":   string(data[:len(data)/2]),
		"float":  strings.Replace(string(data), "30.5", "1e60", 1),
		"index":  strings.Replace(string(data), `"left":[-1,-2]`, `"left":[-1,-2.5]`, 1),
		"base64": strings.Replace(string(data), `"values":"`, `"values":"*`, 1),
		"size":   string(data) + strings.Repeat(" ", MaxPublic),
	} {
		var f *FieldError
		if _, err := parsePublic([]byte(bad)); !errors.As(err, &f) || !strings.HasPrefix(f.Path, "features.public") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPublicModelValidate: every limit is refused where it is broken.
func TestPublicModelValidate(t *testing.T) {
	chain := func(n int) Tree { // question i leads to leaf i and question i+1
		var out Tree
		for i := range n {
			out.Feature, out.Threshold = append(out.Feature, 0), append(out.Threshold, 0)
			out.Left, out.Right = append(out.Left, -i-1), append(out.Right, i+1)
		}
		out.Right[n-1], out.Leaf = -n-1, make([]float32, n+1)
		return out
	}
	long := samplePublic()
	long.Blocks[0].Trees[0] = chain(maxTreeDepth)
	if err := long.validate(); err != nil || long.Blocks[0].Trees[0].depth() != maxTreeDepth {
		t.Errorf("%d questions deep: %v", long.Blocks[0].Trees[0].depth(), err)
	}
	type edit = func(p *PublicModel)
	tree := func(do func(t *Tree)) edit { return func(p *PublicModel) { do(&p.Blocks[0].Trees[1]) } }
	for want, spoil := range map[string]edit{
		"version":                      func(p *PublicModel) { p.Version = 2 },
		"sample.rows":                  func(p *PublicModel) { p.Sample.Rows = 0 },
		"sample.leaf":                  func(p *PublicModel) { p.Sample.Leaf = 101 },
		"inputs":                       func(p *PublicModel) { p.Inputs = nil },
		"blocks":                       func(p *PublicModel) { p.Blocks, p.Offset = nil, nil },
		"blocks.0.name":                func(p *PublicModel) { p.Blocks[0].Name = "a b" },
		"blocks.1.name":                func(p *PublicModel) { p.Blocks[1].Name = "stage" },
		"blocks.0.outputs":             func(p *PublicModel) { p.Blocks[0].Outputs = 0 },
		"blocks.1.outputs":             func(p *PublicModel) { p.Blocks[1].Outputs = maxPublicOutputs - 1 },
		"blocks.0.range":               func(p *PublicModel) { p.Blocks[0].Range = 0 },
		"blocks.1.range":               func(p *PublicModel) { p.Blocks[1].Range = math.NaN() },
		"blocks.0.bias":                func(p *PublicModel) { p.Blocks[0].Bias = []float64{1} },
		"blocks.0.bias.1":              func(p *PublicModel) { p.Blocks[0].Bias[1] = math.Inf(1) },
		"blocks.0":                     func(p *PublicModel) { p.Blocks[0].Trees = nil },
		"blocks.0.trees.1.output":      tree(func(t *Tree) { t.Output = 2 }),
		"blocks.0.trees.1.leaf":        tree(func(t *Tree) { t.Leaf = t.Leaf[1:] }),
		"blocks.0.trees.1.leaf.1":      tree(func(t *Tree) { t.Leaf[1] = float32(math.NaN()) }),
		"blocks.0.trees.1.feature":     tree(func(t *Tree) { *t = Tree{Leaf: t.Leaf[:1]} }),
		"blocks.0.trees.1.feature.1":   tree(func(t *Tree) { t.Feature[1] = 4 }),
		"blocks.0.trees.1.threshold":   tree(func(t *Tree) { t.Threshold = nil }),
		"blocks.0.trees.1.threshold.0": tree(func(t *Tree) { t.Threshold[0] = float32(math.Inf(-1)) }),
		"blocks.0.trees.1.left.1":      tree(func(t *Tree) { t.Left[1] = 1 }),   // a loop
		"blocks.0.trees.1.right.0":     tree(func(t *Tree) { t.Right[0] = -1 }), // a leaf twice
		"blocks.0.trees.1.right.1":     tree(func(t *Tree) { t.Right[1] = -4 }), // no leaf
		"blocks.0.trees.1.left.0":      tree(func(t *Tree) { t.Left[0] = 2 }),   // no question
		"blocks.0.trees.1.left.32":     tree(func(t *Tree) { *t = chain(maxTreeDepth + 1) }),
		"blocks.1.weights.rows":        func(p *PublicModel) { p.Blocks[1].Weights.Rows = 3 },
		"blocks.1.weights.cols":        func(p *PublicModel) { p.Inputs = p.Inputs[:3] },
		"blocks.1.weights.bits":        func(p *PublicModel) { p.Blocks[1].Weights.Bits = 12 },
		"blocks.1.weights.scale":       func(p *PublicModel) { p.Blocks[1].Weights.Scale = nil },
		"blocks.1.weights.scale.0":     func(p *PublicModel) { p.Blocks[1].Weights.Scale[0] = -1 },
		"blocks.1.weights.values":      func(p *PublicModel) { p.Blocks[1].Weights.Values = make([]byte, 7) },
		"blocks.1.forest.trees":        func(p *PublicModel) { p.Blocks[1].Forest.Trees = nil },
		"blocks.1.forest.leaves":       func(p *PublicModel) { p.Blocks[1].Forest.Leaves = nil },
		"blocks.1.forest.leaves.cols":  func(p *PublicModel) { p.Blocks[1].Forest.Trees = p.Blocks[1].Forest.Trees[1:] },
		"blocks.1.forest.trees.0.leaf": func(p *PublicModel) {
			p.Blocks[1].Forest.Trees[0].Leaf = []float32{1, 2, 3}
		},
		"blocks.1.forest.trees.0.output": func(p *PublicModel) { p.Blocks[1].Forest.Trees[0].Output = 1 },
		"offset.name":                    func(p *PublicModel) { p.Offset.Name = "y" },
		"offset.outputs":                 func(p *PublicModel) { p.Offset.Outputs = 2 },
		"offset.range":                   func(p *PublicModel) { p.Offset.Range = 1 },
		"offset.bias.0":                  func(p *PublicModel) { p.Offset.Bias[0] = math.NaN() },
	} {
		p := samplePublic()
		spoil(p)
		var f *FieldError
		if err := p.validate(); !errors.As(err, &f) || f.Path != "features.public."+want {
			t.Errorf("want a refusal of %s, got %v", want, err)
		}
		if _, err := p.Encode(); err == nil {
			t.Errorf("%s: encoded", want)
		}
	}
}

// TestMatrix: integers of both sizes are within half a step of the numbers.
func TestMatrix(t *testing.T) {
	rows := [][]float64{{1, -0.3, 0.77, -1}, {0, 0, 0, 0}, {1e-9, 2e-9, -3e-9, 0}}
	for _, bits := range []int{8, 16} {
		data, err := json.Marshal(NewMatrix(rows, bits))
		if err != nil {
			t.Fatal(err)
		}
		m := new(Matrix)
		if err := json.Unmarshal(data, m); err != nil {
			t.Fatal(err)
		}
		if err := m.validate("", 3, 4); err != nil {
			t.Error(err)
		}
		for k, row := range rows {
			for j, v := range row {
				if d := math.Abs(m.At(k, j) - v); d > 0.5001*m.Scale[k] {
					t.Errorf("%d bits: entry (%d, %d) is %v, want %v", bits, k, j, m.At(k, j), v)
				}
			}
		}
	}
}

// FuzzParsePublic: no file breaks the reader, and what it accepts has one meaning.
func FuzzParsePublic(f *testing.F) {
	data, err := samplePublic().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePublic(data)
		if err != nil {
			return
		}
		again, err := p.Encode()
		if err != nil {
			return // longer than its file was
		}
		if q, err := parsePublic(again); err != nil {
			t.Fatalf("%v: %+v", err, q)
		}
	})
}

// TestScalesBesideAPublicModel: a declaration with a public model whose file is not read yet, and too few scales, is
// read without a panic, as devices read what others sign, and refused once the file is there. An empty list of scales
// is none.
func TestScalesBesideAPublicModel(t *testing.T) {
	for _, features := range []string{`"scales":[1]`, `"precondition":{"second_moments":[1],"damping":1}`} {
		model := samplePublic()
		file, err := model.Encode()
		if err != nil {
			t.Fatal(err)
		}
		declared := `{"version":1,"name":"a","events":{"format":"jsonl","max_line":65536},"features":{"columns":[` +
			`{"column":"age","kind":"numeric","min":0,"max":90,"scale":"symmetric","missing":{"fill":45}},` +
			`{"column":"job","kind":"categorical","vocabulary":["a","b"],"unknown":"invalid"},` +
			`{"column":"x","kind":"numeric","min":-1,"max":1,"scale":"raw","missing":{"fill":0}}],"public":"` + hashText(file) + `",` + features +
			`},"intercept":1,"norm_bound":0,"label":{"column":"y","positive":["1"],"negative":["0"]},"model":{"loss":"logistic","set":"ball"},` +
			`"privacy":{"epsilon":1,"delta":1e-6,"trust":"shuffle","honest_fraction":"1","coin":"fair","max_bits":0,"profile":"numeric","seal":"hpke"},` +
			`"schedule":{"users":1000,"plan":"practical","algorithm":"auto","cohort":0,"minimum_cohort":0,"rounds":{"max":0},"deadline":"1m0s",` +
			`"retention":"168h0m0s"},"validation":{"off":true}}`
		s, err := ParseDeclaration([]byte(declared))
		if err != nil {
			t.Fatal(err)
		}
		empty := strings.Replace(strings.Replace(declared, features, `"scales":[]`, 1), `"public":"`+hashText(file)+`",`, "",
			1)
		if _, err := ParseCanonical([]byte(empty)); err == nil || !strings.Contains(err.Error(), "canonical") {
			t.Errorf("an empty list of scales: %v", err)
		}
		var refused *FieldError
		if _, err := s.WithPublic(file); !errors.As(err, &refused) || !strings.HasPrefix(refused.Path, "features.") {
			t.Errorf("%s: %v, want a refusal of the scales", features, err)
		}
	}
}
