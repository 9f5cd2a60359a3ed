package task

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// hidden is a task whose only coordinates come from a public model of hidden columns.
const hidden = `
version: 1
name: demo
events: {format: csv, columns: [age, job, y]}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100, hidden: true}
    - {column: job, kind: categorical, vocabulary: [a, b], hidden: true}
  public: public.json
label: {column: y, min: -1, max: 1, offset: true}
model: {loss: squared, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000, plan: proved}
`

// ofHidden is its public model: one block of a weight and a tree, and an offset.
func ofHidden() *PublicModel {
	old := Tree{Feature: []int{0}, Threshold: []float32{50}, Left: []int{-1}, Right: []int{-2}}
	stage, offset := old, old
	stage.Leaf, offset.Leaf = []float32{-2, 4}, []float32{10, 20}
	return &PublicModel{Version: 1, Sample: PublicSample{Rows: 100, Leaf: 15}, Inputs: []string{"age", "job=a", "job=b"},
		Blocks: []PublicBlock{{Name: "stage", Outputs: 2, Range: 4, Bias: []float64{1, 0},
			Weights: NewMatrix([][]float64{{1, 0, 0}, {0, 0, 3}}, 8), Trees: []Tree{stage}}},
		Offset: &PublicBlock{Outputs: 1, Trees: []Tree{offset}}}
}

// written writes a task and the file of a public model into a folder and returns the task's path.
func written(t testing.TB, file string, p *PublicModel) string {
	t.Helper()
	dir := t.TempDir()
	data, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "task.yaml")
	for name, data := range map[string][]byte{path: []byte(file), filepath.Join(dir, "public.json"): data} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestPublicFileOfATask: a task file names the file, the declaration has its hash, and a reader of the declaration
