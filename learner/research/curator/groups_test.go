package curator

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

func relative(t *testing.T, what string, got, want, to float64) {
	t.Helper()
	if !(math.Abs(got-want) <= to*math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func problem(n, m, d int, epsilon float64) Public {
	return Public{People: n, Items: m, Dim: d, Lipschitz: 1, Smoothness: 1, Set: convex.Ball{R: 1},
		Budget: accounting.Budget{Epsilon: epsilon, Delta: 1e-6}}
}

// TestPaperNumbers: Theorem B.1's at n = 2e5, m = 16, d = 10, epsilon 1.
func TestPaperNumbers(t *testing.T) {
	x := paperNumbers(problem(200000, 16, 10, 1))
	if x.groups != 3279 || x.phases != 17 {
		t.Errorf("%d groups, %d phases", x.groups, x.phases)
	}
	for epsilon, want := range map[float64]int{1: 3210, 4: 878, 8: 489} { // with fewer people
		if got := paperNumbers(problem(100000, 16, 10, epsilon)).groups; got != want {
			t.Errorf("epsilon %v: %d groups, want %d", epsilon, got, want)
		}
	}
	relative(t, "p", x.growth, 1.72714831, 1e-8)
	relative(t, "eta", x.eta, 1.76776695e-4, 1e-8)
	relative(t, "people", x.people, 12496.4856, 1e-8)
	relative(t, "tau", x.tau, 7.2054293, 1e-7)
	relative(t, "sigma", x.sigma, 148.794156, 1e-7)
}

// TestCalibratedGroups checks that with noise in whole pairs U, Theta and sigma equal those of continuous
// noise up to two pairs, and that both arguments of Theorem P1's maximum meet delta.
func TestCalibratedGroups(t *testing.T) {
	b := accounting.Budget{Epsilon: 1, Delta: 1e-6}
	for _, c := range []struct {
		epsilon  float64
		groups   int
		two, one float64 // sigma/tau where r_f is 2 tau and tau
	}{{1, 200, 1.876714, 1.563751}, {4, 64, 1.108037, 0.823131}, {8, 40, 0.730731, 0.503190},
		{1, 164, 3.343, 3.152}, {4, 48, 2.214, 1.866}, {8, 28, 1.536, 1.189}, {1, 3210, 0.0224, 0.0121}} {
		b.Epsilon = c.epsilon
		for near, want := range map[float64]float64{1: c.one, 2: c.two} {
			got, err := calibrateGroups(c.groups, near, b, 1e-3)
			if err != nil {
				t.Fatal(err)
			}
			relative(t, "sigma", got.sigma, want, 0.01)
			if slip := got.test.Slip(); slip > 1e-6 || slip < 0.99e-6*math.Exp(-got.test.Noise.Rate()) {
				t.Errorf("epsilon %v: a low score passes with %v", c.epsilon, slip)
			}
			gauss, err := accounting.GaussianCurve(got.filter.sensitivity(c.groups, 0) / got.sigma)
			if err != nil || got.test.Delta(c.epsilon, gauss) > 1e-6*(1+1e-6) ||
				gauss.Delta(c.epsilon-got.test.Epsilon()) < 0.97e-6 {
				t.Errorf("epsilon %v: delta %v, of the release %v", c.epsilon, got.test.Delta(c.epsilon, gauss),
					gauss.Delta(c.epsilon-got.test.Epsilon()))
			}
		}
	}
}

// TestFewestGroups: 82, 24 and 14 at epsilon 1, 4 and 8.
func TestFewestGroups(t *testing.T) {
	for epsilon, want := range map[float64]int{1: 82, 4: 24, 8: 14} {
		p := problem(1000, 16, 10, epsilon)
		if got := fewestGroups(p); got != want {
			t.Errorf("epsilon %v: %d, want %d", epsilon, got, want)
		}
		if p.People = want; epsilon < 8 {
			continue
		}
		if _, err := planGroups(p); err != nil {
			t.Errorf("epsilon %v: %v", epsilon, err)
		}
		p.People--
		if _, err := planGroups(p); err == nil {
			t.Errorf("epsilon %v: planned for %d people", epsilon, p.People)
		}
	}
}

// points of a quadratic: people whose rows are regressions on a feature vector of norm 1 with little noise.
func regression(n, m, d int, seed uint64) (people []Person, theta []float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	theta = make([]float64, d)
	for j := range theta {
		theta[j] = 0.5 / math.Sqrt(float64(d))
	}
	people = make([]Person, n)
	for i := range people {
		for range m {
			x := make([]float64, d)
			for j := range x {
				x[j] = r.NormFloat64()
			}
			norm := convex.Norm(x)
			for j := range x {
				x[j] /= norm
			}
			e := convex.Example{Value: x}
			e.Label = e.Dot(theta) + 0.1*r.NormFloat64()
			people[i] = append(people[i], e)
		}
	}
	return people, theta
}

// learns checks that the released model is in the set, of the last phase, and near the truth.
func learns(t *testing.T, p Public, planOf func(Public) (*Plan, error)) {
	t.Helper()
	plan, err := planOf(p)
	if err != nil {
		t.Fatal(err)
	}
	people, theta := regression(p.People, p.Items, p.Dim, 1)
	r, err := plan.Fit(context.Background(), convex.Squared{}, people, rand.NewPCG(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	off := math.Sqrt(distance2(r.Model, theta))
	t.Logf("%+v, %v off", r, off)
	if r.Halted || r.Phase != plan.Phases || !p.Set.Contains(r.Model) || off > 0.25 {
		t.Errorf("%+v, %v off", r, off)
	}
}

func TestGroupsLearn(t *testing.T) {
	p := problem(2000, 64, 3, 8)
	p.Smoothness, p.Spread = 1, 0.2
	learns(t, p, planGroups)
}

// A witness is a loss that notes whose rows it is asked about: the label is the row's number.
type witness struct {
	convex.Squared
	asked *[]int
}

func (w witness) Gradient(dst, _ []float64, e convex.Example) {
	*w.asked = append(*w.asked, int(e.Label))
	clear(dst)
	e.AddTo(dst, 1)
}

// numbered returns people with rows of different numbers, and which row is whose.
func numbered(n, m int) (people []Person, owner []int) {
	people = make([]Person, n)
	for i := range people {
		for range m {
			people[i] = append(people[i], convex.Example{Value: []float64{0.1}, Label: float64(len(owner))})
			owner = append(owner, i)
		}
	}
	return people, owner
}

// TestOneGroupOnePhase: every row is asked for once, so that a person is in one group of one phase; people who are
// left over are not.
func TestOneGroupOnePhase(t *testing.T) {
	p := problem(205, 3, 1, 8)
	plan, err := planGroups(p)
	if err != nil {
		t.Fatal(err)
	}
	people, owner := numbered(p.People, p.Items)
	var asked []int
	if _, err := plan.Fit(context.Background(), witness{asked: &asked}, people, rand.NewPCG(1, 2)); err != nil {
		t.Fatal(err)
	}
	rows, group := map[int]int{}, map[int]bool{}
	for i, row := range asked {
		rows[row]++
		if i > 0 && owner[asked[i-1]] != owner[row] {
			group[owner[row]] = true
		}
	}
	for row, n := range rows {
		if n != 1 {
			t.Fatalf("row %d was asked for %d times", row, n)
		}
	}
	if len(rows)%3 != 0 || len(rows) < p.People*2 {
		t.Errorf("%d rows of %d people", len(rows), p.People)
	}
}

// TestNobodyIsInTwoPhasesOfGroups: rows of a phase are asked for in it alone; who is left over by its groups is in
// no other.
func TestNobodyIsInTwoPhasesOfGroups(t *testing.T) {
	const groups = 6
	c, err := calibrateGroups(groups, 1, accounting.Budget{Epsilon: 40, Delta: 0.05}, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	ph := groupPhase{people: 2*groups + 1, size: 2, steps: 4, eta: 0.1, tau: 1, lattice: lattice{1, 16, 64}}
	g := &groupPlan{public: problem(2*ph.people, 2, 1, 1), constants: c, phases: []groupPhase{ph, ph}}
	people, owner := numbered(2*ph.people, 2)
	var asked []int
	if _, err := g.run(t.Context(), witness{asked: &asked}, people, rand.NewPCG(1, 1)); err != nil {
		t.Fatal(err)
	}
	each := groups * ph.size * 2
	if len(asked) != 2*each {
		t.Fatalf("%d gradients, want %d", len(asked), 2*each)
	}
	for i, row := range asked {
		if second := i >= each; second != (owner[row] >= ph.people) || owner[row]%ph.people == ph.people-1 {
			t.Fatalf("gradient %d of phases of %d is of person %d", i, each, owner[row])
		}
	}
}

// TestUnfitRowsSayZero: rows with a label or features that the loss has none of have a gradient of zero.
func TestUnfitRowsSayZero(t *testing.T) {
	rows := Person{{Value: []float64{1, 0}, Label: 1}, {Value: []float64{1, 0}, Label: 0.5},
		{Value: []float64{math.NaN(), 0}, Label: 1},
		{Index: []int32{2}, Value: []float64{1}, Label: 1}}
	got, err := admitted(problem(1, 4, 2, 1), convex.Logistic{}, []Person{rows})
	if err != nil || len(got[0]) != len(rows) {
		t.Fatalf("%+v, %v", got, err)
	}
	g, part := make([]float64, 2), make([]float64, 2)
	for i, row := range got[0] {
		newBlur(0, 2, nil).gradient(g, part, convex.Logistic{}, Person{row}, []float64{0, 0}, 1)
		if said := convex.Norm(g); (said > 0) != (i == 0) {
			t.Errorf("row %d says %v", i, g)
		}
	}
}

// TestStepsOfOtherNumbersOfRows: everybody takes m steps, with means of rows or rows again; who has none stays.
func TestStepsOfOtherNumbersOfRows(t *testing.T) {
	p := problem(1, 4, 1, 8)
	g := &groupPlan{public: p, constants: constants{groups: 1}}
	ph := groupPhase{people: 1, size: 1, steps: 4, eta: 0.1}
	for rows, want := range map[int]int{0: 0, 1: 4, 2: 4, 4: 4, 7: 7, 8: 8, 400: 400} {
		people, _ := numbered(1, rows)
		var asked []int
		got := g.descend(ph, witness{asked: &asked}, people, 0, []float64{0})
		off := -0.1 * 0.1 * 1.5 // the mean of 0, 1, 2 and 3 steps
		if rows == 0 {
			off = 0
		}
		if len(asked) != want || math.Abs(got[0]-off) > 1e-15 {
			t.Errorf("%d rows: %d gradients, %v, want %v", rows, len(asked), got, off)
		}
	}
}

// TestHaltedGroups: groups of people of two kinds halt a phase. What came before it is returned, after the work of
// all phases.
func TestHaltedGroups(t *testing.T) {
	p := problem(300, 100, 1, 8)
	plan, err := planGroups(p)
	if err != nil {
		t.Fatal(err)
	}
	people, _ := numbered(p.People, 1)
	var asked, other []int
	calm, err := plan.Fit(context.Background(), witness{asked: &asked}, people, rand.NewPCG(1, 2))
	if err != nil || calm.Halted {
		t.Fatal(calm, err)
	}
	for i := range people {
		people[i][0].Value = []float64{float64(i%2*2-1) * 100}
	}
	r, err := plan.Fit(context.Background(), witness{asked: &other}, people, rand.NewPCG(1, 2))
	if err != nil || !r.Halted || r.Phase >= plan.Phases || len(asked) != len(other) {
		t.Errorf("%+v, %v, %d and %d gradients", r, err, len(asked), len(other))
	}
}

// TestGroupsOfRoughLosses: refused, for steps on them move apart.
func TestGroupsOfRoughLosses(t *testing.T) {
	p := problem(1000, 1, 1, 8)
	p.Smoothness = math.Inf(1)
	if _, err := planGroups(p); err == nil {
		t.Error("want an error")
	}
}

// TestPaperConstantsRun: Algorithm 1 with the constants that the paper prints runs on the same code; its noise is
// so large that the release is on the set's boundary. Only the calibrated constants are planned with.
func TestPaperConstantsRun(t *testing.T) {
	p := problem(2*paperGroups(accounting.Budget{Epsilon: 8, Delta: 1e-6}, 4, 1000), 4, 2, 8)
	x := paperNumbers(p)
	c, err := paperConstants(p.Budget, x.groups)
	if err != nil {
		t.Fatal(err)
	}
	if l := c.test.Noise.Rate() * float64(c.groups); math.Abs(1/l-20/p.Budget.Epsilon) > 1e-6 {
		t.Errorf("scale %v of the score", 1/l)
	}
	ph := groupPhase{people: c.groups, size: 1, steps: p.Items, eta: x.eta}
	ph.tau, ph.sigma = x.radius(p, ph.eta, float64(ph.steps))
	g := &groupPlan{public: p, constants: c, phases: []groupPhase{ph}}
	g.phases[0].lattice = lattice{p.Dim, 1, 1 << 26} // the most that is fast, still below sigma
	if got := g.phases[0].lattice.std(g.ball(ph)); got > ph.sigma {
		t.Errorf("noise %v above %v", got, ph.sigma)
	}
	people, _ := regression(p.People, p.Items, p.Dim, 3)
	r, err := g.run(context.Background(), convex.Squared{}, people, rand.NewPCG(1, 1))
	if err != nil || r.Halted || math.Abs(convex.Norm(r.Model)-1) > 1e-9 {
		t.Errorf("%+v, %v", r, err)
	}
}

// paperConstants returns the constants of a test of the paper: Laplace noise of scale 20/epsilon on the
// score, threshold 4C/5, points included with probabilities that rise from 0 at C/2 to 1 at 2C/3, within 2
// tau. An odd number of groups is made even.
func paperConstants(b accounting.Budget, groups int) (constants, error) {
	groups += groups % 2
	c := int64(groups)
	noise, err := randomizer.LaplaceOfRate(b.Epsilon / 20 / float64(c))
	test := accounting.ScoreTest{Noise: noise, Sensitivity: int64(scoreSensitivity(groups)), Full: (2*c*c + 2) / 3,
		Threshold: (4*c*c + 4) / 5}
	return constants{groups: groups, test: test, filter: filter{1, 2, 2 * float64(c) / 3}, coins: true}, err
}
