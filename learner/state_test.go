package learner_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
)

// methods builds each method fresh, with the same dimension and number of steps.
var methods = map[string]func(dim int, steps uint64) (learner.Algorithm, error){
	"psgd": func(dim int, steps uint64) (learner.Algorithm, error) {
		return learner.NewPSGD(learner.PSGDConfig{Dim: dim, Set: convex.Ball{R: 2}, Steps: steps, StepSize: 0.3})
	},
	"pagd": func(dim int, steps uint64) (learner.Algorithm, error) {
		return learner.NewPAGD(learner.PAGDConfig{Dim: dim, Set: convex.Ball{R: 2}, Steps: steps, V: 3})
	},
	"pagd strongly convex": func(dim int, steps uint64) (learner.Algorithm, error) {
		return learner.NewPAGD(learner.PAGDConfig{Dim: dim, Set: convex.Ball{R: 2}, Steps: steps, V: 3, Mu: 0.5})
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

func methodName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"psgd", "pagd", "pagd strongly convex"}).Draw(t, "method")
}

func estimates(t *rapid.T, dim, n int) []learner.Estimate {
	out := make([]learner.Estimate, n)
	for i := range out {
		out[i] = learner.Estimate{Gradient: rapid.SliceOfN(rapid.Float64Range(-4, 4), dim, dim).Draw(t, "gradient"), Users: 1}
	}
	return out
}

// Stop anywhere, forget everything but the bytes, go on: nobody can tell.
func TestResumeEqualsUninterrupted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, dim, steps := methodName(t), rapid.IntRange(1, 4).Draw(t, "dim"), rapid.IntRange(1, 12).Draw(t, "steps")
		answers := estimates(t, dim, steps)
		whole, resumed := build(t, name, dim, uint64(steps)), build(t, name, dim, uint64(steps))
		for k, e := range answers {
			if rapid.Bool().Draw(t, "restart") {
				saved := bytesOf(t, resumed)
				resumed = build(t, name, dim, uint64(steps))
				if err := resumed.UnmarshalBinary(saved); err != nil {
					t.Fatalf("after %d steps: %v", k, err)
				}
			}
			for _, a := range []learner.Algorithm{whole, resumed} {
				if q := a.Query(); q.Step != uint64(k+1) || convex.Norm(q.Point) > 2 {
					t.Fatalf("query %d at norm %v, want step %d inside radius 2", q.Step, convex.Norm(q.Point), k+1)
				}
				if err := a.Step(e); err != nil {
					t.Fatal(err)
				}
				if convex.Norm(a.Model()) > 2 {
					t.Fatalf("model at norm %v, want inside radius 2", convex.Norm(a.Model()))
				}
			}
			if !bytes.Equal(bytesOf(t, whole), bytesOf(t, resumed)) {
				t.Fatalf("after %d steps: the states differ", k+1)
			}
		}
		if !whole.Done() || whole.Step(answers[0]) == nil {
			t.Fatal("a step after the last one was accepted")
		}
	})
}

