package method_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// methods builds each method fresh, with the same dimension and number of steps, or the same horizon.
var methods = map[string]func(dim int, steps uint64) (learner.Algorithm, error){
	"psgd": func(dim int, steps uint64) (learner.Algorithm, error) {
		return method.NewPSGD(method.PSGDConfig{Dim: dim, Set: convex.Ball{R: 2}, Steps: steps, StepSize: 0.3})
	},
	"pagd": func(dim int, steps uint64) (learner.Algorithm, error) {
		return method.NewPAGD(method.PAGDConfig{Dim: dim, Set: convex.Ball{R: 2}, Steps: steps, V: 3})
	},
	"pagd strongly convex": func(dim int, steps uint64) (learner.Algorithm, error) {
		return method.NewPAGD(method.PAGDConfig{Dim: dim, Set: convex.Ball{R: 2}, Steps: steps, V: 3, Mu: 0.5})
	},
	"apgd": func(dim int, steps uint64) (learner.Algorithm, error) {
		return method.NewPAGD(method.PAGDConfig{Dim: dim, Set: convex.Ball{R: 2}, Steps: steps, V: 3, Interactive: true})
	},
	"prox": func(dim int, steps uint64) (learner.Algorithm, error) {
		return method.NewProx(method.ProxConfig{Dim: dim, Set: convex.Ball{R: 2}, Steps: steps,
			Average: method.ProxAverage(steps)})
	},
	"constant": func(dim int, steps uint64) (learner.Algorithm, error) {
		return method.NewStream(method.StreamConfig{Dim: dim, Set: convex.Ball{R: 2}, Horizon: steps, StepSize: 0.3})
	},
	"decaying": func(dim int, steps uint64) (learner.Algorithm, error) {
		return method.NewStream(method.StreamConfig{Dim: dim, Set: convex.Ball{R: 2}, Horizon: steps, StepSize: 0.3,
			Decaying: true})
	},
	"epochs": func(dim int, steps uint64) (learner.Algorithm, error) {
		return method.NewEpochs(method.EpochsConfig{Dim: dim, Set: convex.Ball{R: 2}, Horizon: steps, V: 3, Smoothness: 1})
	},
	"restarts": func(dim int, steps uint64) (learner.Algorithm, error) {
		ball := convex.Ball{R: 2}
		stages := []method.Stage{method.PAGDConfig{Dim: dim, Set: ball, Steps: 1, V: 3, Ridge: 0.25}}
		if steps > 1 {
			stages = append(stages, method.PSGDConfig{Dim: dim, Set: ball, Steps: steps - 1, StepSize: 0.3, Ridge: 0.25})
		}
		return method.NewRestarts(method.RestartsConfig{Dim: dim, Set: ball, Stages: stages})
	},
}