// alone needs the same file before there is a map.
func TestPublicFileOfATask(t *testing.T) {
	path := written(t, hidden, ofHidden())
	s, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := s.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	file := s.Features.Public.Data()
	if want := fmt.Sprintf(`"public":"sha256:%x"`, sha256.Sum256(file)); !strings.Contains(string(canonical), want) {
		t.Errorf("want %s in %s", want, canonical)
	}
	bare, err := ParseCanonical(canonical)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bare.Compile(); err == nil || !strings.Contains(err.Error(), "features.public") {
		t.Errorf("compiled without the public model: %v", err)
	}
	for name, bad := range map[string][]byte{"none": nil, "another": append(file[:len(file):len(file)], ' ')} {
		if _, err := bare.WithPublic(bad); err == nil || !strings.Contains(err.Error(), "features.public") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := mustParse(t, plain).WithPublic(file); err == nil {
		t.Error("a public model for a task that declares none")
	}
	full, err := bare.WithPublic(file)
	if err != nil {
		t.Fatal(err)
	}
	for row, want := range map[string][4]float64{
		"0,a":  {-0.5, 0, 10, 0.5}, // (1 - 1 - 2)/4
		"80,b": {1, 0.75, 20, -1},  // 1 + 0.6 + 4 is above the range
		",":    {-0.25, 0, 10, 0.5},
	} {
		fields := strings.Split(row, ",")
		e := mapped(t, mustCompile(t, full), Row{Fields: fields, Label: "10.5"})
		if math.Abs(e.Value[0]-want[0]) > 1e-12 || math.Abs(e.Value[1]-want[1]) > 0.02 || e.Offset != want[2] ||
			e.Label != want[3] {
			t.Errorf("%s: %v, offset %v, label %v, want %v", row, e.Value, e.Offset, e.Label, want)
		}
	}
	other := ofHidden()
	other.Offset.Trees[0].Leaf[0]++
	again, err := Load(written(t, hidden, other), nil)
	if err != nil {
		t.Fatal(err)
	}
	form, err := again.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if d := Differences(canonical, form); len(d) != 1 || d[0].Key != "features.public" {
		t.Errorf("another public model: %v", d)
	}
	if out, err := Edit([]byte(hidden), []string{"features.public=other.json", "norm_bound=0.5"}, ""); err != nil ||
		!strings.Contains(string(out), "public: other.json") {
		t.Errorf("edited: %v\n%s", err, out)
	}
	if jsonl, err := full.ReadAs(JSONL); err != nil {
		t.Error(err)
	} else if m := mustCompile(t, jsonl); m.Dim() != 3 {
		t.Errorf("dimension %d in another format", m.Dim())
	}
}

// TestPublicModelOfOtherInputs: a model of other columns is refused by the first name that differs, and so are an
// offset that it has not and a bound that it cannot reach.
func TestPublicModelOfOtherInputs(t *testing.T) {
	for want, spoil := range map[string]func(p *PublicModel, sets *[]string){
		"features.public.inputs.1": func(p *PublicModel, _ *[]string) { p.Inputs[1] = "job=c" },
		"features.public.inputs.2": func(p *PublicModel, _ *[]string) { *p = *fewer(p) },
		"features.public.inputs.3": func(p *PublicModel, _ *[]string) { *p = *more(p) },
		"label.offset":             func(p *PublicModel, _ *[]string) { p.Offset = nil },
		"norm_bound":               func(_ *PublicModel, s *[]string) { *s = append(*s, "norm_bound=1.5") },
		"features = 0 coordinates": func(p *PublicModel, _ *[]string) { p.Blocks = nil },
		"features.scales": func(_ *PublicModel, s *[]string) {
			*s = append(*s,
				"features.scales=[1]")
		},
		"features.public = missing.json": func(_ *PublicModel, s *[]string) {
			*s = append(*s,
				"features.public=missing.json")
		},
		"task: features.public: want a public model": func(_ *PublicModel, s *[]string) {
			*s = append(*s,
				"features.public=task.yaml")
		},
	} {
		p, sets := ofHidden(), []string(nil)
		spoil(p, &sets)
		if _, err := Load(written(t, hidden, p), sets); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal of %s, got %v", want, err)
		}
	}
	if _, err := Parse([]byte(regression), []string{"label.offset=true"}); err == nil ||
		!strings.Contains(err.Error(), "label.offset") {
		t.Errorf("an offset without a public model: %v", err)
	}
	if _, err := Parse([]byte(plain), []string{"label.offset=true", "features.public=public.json"}); err == nil ||
		!strings.Contains(err.Error(), "label.offset") {
		t.Errorf("an offset of classes: %v", err)
	}
}

func fewer(p *PublicModel) *PublicModel {
	p.Inputs, p.Blocks[0].Weights = p.Inputs[:2], nil
	return p
}

func more(p *PublicModel) *PublicModel {
	p.Inputs, p.Blocks[0].Weights = append(p.Inputs, "age^2"), nil
	return p
}

// TestPublicBoundIsAttained: the bound of a block is the root of its outputs, and an event attains it.
func TestPublicBoundIsAttained(t *testing.T) {
	p := ofHidden()
	p.Blocks[0].Weights = NewMatrix([][]float64{{0, 100, 0}, {0, -100, 0}}, 16)
	s, err := Load(written(t, hidden, p), []string{"intercept=0"})
	if err != nil {
		t.Fatal(err)
	}
	m := mustCompile(t, s)
	if e := mapped(t, m, Row{Fields: []string{"0", "a"}, Label: "0"}); m.Bound() != math.Sqrt2 || e.Norm() != m.Bound() {
		t.Errorf("norm %v, the bound is %v", e.Norm(), m.Bound())
	}
}

