package curator

import (
	"math"
	"math/rand/v2"
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

// TestPassMovesByLittle: one hostile person moves the mean point by no more than is charged for.
func TestPassMovesByLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var closest float64
	for round := range 200 {
		p := public(1+rng.IntN(8), 2, 1+rng.IntN(3), 1)
		p.Ridge, p.Lipschitz = []float64{0, 0.05}[round%2], 0.3
		p.Set = []convex.Set{convex.Ball{R: 5}, convex.Nonnegative{R: 0.3}, convex.Box{Dim: p.Dim, Min: -0.2, Max: 1}}[round%3]
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
			people = make([]Person, p.People) // who say nothing
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

// TestBaselinesLearn: all three release points of the set that are better than the start, within their budget, and more people help.
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
			t.Logf("%s, %d people: loss %.4f, at the start %.4f; bound %.3f, noise %.4f, %v", name, n, got, zero, plan.Bound, plan.NoiseStd, plan.Notes)
			if n == 4000 && !(got < zero-0.1) {
				t.Errorf("%s: loss %v, at the start %v", name, got, zero)
			}
		}
	}
}