func build(t rapid.TB, name string, dim int, steps uint64) learner.Algorithm {
	a, err := methods[name](dim, steps)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func bytesOf(t rapid.TB, a learner.Algorithm) []byte {
	b, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// anyPlan draws a plan of any method, with or without an end, over any set, and the set.
func anyPlan(t *rapid.T) (*wire.Plan, convex.Set) {
	dim, size := rapid.IntRange(1, 4).Draw(t, "dim"), rapid.Float64Range(0.01, 100).Draw(t, "size")
	declared := rapid.SampledFrom([]convex.SetDeclaration{{Radius: size}, {Kind: "nonnegative", Radius: size},
		{Kind: "simplex", Radius: size},
		{Kind: "l1", Radius: size}, {Kind: "box", Min: -size, Max: size / 2}, {Kind: "box", Min: size, Max: 2 * size}}).Draw(
		t, "set")
	set, err := declared.New(dim)
	if err != nil {
		t.Fatal(err)
	}
	ridge := rapid.SampledFrom([]float64{0, 0.1, 3}).Draw(t, "ridge")
	method := rapid.SampledFrom([]string{"psgd", "pagd", "pgd", "apgd"}).Draw(t, "method")
	var phases []*wire.Phase
	for range rapid.IntRange(1, 3).Draw(t, "phases") {
		rounds := rapid.Uint64Range(1, 6).Draw(t, "rounds")
		switch method {
		case "pagd":
			beta := rapid.Float64Range(0.1, 10).Draw(t, "smoothness")
			phases = append(phases, accelerated(rounds, 2*beta*rapid.SampledFrom([]float64{1, 1.5, 40}).Draw(t, "v"),
				rapid.SampledFrom([]float64{0, ridge}).Draw(t, "mu"), beta))
		case "apgd":
			again := accelerated(rounds, 2*rapid.Float64Range(0.1, 10).Draw(t, "smoothness"),
				rapid.SampledFrom([]float64{0, ridge}).Draw(t, "mu"), 0.1)
			again.RoundsPerUser, again.Again = uint32(rounds), len(phases) > 0
			phases = append(phases, again)
		case "pgd":
			phases = append(phases, interactive(rounds, rapid.Float64Range(0.001, 10).Draw(t, "step size")))
		default:
			phases = append(phases, descent(rounds, rapid.Float64Range(0.001, 10).Draw(t, "step size")))
		}
	}
	p := series(dim, declared, ridge, phases...)
	switch method {
	case "psgd":
		p.Continuous = rapid.SampledFrom([]wire.Continuous{0, wire.Continuous_CONTINUOUS_CONSTANT,
			wire.Continuous_CONTINUOUS_DECAYING}).Draw(t, "continuous")
	case "pagd":
		p.Continuous = rapid.SampledFrom([]wire.Continuous{0, wire.Continuous_CONTINUOUS_EPOCHS}).Draw(t, "continuous")
	}
	return p, set
}

func estimate(t *rapid.T, dim int) method.Estimate {
	return method.Estimate{Gradient: rapid.SliceOfN(rapid.Float64Range(-4, 4), dim, dim).Draw(t, "gradient"), Users: 1}
}

// TestResumeEqualsUninterrupted: stop anywhere, forget everything but the bytes, go on: nobody can tell. Every
// point that is asked for and every model lies in the set, and steps are numbered one after another, those that
// were passed over too.
func TestResumeEqualsUninterrupted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan, set := anyPlan(t)
		begin := func() learner.Algorithm {
			a, err := learner.New(plan)
			if err != nil {
				t.Fatalf("%+v: %v", plan, err)
			}
			return a
		}
		whole, resumed := begin(), begin()
		steps := manifest.Planned(plan)
		if manifest.Endless(plan) {
			steps += rapid.Uint64Range(0, 20).Draw(t, "more")
		}
		for step := uint64(1); step <= steps; step++ {
			if rapid.Bool().Draw(t, "restart") {
				saved := bytesOf(t, resumed)
				resumed = begin()
				if err := resumed.UnmarshalBinary(saved); err != nil {
					t.Fatalf("before step %d: %v", step, err)
				}
			}
			skip, e := rapid.IntRange(0, 4).Draw(t, "skip") == 0, estimate(t, manifest.Dim(plan))
			for _, a := range []learner.Algorithm{whole, resumed} {
				if q := a.Query(); q.Step != step || !set.Contains(q.Point) {
					t.Fatalf("query %d inside the set: %v, want step %d inside", q.Step, set.Contains(q.Point), step)
				}
				var err error
				if skip {
					err = a.Skip()
				} else {
					err = a.Step(e)
				}
				if err != nil {
					t.Fatal(err)
				}
				if !set.Contains(a.Model()) {
					t.Fatalf("step %d: the model is outside the set", step)
				}
			}
			if !bytes.Equal(bytesOf(t, whole), bytesOf(t, resumed)) {
				t.Fatalf("after %d steps: the states differ", step)
			}
			if n := len(bytesOf(t, whole)); n > 3*(54+16*manifest.Dim(plan)) {
				t.Fatalf("after %d steps: the state has %d bytes, more than three stages in one another", step, n)
			}
		}
		if whole.Done() != (!manifest.Endless(plan)) {
			t.Fatalf("done: %v after %d steps, continuous %q", whole.Done(), steps, plan.Continuous)
		}
		if before := bytesOf(t, whole); whole.Done() {
			if whole.Step(estimate(t, manifest.Dim(plan))) == nil || whole.Skip() == nil ||
				!bytes.Equal(before, bytesOf(t, whole)) {
				t.Fatal("a step after the last one was accepted")
			}
		}
	})
}

