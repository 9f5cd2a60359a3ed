package curator

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// TestCalibratedThresholds: the smallest numbers of people of Mode F, and its noise at ten times that of 20 steps.
func TestCalibratedThresholds(t *testing.T) {
	for epsilon, want := range map[float64][4]float64{1: {314, 354, 376, 65.9}, 4: {82, 92, 96, 17.9},
		8: {42, 48, 50, 9.4}} {
		b := accounting.Budget{Epsilon: epsilon, Delta: 1e-6}
		for i, steps := range []int{1, 20, 100} {
			for people, feasible := range map[int]bool{int(want[i]): true, int(want[i]) - 2: false} {
				if _, err := calibrateThreshold(people, steps, b, 1e-3); (err == nil) != feasible {
					t.Errorf("epsilon %v, %d people, %d steps: %v", epsilon, people, steps, err)
				}
			}
		}
		people := 10 * int(want[1])
		c, err := calibrateThreshold(people, 20, b, 1e-3)
		if err != nil {
			t.Fatal(err)
		}
		relative(t, "sigma K/(r sqrt T)", c.sigma*float64(people)/math.Sqrt(20), want[3], 0.005)
		gauss, err := accounting.GaussianCurve(math.Sqrt(20) * c.filter.sensitivity(people, 0) / c.sigma)
		if err != nil || c.test.Slip() > 1e-7 || c.test.Delta(epsilon, gauss) > 1e-6*(1+1e-6) ||
			c.test.Delta(epsilon, gauss) < 0.9e-6 {
			t.Errorf("epsilon %v: slip %v, delta %v", epsilon, c.test.Slip(), c.test.Delta(epsilon, gauss))
		}
	}
}

func TestFilteredLearns(t *testing.T) {
	p := problem(500, 128, 3, 8)
	p.Spread = 0.2
	learns(t, p, planFiltered)
}

