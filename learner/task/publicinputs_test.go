package task

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestPublicInputsOfHatsAndTexts: hats and texts feed linear scores, as they are, and no trees, and take no memory.
func TestPublicInputsOfHatsAndTexts(t *testing.T) {
	file := strings.Replace(hidden, "{column: job, kind: categorical, vocabulary: [a, b], hidden: true}",
		"{column: job, kind: text, buckets: 2, words: 4, hidden: true}", 1)
	file = strings.Replace(file, ", min: 0, max: 100", "", 1)
	file = strings.Replace(file, "kind: numeric", "kind: hats, knots: [0, 100]", 1)
	p := ofHidden()
	p.Inputs = []string{"age@0", "age@100", "job#0", "job#1"}
	p.Blocks[0] = PublicBlock{Name: "stage", Outputs: 2, Range: 1,
		Weights: NewMatrix([][]float64{{0, 0.5, 0, 0}, {0, 0, 0.5, 0.5}}, 8)}
	if _, err := Load(written(t, file, p), nil); err == nil || !strings.Contains(err.Error(),
		"features.public.offset.trees.0.feature.0") {
		t.Errorf("a tree that asks about hats: %v", err)
	}
	p.Offset = &PublicBlock{Outputs: 1, Bias: []float64{1}, Weights: p.Blocks[0].Weights}
	p.Offset.Weights = NewMatrix([][]float64{{0, 0, 0, 0}}, 8)
	s, err := Load(written(t, file, p), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := mustCompile(t, s)
	var e convex.Example
	row := Row{Fields: []string{"50", "one Two three four, five"}, Label: "1"}
	var failed error
	if n := testing.AllocsPerRun(100, func() { failed = m.Map(row, &e) }); n != 0 || failed != nil {
		t.Errorf("%v allocations a row, %v", n, failed)
	}
	set := map[uint32]bool{}
	for _, word := range []string{"one", "two", "three", "four"} {
		set[murmur3(word, hashSeed("job"))%2] = true
	}
	if want := 0.5 * math.Sqrt(float64(len(set))); math.Abs(e.Value[0]-0.25) > 1e-12 || math.Abs(e.Value[1]-want) > 1e-12 {
		t.Errorf("outputs %v, want 0.25 and %v", e.Value[:2], want)
	}
}

// TestPublicModelOfTooFewInputs: a task with more inputs than fit into memory, which hidden columns may have, costs no
// memory where its public model has few: it is refused at the first that is missing.
func TestPublicModelOfTooFewInputs(t *testing.T) {
	p := ofHidden()
	p.Inputs, p.Offset = []string{"age", "job#0", "job#1"}, nil
	public, err := NewPublic(p)
	if err != nil {
		t.Fatal(err)
	}
	file := strings.Replace(hidden, "kind: categorical, vocabulary: [a, b]", "kind: hashed, buckets: 1048576", 1)
	s := mustParse(t, strings.Replace(file, "public.json", "'"+public.hash+"'", 1))
	if n := testing.AllocsPerRun(1, func() { _, err = s.WithPublic(public.data) }); n > 1000 {
		t.Errorf("%v allocations", n)
	}
	if err == nil || !strings.Contains(err.Error(), "features.public.inputs.3") {
		t.Errorf("%v", err)
	}
}