// TestRefusedStepChangesNothing: a refused estimate changes nothing, nor does what the caller does with slices
// it was given.
func TestRefusedStepChangesNothing(t *testing.T) {
	for name := range methods {
		a := build(t, name, 2, 3)
		if err := a.Step(method.Estimate{Gradient: []float64{1, -1}, Users: 5}); err != nil {
			t.Fatal(err)
		}
		before := bytesOf(t, a)
		for _, e := range []method.Estimate{
			{Gradient: []float64{1}, Users: 1},
			{Gradient: []float64{1, 2, 3}, Users: 1},
			{Gradient: []float64{1, 2}},
			{Gradient: []float64{1, math.NaN()}, Users: 1},
			{Gradient: []float64{math.Inf(-1), 1}, Users: 1},
			{Gradient: []float64{math.MaxFloat64, math.MaxFloat64}, Users: 1},
			{Gradient: []float64{1, 2}, Users: 1, PrivacyVariance: -1},
			{Gradient: []float64{1, 2}, Users: 1, RoundingVariance: math.NaN()},
			{Gradient: []float64{1, 2}, Users: 1, PrivacyVariance: math.Inf(1)},
		} {
			if err := a.Step(e); err == nil {
				t.Errorf("%s: accepted %+v", name, e)
			}
		}
		a.Query().Point[0] = 99
		a.Model()[0] = 99
		if !bytes.Equal(before, bytesOf(t, a)) {
			t.Errorf("%s: the state changed", name)
		}
	}
}

