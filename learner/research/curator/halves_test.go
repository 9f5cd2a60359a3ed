package curator

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

func TestHalvesAreDisjoint(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 5000).Draw(rt, "n")
		phases := rapid.IntRange(1, mostHalves(n)).Draw(rt, "phases")
		next := 0
		for i, part := range halves(n, phases) {
			if part[0] != next || part[1] <= part[0] {
				rt.Fatalf("%d people, phase %d: %v after %d", n, i, part, next)
			}
			next = part[1]
		}
		if next != n {
			rt.Fatalf("%d of %d people", next, n)
		}
	})
}

// A recorder is a phase that notes from where it starts and of whom it is, and releases the next number or halts.
type recorder struct {
	halts bool
	from  []float64
	of    []int
}

func (r *recorder) release(_ context.Context, _ *table, from []float64, people []int, _ rand.Source) ([]float64, bool,
	error) {
	r.from, r.of = from, people
	return []float64{from[0] + 1}, !r.halts, nil
}

func (r *recorder) cost() (std, delta float64) { return 1, 1e-6 }
func (r *recorder) inexact() float64           { return 0 }

// TestPhasesInTurns: every phase runs on its own people, and after a halt from the last point before it, which is
// what is returned, whatever later phases would release.
func TestPhasesInTurns(t *testing.T) {
	p := public(16, 1, 1, 1)
	for halts := range 5 { // the phase that halts, or none
		phases, turns := make([]*recorder, 4), make([]turn, 4)
		for i := range phases {
			phases[i] = &recorder{halts: i == halts}
			turns[i] = phases[i]
		}
		parts := [][2]int{{0, 8}, {8, 12}, {12, 14}, {14, 16}}
		r, err := inTurns("recorded", p, parts, turns, 1).Fit(t.Context(), convex.Logistic{}, make([]Person, 16),
			rand.NewPCG(1, 2))
		if err != nil || r.Halted != (halts < 4) || r.Phase != halts || r.Model[0] != float64(halts) {
			t.Errorf("halted in phase %d: %+v, %v", halts, r, err)
		}
		for i, phase := range phases {
			if !slices.Equal(phase.of, numbers(parts[i])) || phase.from[0] != float64(min(i, halts)) {
				t.Errorf("halted in phase %d: phase %d runs from %v on people %v", halts, i, phase.from, phase.of)
			}
		}
	}
}

// TestPassMovesByLittle: one hostile person moves the mean point by no more than is charged for.
func TestPassMovesByLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var closest float64
	for round := range 200 {
		p := public(1+rng.IntN(8), 2, 1+rng.IntN(3), 1)
		p.Ridge, p.Lipschitz = []float64{0, 0.05}[round%2], 0.3
		p.Set = []convex.Set{convex.Ball{R: 5}, convex.Nonnegative{R: 0.3}, convex.Box{Dim: p.Dim, Min: -0.2,
			Max: 1}}[round%3]
		s, err := newPass(p, p.longestStep()*rng.Float64(), p.People)
		if err != nil {
			t.Fatal(err)
		}
		run := func(people []Person) []float64 {
			table, err := newTable(p, convex.Logistic{}, people)
			if err != nil {
				t.Fatal(err)
			}
			x, err := s.mean(t.Context(), table, p.start(), numbers([2]int{0, p.People}))
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		people := crowd(rng, p.People, p.Items, p.Dim)
		if round%4 == 0 {
			people = make([]Person, p.People) // nobody has rows
		}
		far := make([]float64, p.Dim)
		far[0] = 1
		people[0] = Person{{Value: far, Label: 1}}
		x := run(people)
		people[0] = Person{{Value: far, Label: -1}}
		d := distance(x, run(people))
		if !(d <= s.apart) {
			t.Errorf("moved by %v, at most %v", d, s.apart)
		}
		closest = max(closest, d/s.apart)
	}
	t.Logf("closest: moved by %.3f of the bound", closest)
	if closest < 0.8 {
		t.Errorf("no pair came closer than %v to the bound: the test is weak", closest)
	}
}