// largest returns a map with a public model of the largest useful size: 400 trees of 8 leaves, 20 of 16 leaves for 200
// outputs, and 200 directions of 130 inputs.
func largest(t testing.TB) *FeatureMap {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var file strings.Builder
	fmt.Fprint(&file,
		"version: 1\nname: demo\nevents: {format: csv, header: true}\nfeatures:\n  public: public.json\n  columns:\n")
	p := &PublicModel{Version: 1, Sample: PublicSample{Rows: 2000, Leaf: 15}}
	for j := range 130 {
		fmt.Fprintf(&file, "    - {column: c%d, kind: numeric, min: -3, max: 3, hidden: true}\n", j)
		p.Inputs = append(p.Inputs, fmt.Sprintf("c%d", j))
	}
	file.WriteString("label: {column: y, positive: [\"1\"], negative: [\"0\"]}\nmodel: {loss: logistic}\n" +
		"privacy: {epsilon: 1, delta: 1e-6}\nschedule: {users: 10000}\n")
	tree := func(leaves int) (t Tree) {
		for i := range leaves - 1 { // balanced
			for _, list := range []struct {
				branches *[]int
				to       int
			}{{&t.Left, 2*i + 1}, {&t.Right, 2*i + 2}} {
				if list.to >= leaves-1 {
					list.to = -(list.to - (leaves - 1)) - 1
				}
				*list.branches = append(*list.branches, list.to)
			}
			t.Feature, t.Threshold = append(t.Feature, r.IntN(130)), append(t.Threshold, float32(r.NormFloat64()))
		}
		return t
	}
	stage := PublicBlock{Name: "stage", Outputs: 8, Range: 6}
	for i := range 400 {
		t := tree(8)
		t.Output = i / 50
		for range 8 {
			t.Leaf = append(t.Leaf, float32(math.Round(1e4*r.NormFloat64())/1e5))
		}
		stage.Trees = append(stage.Trees, t)
	}
	random := func(cols int) *Matrix {
		rows := make([][]float64, 200)
		for k := range rows {
			for range cols {
				rows[k] = append(rows[k], r.NormFloat64())
			}
		}
		return NewMatrix(rows, 8)
	}
	z := PublicBlock{Name: "z", Outputs: 200, Range: 2.5, Weights: random(130), Forest: &Forest{Leaves: random(320)}}
	for range 20 {
		z.Forest.Trees = append(z.Forest.Trees, tree(16))
	}
	p.Blocks = []PublicBlock{stage, z}
	s, err := Load(written(t, file.String(), p), nil)
	if err != nil {
		t.Fatal(err)
	}
	return mustCompile(t, s)
}

// TestLargestPublicModel: a model of the largest useful size fits into a file, maps without memory of its own, and a
// decoy takes part in all of it.
func TestLargestPublicModel(t *testing.T) {
	m := largest(t)
	var e convex.Example
	row := m.Decoy()
	row.Label = "1"
	var failed error
	if n := testing.AllocsPerRun(10, func() { failed = m.Map(row, &e) }); n != 0 || failed != nil {
		t.Errorf("%v allocations a row, %v", n, failed)
	}
	if len(e.Value) != 209 {
		t.Errorf("%d values", len(e.Value))
	}
	for _, w := range []*walker{&m.public.blocks[0].trees, &m.public.blocks[1].forest} {
		for i := range w.nodes {
			if n := w.nodes[i]; n.to[0] == int32(i) && n.to[1] != n.to[0] {
				t.Error("a leaf that leads on")
			}
		}
	}
}

// TestRowsWithoutALabelEndEarly: a row whose label is none is refused before its public model is computed, since the
// work of a decoy, all of it, follows.
func TestRowsWithoutALabelEndEarly(t *testing.T) {
	s, err := Load(written(t, hidden, ofHidden()), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := mustCompile(t, s)
	row := Row{Fields: []string{"60", "a"}, Label: "20"}
	if e := mapped(t, m, row); e.Offset != 20 || e.Label != 0 {
		t.Errorf("%+v", e)
	}
	var e convex.Example
	if row.Label = "none"; m.Map(row, &e) == nil || e.Offset != 0 {
		t.Errorf("an offset of %v is computed", e.Offset)
	}
}

// BenchmarkPublicMap measures the map of one event with a public model of the largest useful size.
func BenchmarkPublicMap(b *testing.B) {
	m := largest(b)
	row := m.Decoy()
	row.Label = "1"
	var e convex.Example
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Map(row, &e); err != nil {
			b.Fatal(err)
		}
	}
}