// A refused estimate changes nothing, nor does what the caller does with slices it was given.
func TestRefusedStepChangesNothing(t *testing.T) {
	for name := range methods {
		a := build(t, name, 2, 3)
		if err := a.Step(learner.Estimate{Gradient: []float64{1, -1}, Users: 5}); err != nil {
			t.Fatal(err)
		}
		before := bytesOf(t, a)
		for _, e := range []learner.Estimate{
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
	psgd := func(c learner.PSGDConfig) learner.Algorithm {
		a, err := learner.NewPSGD(c)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	pagd := func(c learner.PAGDConfig) learner.Algorithm {
		a, err := learner.NewPAGD(c)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ball := convex.Ball{R: 2}
	all := []learner.Algorithm{
		psgd(learner.PSGDConfig{Dim: 2, Set: ball, Steps: 3, StepSize: 1}),
		psgd(learner.PSGDConfig{Dim: 2, Set: ball, Steps: 3, StepSize: 1, Start: []float64{1, 0}}),
		psgd(learner.PSGDConfig{Dim: 3, Set: ball, Steps: 3, StepSize: 1}),
		psgd(learner.PSGDConfig{Dim: 2, Set: convex.Ball{R: 3}, Steps: 3, StepSize: 1}),
		psgd(learner.PSGDConfig{Dim: 2, Set: ball, Steps: 4, StepSize: 1}),
		psgd(learner.PSGDConfig{Dim: 2, Set: ball, Steps: 3, StepSize: 2}),
		pagd(learner.PAGDConfig{Dim: 2, Set: ball, Steps: 3, V: 1}),
		pagd(learner.PAGDConfig{Dim: 2, Set: ball, Steps: 3, V: 2}),
		pagd(learner.PAGDConfig{Dim: 2, Set: ball, Steps: 3, V: 1, Mu: 1}),
	}
	for i, from := range all {
		for j, to := range all {
			err := to.UnmarshalBinary(bytesOf(t, from))
			if i == j && err != nil {
				t.Errorf("state %d: refused its own configuration: %v", i, err)
			}
			if i != j && !errors.Is(err, learner.ErrState) {
				t.Errorf("state %d into configuration %d: error %v, want ErrState", i, j, err)
			}
		}
	}
}

func TestImpossibleStateIsRefused(t *testing.T) {
	a := build(t, "pagd", 2, 3)
	good := bytesOf(t, a)
	put := func(at int, x float64) []byte {
		b := bytes.Clone(good)
		b[14] = 1 // one step taken, so that positions are free
		binary.LittleEndian.PutUint64(b[at:], math.Float64bits(x))
		return b
	}
	if err := a.UnmarshalBinary(put(46, 1.5)); err != nil {
		t.Errorf("a possible state: %v", err)
	}
	late := bytes.Clone(good)
	late[14] = 4
	moved := put(46, 1.5)
	moved[14] = 0
	for name, b := range map[string][]byte{
		"empty": nil, "short": good[:len(good)-1], "long": append(bytes.Clone(good), 0),
		"outside": put(46, 2.5), "aggregate outside": put(62, -2.5), "nan": put(46, math.NaN()), "inf": put(54, math.Inf(1)),
		"too many steps": late, "moved without a step": moved,
	} {
		before := bytesOf(t, a)
		if err := a.UnmarshalBinary(b); !errors.Is(err, learner.ErrState) {
			t.Errorf("%s: error %v, want ErrState", name, err)
		}
		if !bytes.Equal(before, bytesOf(t, a)) {
			t.Errorf("%s: a refused state changed the receiver", name)
		}
	}
}

// Bytes are refused, or are exactly what the state that they make is written as.
func FuzzState(f *testing.F) {
	for name := range methods {
		a := build(f, name, 2, 3)
		f.Add(bytesOf(f, a))
		if err := a.Step(learner.Estimate{Gradient: []float64{0.5, -8}, Users: 1}); err != nil {
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
				_ = a.Step(learner.Estimate{Gradient: a.Query().Point, Users: 1})
			}
			if m := a.Model(); !(convex.Norm(m) <= 2) {
				t.Fatalf("%s: model at norm %v, want at most 2", name, convex.Norm(m))
			}
		}
	})
}

func TestConfigurationsAreRefused(t *testing.T) {
	ball := convex.Ball{R: 1}
	good := learner.PSGDConfig{Dim: 2, Set: ball, Steps: 3, StepSize: 1}
	for name, change := range map[string]func(*learner.PSGDConfig){
		"dim": func(c *learner.PSGDConfig) { c.Dim = 0 }, "dim large": func(c *learner.PSGDConfig) { c.Dim = 1 << 30 },
		"set": func(c *learner.PSGDConfig) { c.Set = nil }, "radius": func(c *learner.PSGDConfig) { c.Set = convex.Ball{} },
		"steps": func(c *learner.PSGDConfig) { c.Steps = 0 }, "steps large": func(c *learner.PSGDConfig) { c.Steps = 1 << 60 },
		"eta": func(c *learner.PSGDConfig) { c.StepSize = 0 }, "eta nan": func(c *learner.PSGDConfig) { c.StepSize = math.NaN() },
		"start": func(c *learner.PSGDConfig) { c.Start = []float64{1} }, "start outside": func(c *learner.PSGDConfig) { c.Start = []float64{1, 1} },
		"start nan": func(c *learner.PSGDConfig) { c.Start = []float64{math.NaN(), 0} },
	} {
		c := good
		change(&c)
		if _, err := learner.NewPSGD(c); err == nil {
			t.Errorf("%s: accepted %+v", name, c)
		}
	}
	for _, c := range []learner.PAGDConfig{
		{Dim: 2, Set: ball, Steps: 3}, {Dim: 2, Set: ball, Steps: 3, V: math.Inf(1)}, {Dim: 2, Set: ball, Steps: 3, V: 1, Mu: -1},
		{Dim: 2, Set: ball, Steps: 3, V: 1, Mu: math.NaN()}, {Dim: 0, Set: ball, Steps: 3, V: 1},
	} {
		if _, err := learner.NewPAGD(c); err == nil {
			t.Errorf("accepted %+v", c)
		}
	}
}