// TestLongestStepBringsNothingApart: of a row that is as curved as was planned for, steps from two points bring
// these no further apart; steps a tenth longer do, and are refused.
func TestLongestStepBringsNothingApart(t *testing.T) {
	p := public(1, 1, 1, 1)
	p.Smoothness = 1
	table, err := newTable(p, convex.Squared{}, []Person{{{Value: []float64{1}, Label: 0}}})
	if err != nil {
		t.Fatal(err)
	}
	apart := func(eta float64) float64 {
		a, b, g := 0.1, -0.2, make([]float64, 1)
		table.gradient(g, []float64{a}, 0)
		a -= eta * g[0]
		table.gradient(g, []float64{b}, 0)
		b -= eta * g[0]
		return math.Abs(a-b) / 0.3
	}
	longest := p.longestStep()
	if got := apart(longest); !(got <= 1) || !(apart(1.1*longest) > 1) {
		t.Errorf("steps of %v bring points %v times as far apart, and longer ones %v times", longest, got, apart(1.1*longest))
	}
	if _, err := newPass(p, 1.1*longest, 1); err == nil {
		t.Error("a longer step is not refused")
	}
}

// TestBaselinesLearn: all three release points of the set that are better than the start, within their budget, and
// more people help.
func TestBaselinesLearn(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	people := crowd(rng, 4000, 2, 3)
	zero := meanLoss(convex.Logistic{}, make([]float64, 3), people)
	for _, name := range []string{"output", "output-sgd", "output-phases"} {
		m, ok := Of(name)
		if !ok {
			t.Fatal(name)
		}
		last := math.Inf(1)
		for _, n := range []int{1, 200, 4000} {
			p := public(n, 2, 3, 2)
			plan, err := m.Plan(p)
			if err != nil {
				t.Fatal(err)
			}
			if plan.Spent.Epsilon != 2 || !(plan.Spent.Delta > 0 && plan.Spent.Delta <= 1e-6) {
				t.Errorf("%s: spent %+v", name, plan.Spent)
			}
			if !(plan.Bound < last) {
				t.Errorf("%s: bound %v of %d people, %v of fewer", name, plan.Bound, n, last)
			}
			last = plan.Bound
			r, err := plan.Fit(t.Context(), convex.Logistic{}, people[:n], rand.NewPCG(3, 4))
			if err != nil {
				t.Fatal(err)
			}
			if !p.Set.Contains(r.Model) || r.Phase != plan.Phases || r.Halted {
				t.Errorf("%s: %d, halted %v, or outside of the set", name, r.Phase, r.Halted)
			}
			got := meanLoss(convex.Logistic{}, r.Model, people)
			t.Logf("%s, %d people: loss %.4f, at the start %.4f; bound %.3f, noise %.4f, %v", name, n, got, zero, plan.Bound,
				plan.NoiseStd, plan.Notes)
			if n == 4000 && !(got < zero-0.1) {
				t.Errorf("%s: loss %v, at the start %v", name, got, zero)
			}
		}
	}
}

// TestRoundingOfAPassByHand: L = 2, beta = 1.5, R = 1, mu = 1/2, d = 3, eta = 0.1 and 400 people. A gradient errs by
// 2056 L (sums of rows), 2^14 L (slopes), 1.5 (3 + 3/1024 + 8) (scores) and 4 (ridge), in all 36900.504; a step by 0.1
// of that, (1.5 + 16) R (projection) and 4 (R + 0.1 (L + R/2)), and the mean of the points by (1024 + 400/1024 + 16)
// R: 400 * 3712.5504 + 1040.3906 for one run. Two runs, and twice that, in units of 2^-53, are 6.5994e-10 beside 2 eta L.
func TestRoundingOfAPassByHand(t *testing.T) {
	p := problem(400, 16, 3, 8)
	p.Lipschitz, p.Smoothness, p.Ridge = 2, 1.5, 0.5
	s, err := newPass(p, 0.1, 400)
	if err != nil {
		t.Fatal(err)
	}
	relative(t, "what rounding adds", s.apart-2*0.1*p.lipschitz(), 6.5994e-10, 2e-3)
}
