package curator

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

var phasings = []phasing{phasedERM, phasedSCO, strongERM, strongSCO}

// TestPhasesSpendTheBudget: phases on all people add up to at most the budget, and no person is in two of the others.
func TestPhasesSpendTheBudget(t *testing.T) {
	b := accounting.Budget{Epsilon: 1, Delta: 1e-6}
	for _, m := range phasings {
		for phases := 1; phases <= 9; phases++ {
			var sum accounting.Budget
			seen := make([]int, 1000)
			for i, part := range m.parts(1000, phases) {
				share := m.budget(b, phases, i)
				sum = accounting.Budget{Epsilon: sum.Epsilon + share.Epsilon, Delta: sum.Delta + share.Delta}
				if m.disjoint && !(share.Epsilon <= b.Epsilon && share.Delta <= b.Delta) {
					t.Errorf("%s: phase %d has %+v", m.name, i, share)
				}
				for _, k := range numbers(part) {
					seen[k]++
				}
			}
			if !m.disjoint && !(sum.Epsilon <= b.Epsilon && sum.Delta <= b.Delta) {
				t.Errorf("%s, %d phases: %+v in all", m.name, phases, sum)
			}
			for k, times := range seen {
				if m.disjoint && times != 1 || !m.disjoint && times != phases {
					t.Fatalf("%s, %d phases: person %d is in %d", m.name, phases, k, times)
				}
			}
		}
	}
}

// TestPhasesAreChargedTogether: releases whose shares add up to a budget have less noise where they are charged
// together, and are within it, but no longer with a twentieth of the trials less.
func TestPhasesAreChargedTogether(t *testing.T) {
	p := public(400, 1<<12, 2, 8)
	for phases, gain := range map[int]float64{2: 1.25, 3: 1.5} {
		var releases []*scored
		stds := make([]float64, phases)
		for i := range phases {
			b := phasedERM.budget(p.Budget, phases, i)
			l, _ := calibratedLaw(b)
			g, err := newGradscore(p, math.Exp2(float64(i)), p.People, l)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.calibrate(p.Dim, b); err != nil {
				t.Fatal(err)
			}
			releases = append(releases, g.after())
			stds[i], _ = g.cost()
		}
		spent := together(p.Budget, releases)
		charge := func(share float64) float64 {
			var profiles []func(eps float64) float64
			for _, r := range releases {
				l := r.lattice
				l.trials = 2 * uint64(float64(l.trials/2)*share)
				profiles = append(profiles, r.profile(l))
			}
			return accounting.ComposedDelta(p.Budget.Epsilon, profiles...)
		}
		if all, less := charge(1), charge(0.95); all != spent || !(all <= p.Budget.Delta) || less <= p.Budget.Delta {
			t.Errorf("%d phases: spent %v, charged %v, with less noise %v", phases, spent, all, less)
		}
		for i, r := range releases {
			if std, _ := r.cost(); !(std < stds[i]/gain) {
				t.Errorf("%d phases: noise %v of phase %d, by itself %v", phases, std, i, stds[i])
			}
		}
	}
}

// TestProfilesAreOfBothScores: a scored release is charged, at every epsilon, by the curves of both scores of
// neighbours, each its own.
func TestProfilesAreOfBothScores(t *testing.T) {
	p := public(400, 1<<12, 2, 8)
	l, _ := calibratedLaw(p.Budget)
	g, err := newGradscore(p, 1, p.People, l)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.calibrate(p.Dim, p.Budget); err != nil {
		t.Fatal(err)
	}
	r := g.after()
	apart := r.ratio
	for _, steep := range []float64{0, 1} { // and where the other score counts for more
		r.ratio = func(s, t int) float64 { return apart(s, t) * (1 + steep*float64(t-s)/4) }
		for _, eps := range []float64{p.Budget.Epsilon, 0, -0.5, 2, 20} {
			at, below := r.deletions.Survival()
			want, _, _ := accounting.DeletionProfile(eps, at, below, func(s, t int) accounting.Curve {
				return r.lattice.curve(r.ratio(s, t), 1)
			})
			if got := r.profile(r.lattice)(eps); !(got >= want) || got > 1.05*want {
				t.Errorf("steep %v, epsilon %v: %v, want %v", steep, eps, got, want)
			}
		}
	}
}

// TestPhasesThatHelp: phases on disjoint people are as many as help, more than six; on the same people, who pay for every
// phase, the limit of six leaves out none that would.
func TestPhasesThatHelp(t *testing.T) {
	p := Public{People: 100_000, Items: 16, Dim: 10, Lipschitz: 1, Smoothness: 0.1, Set: convex.Ball{R: 5},
		Budget: budget(8)}
	sco, err := phasedSCO.plan(p)
	if err != nil || sco.Phases <= 6 {
		t.Errorf("on disjoint people: %+v, %v", sco, err)
	}
	erm, err := phasedERM.plan(p)
	if err != nil || erm.Phases >= mostShares {
		t.Errorf("on the same people: %+v, %v", erm, err)
	}
}

