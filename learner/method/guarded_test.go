package method_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
)

// A bowl is a quadratic risk, with one axis that is steeper than v says.
type bowl struct{ steep []float64 }

func (b bowl) gradient(x []float64) (g []float64, risk float64) {
	g = make([]float64, len(x))
	for i, h := range b.steep {
		g[i] = h * (x[i] - 1)
		risk += h * (x[i] - 1) * (x[i] - 1) / 2
	}
	return g, risk
}

func (b bowl) end(t *testing.T, m method.Method, sd float64, seed uint64) (risk float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	for !m.Done() {
		g, _ := b.gradient(m.Query().Point)
		for i := range g {
			g[i] += sd * r.NormFloat64()
		}
		if err := m.Step(method.Estimate{Gradient: g, Users: 10, PrivacyVariance: sd * sd}); err != nil {
			t.Fatal(err)
		}
	}
	_, risk = b.gradient(m.Model())
	return risk
}

// TestGuardedSteps: steps that are 40 times too long along one axis end far above the start, unless they are guarded:
// then they end below it, with noise and without, for any trust that is no larger than it may be. Where no axis is
// steeper than v says, the guard changes nothing.
func TestGuardedSteps(t *testing.T) {
	of := func(steep ...float64) (bowl, method.PAGDConfig) {
		return bowl{steep}, method.PAGDConfig{Dim: len(steep), Set: convex.Ball{R: 1e6}, Start: make([]float64, len(steep)),
			Steps: 8, V: 1}
	}
	b, c := of(40, 0.5, 0.5, 0.5)
	_, start := b.gradient(c.Start)
	plain, err := method.NewPAGD(c)
	if err != nil {
		t.Fatal(err)
	}
	if end := b.end(t, plain, 0, 0); end < 10*start {
		t.Fatalf("the risk ends at %v from %v: not much is left to guard against", end, start)
	}
	for _, trust := range []float64{0, 0.001, 0.02} {
		for _, sd := range []float64{0, 0.1, 0.3} {
			m, err := method.NewGuarded(c, trust)
			if err != nil {
				t.Fatal(err)
			}
			if end := b.end(t, m, sd, 3); !(end < start) {
				t.Errorf("trust %v, noise %v: the risk ends at %v, above the start's %v", trust, sd, end, start)
			}
		}
	}
	b, c = of(0.9, 0.5, 0.1)
	plain, err = method.NewPAGD(c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := method.NewGuarded(c, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.end(t, m, 0, 0), b.end(t, plain, 0, 0); got != want {
		t.Errorf("the risk ends at %v with a guard, at %v without one", got, want)
	}
}

// TestGuardedStates: a state that no steps lead to is refused, and changes nothing; another is taken up by a method
// wherever that is.
func TestGuardedStates(t *testing.T) {
	b, c := bowl{[]float64{40, 1}}, method.PAGDConfig{Dim: 2, Set: convex.Ball{R: 10}, Start: []float64{0, 0}, Steps: 4,
		V: 1}
	fresh := func() *method.Guarded {
		m, err := method.NewGuarded(c, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := fresh()
	states := [][]byte{bytesOf(t, m)}
	for !m.Done() {
		g, _ := b.gradient(m.Query().Point)
		if err := m.Step(method.Estimate{Gradient: g, Users: 1, PrivacyVariance: 0.1}); err != nil {
			t.Fatal(err)
		}
		states = append(states, bytesOf(t, m))
	}
	for _, state := range states {
		if err := m.UnmarshalBinary(state); err != nil || !bytes.Equal(bytesOf(t, m), state) {
			t.Errorf("a state is not taken up: %v", err)
		}
	}
	last := states[2]
	number := func(at int, x float64) []byte {
		out := slices.Clone(last)
		for i := range 8 {
			out[at+i] = byte(math.Float64bits(x) >> (8 * i))
		}
		return out
	}
	tail := len(last) - 8*6
	for name, state := range map[string][]byte{"cut": last[:len(last)-8], "without the last gradient": last[:tail],
		"longer": append(slices.Clone(last), 0), "v that fell": number(tail, 0.5), "v without end": number(tail, math.Inf(1)),
		"variance": number(tail+8, -1), "point": number(tail+16, 11), "gradient": number(tail+40, math.NaN()),
		"a gradient before the first step": append(slices.Clone(states[0]), last[tail:]...)} {
		m := fresh()
		before := bytesOf(t, m)
		if err := m.UnmarshalBinary(state); err == nil || !bytes.Equal(before, bytesOf(t, m)) {
			t.Errorf("%s: a state is taken up, or changes something: %v", name, err)
		}
	}
}

// TestGuardedReplays: a guarded method that is killed after every round, answered or void, goes on as one that never
// was: to the same bytes.
func TestGuardedReplays(t *testing.T) {
	b := bowl{[]float64{40, 3, 0.5}}
	c := method.PAGDConfig{Dim: 3, Set: convex.Ball{R: 2}, Start: []float64{0, 0, 0}, Steps: 9, V: 1}
	fresh := func() method.Method {
		m, err := method.NewGuarded(c, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	r, whole, killed := rand.New(rand.NewPCG(5, 6)), fresh(), fresh()
	for round := 0; !whole.Done(); round++ {
		if a, b := whole.Query(), killed.Query(); !slices.Equal(a.Point, b.Point) {
			t.Fatalf("round %d: asks at %v, would have at %v", round, b.Point, a.Point)
		}
		g, _ := b.gradient(whole.Query().Point)
		for i := range g {
			g[i] += 0.3 * r.NormFloat64()
		}
		for _, m := range []method.Method{whole, killed} {
			var err error
			if round%4 == 1 || round == 0 {
				err = m.Skip()
			} else {
				err = m.Step(method.Estimate{Gradient: slices.Clone(g), Users: 10, PrivacyVariance: 0.09})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		again := fresh()
		if err := again.UnmarshalBinary(bytesOf(t, killed)); err != nil {
			t.Fatal(err)
		}
		if killed = again; !bytes.Equal(bytesOf(t, killed), bytesOf(t, whole)) {
			t.Fatalf("round %d: another state", round)
		}
		clear(g)
	}
}