func TestStateOfAnotherConfigurationIsRefused(t *testing.T) {
	psgd := func(c method.PSGDConfig) learner.Algorithm {
		a, err := method.NewPSGD(c)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	pagd := func(c method.PAGDConfig) learner.Algorithm {
		a, err := method.NewPAGD(c)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ball := convex.Ball{R: 2}
	all := []learner.Algorithm{
		psgd(method.PSGDConfig{Dim: 2, Set: ball, Steps: 3, StepSize: 1}),
		psgd(method.PSGDConfig{Dim: 2, Set: ball, Steps: 3, StepSize: 1, Start: []float64{1, 0}}),
		psgd(method.PSGDConfig{Dim: 3, Set: ball, Steps: 3, StepSize: 1}),
		psgd(method.PSGDConfig{Dim: 2, Set: convex.Ball{R: 3}, Steps: 3, StepSize: 1}),
		psgd(method.PSGDConfig{Dim: 2, Set: ball, Steps: 4, StepSize: 1}),
		psgd(method.PSGDConfig{Dim: 2, Set: ball, Steps: 3, StepSize: 2}),
		pagd(method.PAGDConfig{Dim: 2, Set: ball, Steps: 3, V: 1}),
		pagd(method.PAGDConfig{Dim: 2, Set: ball, Steps: 3, V: 2}),
		pagd(method.PAGDConfig{Dim: 2, Set: ball, Steps: 3, V: 2, Interactive: true}),
		pagd(method.PAGDConfig{Dim: 2, Set: ball, Steps: 3, V: 1, Mu: 1}),
		psgd(method.PSGDConfig{Dim: 2, Set: ball, Steps: 3, StepSize: 1, Ridge: 1}),
		pagd(method.PAGDConfig{Dim: 2, Set: ball, Steps: 3, V: 1, Ridge: 1}),
		pagd(method.PAGDConfig{Dim: 2, Set: convex.L1Ball{R: 2}, Steps: 3, V: 1}),
		pagd(method.PAGDConfig{Dim: 2, Set: convex.Nonnegative{R: 2}, Steps: 3, V: 1}),
	}
	for _, c := range []method.StreamConfig{
		{Dim: 2, Set: ball, Horizon: 3, StepSize: 1}, {Dim: 2, Set: ball, Horizon: 4, StepSize: 1},
		{Dim: 2, Set: ball, Horizon: 3, StepSize: 2}, {Dim: 2, Set: ball, Horizon: 3, StepSize: 1, Decaying: true},
	} {
		a, err := method.NewStream(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	for _, c := range []method.EpochsConfig{
		{Dim: 2, Set: ball, Horizon: 3, V: 2, Smoothness: 1}, {Dim: 2, Set: ball, Horizon: 4, V: 2, Smoothness: 1},
		{Dim: 2, Set: ball, Horizon: 3, V: 3, Smoothness: 1}, {Dim: 2, Set: ball, Horizon: 3, V: 3, Smoothness: 1.5},
		{Dim: 2, Set: ball, Horizon: 3, V: 2, Smoothness: 1, Ridge: 1},
	} {
		a, err := method.NewEpochs(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	for _, c := range []method.ProxConfig{
		{Dim: 2, Set: ball, Steps: 3, Average: 2}, {Dim: 2, Set: ball, Steps: 4, Average: 2}, {Dim: 2, Set: ball, Steps: 3,
			Average: 1},
		{Dim: 2, Set: ball, Steps: 3, Average: 2, Start: []float64{1, 0}},
	} {
		a, err := method.NewProx(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	one, two := method.PAGDConfig{Dim: 2, Set: ball, Steps: 3, V: 1}, method.PAGDConfig{Dim: 2, Set: ball, Steps: 4, V: 1}
	for _, stages := range [][]method.Stage{{one}, {one, one}, {one, two}, {two, one}, {one, one, one}} {
		a, err := method.NewRestarts(method.RestartsConfig{Dim: 2, Set: ball, Stages: stages})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	for i, from := range all {
		for j, to := range all {
			err := to.UnmarshalBinary(bytesOf(t, from))
			if i == j && err != nil {
				t.Errorf("state %d: refused its own configuration: %v", i, err)
			}
			if i != j && !errors.Is(err, method.ErrState) {
				t.Errorf("state %d into configuration %d: error %v, want ErrState", i, j, err)
			}
		}
	}
}

func TestImpossibleStateIsRefused(t *testing.T) {
	a := build(t, "pagd", 2, 3)
	good := bytesOf(t, a)
	const vectors = 54
	put := func(at int, x float64) []byte {
		b := bytes.Clone(good)
		b[6] = 1 // one step taken, so that positions are free
		binary.LittleEndian.PutUint64(b[at:], math.Float64bits(x))
		return b
	}
	if err := a.UnmarshalBinary(put(vectors, 1.5)); err != nil {
		t.Errorf("a possible state: %v", err)
	}
	late, passed := bytes.Clone(good), bytes.Clone(good)
	late[6] = 4
	passed[6], passed[14] = 2, 2
	huge := bytes.Clone(good)
	for k := range 8 {
		huge[14+k] = 255 // 2^64-1 passed over and one taken: their sum is 0
	}
	huge[6] = 1
	moved := put(vectors, 1.5)
	moved[6] = 0
	for name, b := range map[string][]byte{
		"empty": nil, "short": good[:len(good)-1], "long": append(bytes.Clone(good), 0), "header": good[:vectors-1],
		"outside": put(vectors, 2.5), "aggregate outside": put(vectors+16, -2.5), "nan": put(vectors, math.NaN()),
		"inf":            put(vectors+8, math.Inf(1)),
		"too many steps": late, "too many passed over": passed, "overflow": huge, "moved without a step": moved,
	} {
		before := bytesOf(t, a)
		if err := a.UnmarshalBinary(b); !errors.Is(err, method.ErrState) {
			t.Errorf("%s: error %v, want ErrState", name, err)
		}
		if !bytes.Equal(before, bytesOf(t, a)) {
			t.Errorf("%s: a refused state changed the receiver", name)
		}
	}
}

// FuzzState: bytes are refused, or are exactly the encoding of the state that they make.
func FuzzState(f *testing.F) {
	for name := range methods {
		a := build(f, name, 2, 3)
		f.Add(bytesOf(f, a))
		if err := a.Step(method.Estimate{Gradient: []float64{0.5, -8}, Users: 1}); err != nil {
			f.Fatal(err)
		}
		f.Add(bytesOf(f, a))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		for name := range methods {
			a := build(t, name, 2, 3)
			if a.UnmarshalBinary(data) != nil {
				continue
			}
			if !bytes.Equal(bytesOf(t, a), data) {
				t.Fatalf("%s: accepted bytes that are not canonical", name)
			}
			if !a.Done() {
				_ = a.Step(method.Estimate{Gradient: a.Query().Point, Users: 1})
			}
			if m := a.Model(); !(convex.Norm(m) <= 2) {
				t.Fatalf("%s: model at norm %v, want at most 2", name, convex.Norm(m))
			}
		}
	})
}

func TestConfigurationsAreRefused(t *testing.T) {
	ball := convex.Ball{R: 1}
	good := method.PSGDConfig{Dim: 2, Set: ball, Steps: 3, StepSize: 1}
	for name, change := range map[string]func(*method.PSGDConfig){
		"dim": func(c *method.PSGDConfig) { c.Dim = 0 }, "dim large": func(c *method.PSGDConfig) { c.Dim = 1 << 30 },
		"set": func(c *method.PSGDConfig) { c.Set = nil }, "radius": func(c *method.PSGDConfig) { c.Set = convex.Ball{} },
		"steps": func(c *method.PSGDConfig) { c.Steps = 0 }, "steps large": func(c *method.PSGDConfig) { c.Steps = 1 << 60 },
		"eta":           func(c *method.PSGDConfig) { c.StepSize = 0 },
		"eta nan":       func(c *method.PSGDConfig) { c.StepSize = math.NaN() },
		"start":         func(c *method.PSGDConfig) { c.Start = []float64{1} },
		"start outside": func(c *method.PSGDConfig) { c.Start = []float64{1, 1} },
		"start nan":     func(c *method.PSGDConfig) { c.Start = []float64{math.NaN(), 0} },
		"ridge":         func(c *method.PSGDConfig) { c.Ridge = -1 },
		"ridge nan":     func(c *method.PSGDConfig) { c.Ridge = math.NaN() },
		"mu":            func(c *method.PSGDConfig) { c.Mu = -1 }, "mu nan": func(c *method.PSGDConfig) { c.Mu = math.NaN() },
		"mu large": func(c *method.PSGDConfig) { c.Mu = 1 },
	} {
		c := good
		change(&c)
		if _, err := method.NewPSGD(c); err == nil {
			t.Errorf("%s: accepted %+v", name, c)
		}
	}
	for _, c := range []method.PAGDConfig{
		{Dim: 2, Set: ball, Steps: 3}, {Dim: 2, Set: ball, Steps: 3, V: math.Inf(1)}, {Dim: 2, Set: ball, Steps: 3, V: 1,
			Mu: -1},
		{Dim: 2, Set: ball, Steps: 3, V: 1, Mu: math.NaN()}, {Dim: 0, Set: ball, Steps: 3, V: 1},
	} {
		if _, err := method.NewPAGD(c); err == nil {
			t.Errorf("accepted %+v", c)
		}
	}
}