// TestPhasedLearn: all four keep to their budget and to the set, halts do the work of all phases, and people are
// refused where the deletions do not exist.
func TestPhasedLearn(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	p := public(700, 1<<20, 2, 8)
	p.Ridge = 0.1
	people := make([]Person, p.People)
	for i := range people {
		people[i] = Person{{Value: []float64{1, 0}, Label: 1}, {Value: []float64{0, 1}, Label: -1}}
	}
	wild := make([]Person, p.People)
	for i := range wild {
		wild[i] = Person{{Value: []float64{rng.Float64(), 0.1}, Label: float64(2*rng.IntN(2) - 1)}}
	}
	for _, m := range phasings {
		few := p
		few.People = m.least(p) - 1
		var tooFew *TooFewError
		if _, err := m.plan(few); !errors.As(err, &tooFew) || tooFew.Least != few.People+1 {
			t.Errorf("%s: %v", m.name, err)
		}
		plan, err := m.plan(p)
		if err != nil {
			t.Fatal(err)
		}
		if s := plan.Spent; !(s.Epsilon > 7 && s.Epsilon <= 8) || !(s.Delta > 0 && s.Delta <= 1e-6) || plan.Phases < 2 ||
			plan.OnRecords == m.disjoint {
			t.Errorf("%s: %+v", m.name, plan)
		}
		ctx := &counted{Context: t.Context()}
		r, err := plan.Fit(ctx, convex.Logistic{}, people, rand.NewPCG(3, 4))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d phases, spent %.4g, bound %.3f, noise %.3g, model %.3f, %d steps; %v", m.name, plan.Phases, plan.Spent,
			plan.Bound, plan.NoiseStd, r.Model, ctx.steps, plan.Notes)
		if r.Halted || r.Phase != plan.Phases || !p.Set.Contains(r.Model) || !(r.Model[0] > 0 && r.Model[1] < 0) {
			t.Errorf("%s: %+v", m.name, r)
		}
		steps := ctx.steps
		ctx.steps = 0
		if r, err = plan.Fit(ctx, convex.Logistic{}, wild, rand.NewPCG(3, 4)); err != nil {
			t.Fatal(err)
		}
		if !r.Halted || r.Phase >= plan.Phases || ctx.steps != steps || !p.Set.Contains(r.Model) {
			t.Errorf("%s: halted %v in phase %d after %d steps, others take %d", m.name, r.Halted, r.Phase, ctx.steps, steps)
		}
	}
	p.Ridge = 0
	if _, err := strongERM.plan(p); err == nil {
		t.Error("a strongly convex method without a ridge")
	}
}

// TestPhasesOverExhaustiveSearch: the phases run over either form of a release.
func TestPhasesOverExhaustiveSearch(t *testing.T) {
	p := public(12, 1<<20, 1, 40)
	p.Budget.Delta = 0.01
	people := make([]Person, 12)
	for i := range people {
		people[i] = Person{{Value: []float64{1}, Label: 1}}
	}
	for _, form := range []perturbation{byDeletion, func(p Public, b accounting.Budget,
		lambda float64, people int) (perturbed, error) {
		g, err := newGradscore(p, lambda, people, deletionLaw(b))
		if err != nil {
			return nil, err
		}
		return g, g.calibrate(p.Dim, b)
	}} {
		plan, err := phasedSCO.planOf(p, course{2, 0.5, 4}, form)
		if err != nil {
			t.Fatal(err)
		}
		r, err := plan.Fit(t.Context(), convex.Logistic{}, people, rand.NewPCG(5, 6))
		if err != nil || r.Halted || !(r.Model[0] > 0) || plan.Phases != 2 || math.IsInf(plan.Bound, 1) {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestLeastOfScoredMethods compares with figures that were computed independently: where all deletions exist,
// at epsilon 1, 4 and 8.
func TestLeastOfScoredMethods(t *testing.T) {
	for name, want := range map[string][3]int{"gradscore": {102, 30, 18}, "phased-sco": {204, 60, 36},
		"strongly-convex-sco": {204, 60, 36}, "output": {1, 1, 1}} {
		m, ok := Of(name)
		if !ok {
			t.Fatal(name)
		}
		for i, eps := range []float64{1, 4, 8} {
			p := public(1, 16, 10, eps)
			p.Ridge = 0.1
			if got := m.Least(p); got != want[i] {
				t.Errorf("%s, epsilon %v: %d, want %d", name, eps, got, want[i])
			}
			if p.People = want[i]; eps < 8 {
				continue // slow, and nothing new
			}
			if plan, err := m.Plan(p); err != nil || !(plan.Spent.Delta <= 1e-6) {
				t.Errorf("%s, epsilon %v, %d people: %v", name, eps, p.People, err)
			}
		}
	}
}

// TestOneReleaseIsChargedItself: where charging releases together finds nothing cheaper, what they were calibrated
// to spend is spent.
func TestOneReleaseIsChargedItself(t *testing.T) {
	p := public(200, 1<<12, 2, 8)
	l, _ := calibratedLaw(p.Budget)
	g, err := newGradscore(p, 1, p.People, l)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.calibrate(p.Dim, p.Budget); err != nil {
		t.Fatal(err)
	}
	before := g.lattice
	for _, b := range []accounting.Budget{p.Budget, {Epsilon: p.Budget.Epsilon, Delta: 1e-30}} { // no trials meet the last
		spent := together(b, []*scored{g.after()})
		if own := g.profile(g.lattice)(p.Budget.Epsilon); !(spent >= own && spent <= p.Budget.Delta) || b.Delta < 1e-29 &&
			g.lattice != before {
			t.Errorf("delta %v: spent %v, its own %v, %+v", b.Delta, spent, own, g.lattice)
		}
		before = g.lattice
	}
}

func byDeletion(p Public, b accounting.Budget, lambda float64, people int) (perturbed,
	error) {
	return newDeletion(p, b, lambda, people, deletionLaw(b))
}