// twoPhases returns a plan of two phases with tests of a chosen noise.
func twoPhases(t *testing.T, people int, of, each float64) *filteredPlan {
	t.Helper()
	law := func(rate float64) randomizer.DiscreteLaplace {
		l, err := randomizer.LaplaceOfRate(rate)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	ph := filteredPhase{people: people, lambda: 1, stages: 2, steps: 10, radius: 2, lattice: lattice{1, 16, 64},
		threshold: threshold{people: people, filter: filter{1, 1, float64(people)}, test: accounting.SharedTest{Once: law(of),
			Each: law(each), Threshold: int64(people * people)}}}
	return &filteredPlan{public: problem(2*people, 2, 1, 1), phases: []filteredPhase{ph, ph}}
}

// TestThresholdNoiseIsDrawnOnce: where only the level is noisy and all pairs count, half of the phases pass all
// tests; with fresh noise for each of 20 tests hardly one would.
func TestThresholdNoiseIsDrawnOnce(t *testing.T) {
	f := twoPhases(t, 8, 0.001, 60)
	people, _ := numbered(8, 2)
	passes := 0
	entropy := rand.NewPCG(5, 6)
	const runs = 64
	for range runs {
		var asked []int
		_, passed, err := f.accelerate(context.Background(), f.phases[0], witness{asked: &asked}, people, []float64{0},
			entropy)
		if err != nil {
			t.Fatal(err)
		}
		if passed {
			passes++
		}
	}
	// One draw for all runs: 64 coins, outside of [8, 56] with probability below 1e-9. A new draw each run: 8
	// or more of 64 with 2^-20 each, below 1e-38.
	if passes < 8 || passes > 56 {
		t.Errorf("%d of %d phases passed", passes, runs)
	}
}

// TestEachTestHasNoiseOfItsOwn: where the level has next to no noise and each test much, a score at the level passes
// about half of the tests against it.
func TestEachTestHasNoiseOfItsOwn(t *testing.T) {
	const people, runs = 8, 64
	f := twoPhases(t, people, 60, 0.001)
	tests, passes := f.phases[0].threshold.begin(rand.NewPCG(7, 8)), 0
	for range runs {
		if tests.passes(people * people) {
			passes++
		}
	}
	if passes < 8 || passes > 56 { // of 64 coins with a probability below 1e-9
		t.Errorf("%d of %d tests passed", passes, runs)
	}
}

// TestNobodyIsInTwoPhases: rows of a phase are asked for in each of its steps, and in no other's.
func TestNobodyIsInTwoPhases(t *testing.T) {
	f := twoPhases(t, 8, 1, 1)
	f.phases[1].steps, f.phases[1].threshold.people, f.phases[1].people = 3, 6, 6
	people, owner := numbered(16, 2)
	var asked []int
	if _, err := f.run(context.Background(), witness{asked: &asked}, people, rand.NewPCG(1, 1)); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 8*2*20+6*2*6 {
		t.Fatalf("%d gradients", len(asked))
	}
	for i, row := range asked {
		if second := i >= 8*2*20; second != (owner[row] >= 8) || owner[row] >= 14 {
			t.Fatalf("gradient %d is of person %d", i, owner[row])
		}
	}
}

// TestHaltedPhases: a phase whose people are far apart returns the release before it, after the work of all phases.
func TestHaltedPhases(t *testing.T) {
	f := twoPhases(t, 8, 60, 60)
	f.phases[1].radius = 1e-3
	people, _ := numbered(16, 2)
	for i := range people[8:] {
		people[8+i][0].Value = []float64{float64(i)}
	}
	var asked []int
	r, err := f.run(context.Background(), witness{asked: &asked}, people, rand.NewPCG(1, 1))
	if err != nil || !r.Halted || r.Phase != 1 || r.Model[0] == 0 || len(asked) != 2*8*2*20 {
		t.Errorf("%+v, %v, %d gradients", r, err, len(asked))
	}
}

// A quarrel is a loss with gradients of opposite signs for the first two people in one step, and of one sign
// otherwise.
type quarrel struct {
	convex.Squared
	people, in int // people of a row each; the step, from 0
	asked      *int
}

func (q quarrel) Gradient(dst, _ []float64, _ convex.Example) {
	who, step := *q.asked%q.people, *q.asked/q.people
	*q.asked++
	dst[0] = 1
	if step == q.in && who < 2 {
		dst[0] = -1
	}
}

// TestOneFailedTestHaltsThePhase fails the test of one step alone, be it the first, one in between, or the last.
func TestOneFailedTestHaltsThePhase(t *testing.T) {
	const people = 8
	f := twoPhases(t, people, 60, 60) // tests with next to no noise: e^-60
	rows, _ := numbered(people, 1)
	steps := f.phases[0].all()
	f.phases[0].radius = 1
	for in := range steps + 1 {
		loss := quarrel{people: people, in: in, asked: new(int)}
		_, passed, err := f.accelerate(t.Context(), f.phases[0], loss, rows, []float64{0}, rand.NewPCG(1, 2))
		if err != nil || passed != (in == steps) || *loss.asked != people*steps {
			t.Errorf("the test of step %d of %d failed: passed %v, %v, %d gradients", in, steps, passed, err, *loss.asked)
		}
	}
}

// TestStepsAreChargedTogether attacks all steps of a phase: neighbours whose filtered means are S_U of Lemma W apart
// in each of them. What epsilon is left beside the tests' is for T releases of a Gaussian's mu sqrt(T), to which
// sums of that many coins are near, and mu is S_U over the noise of a step.
func TestStepsAreChargedTogether(t *testing.T) {
	p := problem(500, 128, 3, 8)
	p.Spread = 0.1
	f, err := searchFiltered(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.calibrate(); err != nil {
		t.Fatal(err)
	}
	for i, ph := range f.phases {
		n, full := float64(ph.people), ph.threshold.filter.full
		apart := 2 * ph.radius * ((n-1)/(full-n/2) + 1) / (2*full - n)
		level := 2 * p.Lipschitz / float64(ph.lattice.levels)
		mu := apart / level / (math.Sqrt(float64(ph.lattice.trials)) / 2) * math.Sqrt(float64(ph.stages*ph.steps))
		test := ph.threshold.test
		left := p.Budget.Epsilon - (test.Once.Rate()+2*test.Each.Rate())*2*(n-1) // a score moves by 2 (n-1) pairs
		tail := func(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }
		delta := tail(left/mu-mu/2) - math.Exp(left)*tail(left/mu+mu/2)
		if ph.plain || ph.all() < 2 || !(delta <= p.Budget.Delta-test.Slip()) || !(delta >= p.Budget.Delta/2) {
			t.Errorf("phase %d: delta %v of %d releases, %v slips, budget %v", i+1, delta, ph.all(), test.Slip(), p.Budget.Delta)
		}
	}
}

// TestPlainStepsAreChargedTogether attacks phases without a filter, of rows that each are a person: a gradient L long
// against its opposite moves the mean by 2L/n in each of T steps. It looks at the numbers of the lattice alone.
func TestPlainStepsAreChargedTogether(t *testing.T) {
	p := problem(2000, 1, 3, 1)
	f, err := searchFiltered(p)
	if err != nil {
		t.Fatal(err)
	}
	spent, err := f.calibrate()
	if err != nil || spent > p.Budget.Delta {
		t.Fatal(spent, err)
	}
	for i, ph := range f.phases {
		level := 2 * p.Lipschitz / float64(ph.lattice.levels)
		mu := 2 * p.Lipschitz / float64(ph.people) / level / (math.Sqrt(float64(ph.lattice.trials)) / 2) * math.Sqrt(
			float64(ph.stages*ph.steps))
		tail := func(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }
		delta := tail(1/mu-mu/2) - math.E*tail(1/mu+mu/2)
		if !ph.plain || ph.all() < 2 || !(delta <= p.Budget.Delta) || !(delta >= p.Budget.Delta/2) {
			t.Errorf("phase %d: delta %v of %d releases, budget %v", i+1, delta, ph.all(), p.Budget.Delta)
		}
	}
	// the sum of people's gradients, each -1 to 1, is 6 and then, with one of them replaced, 4
	mean := []float64{0}
	points := line(append(times(7, 1), -1)...)
	weightedMean(mean, points, times(8, 1))
	if points[0][0] = -1; mean[0] != 0.75 {
		t.Errorf("mean %v of seven and one", mean[0])
	}
	if s := plainSensitivity(8, 1); !(s >= 0.25) || s > 0.2501 {
		t.Errorf("a person of 8 moves the mean by %v", s)
	}
}

// TestPlainPhaseTestsNothing: where the filter has more noise, people who are far apart halt nothing, each has the same
// weight, and noise is as planned.
func TestPlainPhaseTestsNothing(t *testing.T) {
	p := problem(400, 1, 1, 8)
	plan, err := planFiltered(p)
	if err != nil || !plan.unfiltered || !strings.Contains(strings.Join(plan.Notes, " "), "the plain mean") {
		t.Fatal(plan, err)
	}
	people, theta := regression(p.People, 1, 1, 3)
	for i := range people[:200] { // half of the labels turned: no mean is anybody's
		people[i][0].Label = -people[i][0].Label
	}
	r, err := plan.Fit(t.Context(), convex.Squared{}, people, rand.NewPCG(1, 2))
	if err != nil || r.Halted || r.Phase != plan.Phases || math.Abs(r.Model[0]) > 0.6*math.Abs(theta[0]) {
		t.Errorf("%+v, %v, of %v", r, err, theta)
	}
	// many alike rows a person: the filter is worth its test
	p = problem(500, 1<<20, 3, 8)
	if plan, err = planFiltered(p); err != nil || plan.unfiltered {
		t.Errorf("%v, %v", plan.Notes, err)
	}
}

// TestPeopleAreInOneBlock: of 12 people in blocks of two the points are 6 means, and a person is in one of them: two people
// of one block who differ from all others spoil one point, two of different blocks two.
func TestPeopleAreInOneBlock(t *testing.T) {
	for other, spoiled := range map[int]int{6: 1, 1: 2, 7: 2} {
		f := twoPhases(t, 6, 60, 60) // tests with next to no noise
		ph := f.phases[0]
		ph.people, ph.block, ph.stages, ph.steps, ph.radius = 12, 2, 1, 1, 0.5
		left := 6 - spoiled
		if ph.points() != 6 {
			t.Fatalf("%d points", ph.points())
		}
		rows := make([]Person, 12)
		for i := range rows {
			y := -1.0 // a gradient of 1 at the origin
			if i == 0 || i == other {
				y = 1
			}
			rows[i] = Person{{Value: []float64{1}, Label: y}}
		}
		for threshold, want := range map[int64]bool{int64(left*left + spoiled*spoiled): true,
			int64(left*left + spoiled*spoiled + 1): false} {
			ph.threshold.test.Threshold = threshold
			_, passed, err := f.accelerate(t.Context(), ph, convex.Squared{}, rows, []float64{0}, rand.NewPCG(1, 2))
			// spoiled points are alike where both people are in them, and between where one is
			if err != nil || passed != want {
				t.Errorf("people 0 and %d, a score of %d wanted: passed %v, %v", other, threshold, passed, err)
			}
		}
	}
}

// TestBlocksAreMeans: of people who are all alike a phase ends where it does without blocks, with the same noise.
func TestBlocksAreMeans(t *testing.T) {
	var ends []float64
	for _, block := range []int{0, 2, 3} {
		f := twoPhases(t, 6, 60, 60)
		ph := f.phases[0]
		ph.people, ph.block, ph.threshold.test.Threshold = 6*max(block, 1), block, 0
		rows := make([]Person, ph.people)
		for i := range rows {
			rows[i] = Person{{Value: []float64{0.75}, Label: -1}}
		}
		x, passed, err := f.accelerate(t.Context(), ph, convex.Squared{}, rows, []float64{0}, rand.NewPCG(3, 4))
		if err != nil || !passed {
			t.Fatal(passed, err)
		}
		ends = append(ends, x[0])
	}
	if math.Abs(ends[1]-ends[0]) > 1e-9 || math.Abs(ends[2]-ends[0]) > 1e-9 || ends[0] == 0 {
		t.Errorf("without blocks, in twos and in threes: %v", ends)
	}
}

// TestBlocksOfManyPeople: where all pairs of people would be too many, points are means of several, of equal numbers, and
// one person moves one of them: so many points are charged for.
func TestBlocksOfManyPeople(t *testing.T) {
	p := problem(20_000, 1<<18, 3, 8)
	p.Spread = 0.1
	s := newFilteredSearch(p)
	ph := filteredPhase{people: p.People, stages: 1, steps: 4, lambda: 1}
	s.hide(&ph, ph.all(), 1)
	if ph.plain || ph.block != 5 || ph.points() != 4000 || ph.people != 20_000 || ph.threshold.people != 4000 {
		t.Fatalf("%+v", ph)
	}
	f := &filteredPlan{public: p, phases: []filteredPhase{ph}}
	if got, want := f.ratio(ph)*2*p.Lipschitz, ph.filter().sensitivity(4000, p.Lipschitz); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("charged for %v, a point of 4000 moves the mean by %v", got, want)
	}
	// the mean of five people's gradients is nearer to others' by the root of five
	if want := spreadRadius(4000, 5*p.Items, ph.all(), p.failure()) * p.Spread; math.Abs(ph.radius/want-1) > 1e-12 {
		t.Errorf("radius %v, want %v", ph.radius, want)
	}
	few := filteredPhase{people: 4000}
	if s.hide(&few, 4, 1); few.block > 1 || few.points() != 4000 {
		t.Errorf("%+v", few)
	}
}

// TestReleasesAreInTheSet: with so much noise that every step would leave it.
func TestReleasesAreInTheSet(t *testing.T) {
	f := twoPhases(t, 8, 60, 60)
	f.phases[0].lattice.trials = 1 << 14
	f.phases[1].lattice.trials = 1 << 14
	people, _ := numbered(16, 2)
	for seed := range uint64(5) {
		var asked []int
		r, err := f.run(context.Background(), witness{asked: &asked}, people, rand.NewPCG(seed, 1))
		if err != nil || r.Halted || !f.public.Set.Contains(r.Model) {
			t.Fatalf("%+v, %v", r, err)
		}
	}
}

// TestReduction: with a ridge and many people the runs on growing parts have the smaller bound, on fewer people
// each than there are; with few, one run has.
func TestReduction(t *testing.T) {
	p := problem(1<<11, 1024, 2, 8)
	p.Ridge = 0.5
	s := newFilteredSearch(p)
	runs := s.reduced(0)
	if runs == nil {
		t.Fatal("no runs")
	}
	people, began := 0, 0
	var distance float64
	for _, ph := range runs.phases {
		people += ph.people
		if ph.distance > 0 {
			if began++; began > 1 && ph.distance > distance {
				t.Errorf("run %d starts at %v after %v", began, ph.distance, distance)
			}
			distance = ph.distance
		}
	}
	if began != len(reductionSizes(p.People)) || people >= p.People {
		t.Errorf("%d runs of %d people", began, people)
	}
	// An excess of at most b is a distance of at most sqrt(2 b/mu) where the objective is mu-strongly convex.
	distance = p.Set.Radius()
	for rest := runs.phases; len(rest) > 0; {
		end := 1
		for end < len(rest) && rest[end].distance == 0 {
			end++
		}
		if !(math.Abs(rest[0].distance/distance-1) < 1e-12) {
			t.Errorf("a run is planned for a start %v away, want %v", rest[0].distance, distance)
		}
		run := &filteredPlan{public: p, phases: rest[:end]}
		distance = min(distance, math.Sqrt(2*run.bound()/0.5))
		rest = rest[end:]
	}
	if !(distance < p.Set.Radius()) {
		t.Error("no run ends nearer than the first begins")
	}
	one := s.best(0, p.People, mostPhases, p.Set.Radius())
	t.Logf("bounds %v in %d runs, %v in one of %d phases", runs.bound(), began, one.bound(), len(one.phases))
	if f, err := searchFiltered(p); err != nil || f.bound() > min(one.bound(), runs.bound())*1.01 {
		t.Errorf("the plan has a bound of %v, %v", f.bound(), err)
	}
	s.public.People = 100
	if s.reduced(0) != nil {
		t.Error("runs of too few people")
	}
	s.public.Ridge = 0
	if s.public.People = 1 << 11; s.reduced(0) != nil {
		t.Error("runs without a ridge")
	}
}

// TestFilteredSmooths: a loss that is not smooth has a plan, for its smoothed form.
func TestFilteredSmooths(t *testing.T) {
	p := problem(100, 16, 2, 8)
	p.Smoothness = math.Inf(1)
	plan, err := planFiltered(p)
	if err != nil {
		t.Fatal(err)
	}
	people, _ := regression(p.People, p.Items, p.Dim, 2)
	r, err := plan.Fit(context.Background(), convex.Absolute{}, people, rand.NewPCG(1, 2))
	if err != nil || r.Halted || !p.Set.Contains(r.Model) || !strings.HasPrefix(plan.Notes[0], "smoothed") {
		t.Errorf("%v: %+v, %v", plan.Notes, r, err)
	}
}

// TestWhereFilteredIsBest: there are public numbers for which filtered has the smallest bound, and they are no one's.
func TestWhereFilteredIsBest(t *testing.T) {
	if !longtest.Run(t, "plans for 10^6 people of 10^6 rows") {
		return
	}
	p := Public{People: 1e6, Items: 1e6, Dim: 1e4, Lipschitz: 1, Smoothness: 0.01, Ridge: 0.25, Set: convex.Ball{R: 5},
		Budget: budget(8), Failure: 1e-9}
	for people, best := range map[int]bool{1e6: true, 1e5: false} {
		bound := map[string]float64{}
		for _, name := range []string{"filtered", "output-phases", "group-sgd"} {
			p.People = people
			m, _ := Of(name)
			plan, err := m.Plan(p)
			if err != nil {
				t.Fatal(err)
			}
			bound[name] = plan.Bound
		}
		t.Logf("%d people: %v", people, bound)
		if least := min(bound["output-phases"], bound["group-sgd"]); (bound["filtered"] < least) != best {
			t.Errorf("%d people: %v", people, bound)
		}
	}
}
