package curator

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// public returns a small task: logistic loss, features in the unit ball.
func public(n, m, d int, eps float64) Public {
	return Public{People: n, Items: m, Dim: d, Lipschitz: 1, Smoothness: 0.25, Set: convex.Ball{R: 5},
		Budget: accounting.Budget{Epsilon: eps, Delta: 1e-6}}
}

// crowd draws people whose rows follow a logistic model, theta pointing along the diagonal.
func crowd(rng *rand.Rand, n, m, d int) []Person {
	people := make([]Person, n)
	for i := range people {
		for range m {
			x := make([]float64, d)
			for j := range x {
				x[j] = rng.NormFloat64()
			}
			convex.Clip(x, 1)
			var s float64
			for _, v := range x {
				s += 6 * v / math.Sqrt(float64(d))
			}
			y := -1.0
			if rng.Float64() < 1/(1+math.Exp(-s)) {
				y = 1
			}
			people[i] = append(people[i], convex.Example{Value: x, Label: y})
		}
	}
	return people
}

func meanLoss(loss convex.Loss, theta []float64, people []Person) (sum float64) {
	for _, rows := range people {
		for _, e := range rows {
			sum += loss.Value(theta, e) / float64(len(rows)) / float64(len(people))
		}
	}
	return sum
}

func distance(x, y []float64) float64 {
	var s float64
	for j := range x {
		s += (x[j] - y[j]) * (x[j] - y[j])
	}
	return math.Sqrt(s)
}

// TestOutputNoiseIsNearTheGaussian: the lattice costs little over the analytic Gaussian mechanism, and never less.
func TestOutputNoiseIsNearTheGaussian(t *testing.T) {
	for _, eps := range []float64{0.5, 1, 4, 8} {
		for _, n := range []int{1, 1000, 100000} {
			p := public(n, 16, 10, eps)
			o, err := newOutput(p, 0.1, n)
			if err != nil {
				t.Fatal(err)
			}
			mu, err := accounting.GaussianMu(p.Budget)
			if err != nil {
				t.Fatal(err)
			}
			gauss := o.moves(n) / mu
			std, _ := o.cost()
			if r := std / gauss; !(r >= 1 && r <= 1.04) {
				t.Errorf("epsilon %v, %d people: %v times the Gaussian's noise", eps, n, r)
			}
		}
	}
}

// TestMinimisersMoveByLittle replaces a person by hostile ones: no two answers of the solver are further apart than
// is charged for, and the certificate xi holds against many more steps.
func TestMinimisersMoveByLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var closest, off float64
	for round := range 60 {
		p := public(2+rng.IntN(6), 2, 1+rng.IntN(3), 1)
		p.Ridge, p.Lipschitz = []float64{0, 0.05}[round%2], 0.3
		p.Set = []convex.Set{convex.Ball{R: 5}, convex.Nonnegative{R: 0.3}, convex.Box{Dim: p.Dim, Min: -0.2,
			Max: 1}}[round%3]
		lambda := math.Exp(rng.Float64()*7 - 5)
		s, err := newSolver(p, lambda+p.Ridge, p.People)
		if err != nil {
			t.Fatal(err)
		}
		c := make([]float64, p.Dim)
		for j := range c {
			c[j] = rng.Float64()
		}
		p.Set.Project(c, c)
		solve := func(s *solver, people []Person) []float64 {
			table, err := newTable(p, convex.Logistic{}, people)
			if err != nil {
				t.Fatal(err)
			}
			x, err := s.minimiser(t.Context(), table, p.middle(lambda, c), numbers([2]int{0, p.People}), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !p.Set.Contains(x) {
				t.Fatalf("outside of the set")
			}
			return x
		}
		people := crowd(rng, p.People, p.Items, p.Dim)
		far := make([]float64, p.Dim)
		far[0] = 1
		people[0] = Person{{Value: far, Label: 1}}
		x := solve(s, people)
		more := *s
		more.steps *= 4
		if d := distance(x, solve(&more, people)); !(d <= s.xi) {
			t.Errorf("%v from the minimiser, certified %v", d, s.xi)
		} else {
			off = max(off, d/s.xi)
		}
		people[0] = Person{{Value: far, Label: -1}, {Value: []float64{math.NaN()}, Label: 1}}
		if round%2 == 0 {
			people[0] = people[0][:1]
		}
		d := distance(x, solve(s, people))
		if most := s.moves(p.People) + 2*s.xi; !(d <= most) {
			t.Errorf("moved by %v, at most %v", d, most)
		} else {
			closest = max(closest, d/most)
		}
	}
	t.Logf("closest: moved by %.3f of the bound, %.3f of xi", closest, off)
	if closest < 0.9 {
		t.Errorf("no pair came closer than %v to the bound: the test is weak", closest)
	}
}

// TestRoundingIsCertified: far from the origin numbers have few digits left after the point, and the minimiser,
// which is L/nu from the middle where all slopes are cut, is missed by that much, after however many steps.
func TestRoundingIsCertified(t *testing.T) {
	p := public(1, 1, 1, 1)
	p.Lipschitz, p.Set = 0.3, convex.Ball{R: 0x1p50}
	s, err := newSolver(p, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	middle := []float64{0x1p49} // doubles are 2^-4 apart below
	table, err := newTable(p, convex.Logistic{}, []Person{{{Value: []float64{1}, Label: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.minimiser(t.Context(), table, middle, []int{0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	off := math.Abs(middle[0] - x[0] - 0.3)
	t.Logf("off by %v, certified %v", off, s.xi)
	if !(off <= s.xi) || !(off > 0.01) {
		t.Errorf("%v from the minimiser, certified %v: want at most that, and above 0.01", off, s.xi)
	}
}

// TestRoundingIsCharged: there, neighbours whose minimisers are next to each other have answers that are as far
// apart as doubles are: one of 50 people who all pull one way is turned round, and the minimiser is rounded the
// other way.
func TestRoundingIsCharged(t *testing.T) {
	p := public(50, 1, 1, 1)
	p.Lipschitz = 0.0316 // over a weight of 1: just above half of 2^-4, from which on doubles are rounded down
	p.Smoothness, p.Set = 1e-3, convex.Ball{R: 0x1p50}
	g, err := newGradscore(p, 1, p.People, lawOf(t, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	o := &output{solver: g.solver, lambda: 1, people: p.People}
	people := make([]Person, p.People)
	answer := func(label float64) float64 {
		for i := range people {
			people[i] = Person{{Value: []float64{0.05}, Label: -1}}
		}
		people[0][0].Label = label
		table, err := newTable(p, convex.Logistic{}, people)
		if err != nil {
			t.Fatal(err)
		}
		x, err := g.minimiser(t.Context(), table, []float64{0x1p49}, numbers([2]int{0, p.People}), nil)
		if err != nil {
			t.Fatal(err)
		}
		return 0x1p49 - x[0]
	}
	apart := math.Abs(answer(1) - answer(-1))
	t.Logf("%v apart, minimisers %v", apart, 2*p.Lipschitz/50)
	if !(apart > 10*2*p.Lipschitz/50) {
		t.Errorf("answers are %v apart, minimisers %v: the test is weak", apart, 2*p.Lipschitz/50)
	}
	if charged := o.ratio() * 2 * o.ball(); !(apart <= charged) {
		t.Errorf("output charges for %v, and answers are %v apart", charged, apart)
	}
	if charged := g.apart(0, 0); !(apart <= charged) {
		t.Errorf("gradscore charges for %v, and answers are %v apart", charged, apart)
	}
}

// TestMoreCurvedRowsSayZero: what a solver certifies holds for rows up to the smoothness that was planned for, and
// others are none.
func TestMoreCurvedRowsSayZero(t *testing.T) {
	p := public(1, 1, 1, 1) // a row of norm 1 has a smoothness of 1/4
	for x, says := range map[float64]bool{0.5: true, 1: true, 1.01: false, 100: false} {
		table, err := newTable(p, convex.Logistic{}, []Person{{{Value: []float64{x}, Label: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		g := make([]float64, 1)
		if table.gradient(g, []float64{0}, 0); (g[0] != 0) != says {
			t.Errorf("a row of norm %v has the gradient %v", x, g)
		}
	}
}

func TestRefusals(t *testing.T) {
	p := public(10, 1, 2, 1)
	output, _ := Of("output")
	for want, change := range map[string]func(*Public){
		"people":     func(p *Public) { p.People = 0 },
		"items":      func(p *Public) { p.Items = 0 },
		"dimension":  func(p *Public) { p.Dim = 0 },
		"Lipschitz":  func(p *Public) { p.Lipschitz = math.Inf(1) },
		"smoothness": func(p *Public) { p.Smoothness = math.Inf(1) },
		"ridge":      func(p *Public) { p.Ridge = math.NaN() },
		"set":        func(p *Public) { p.Set = convex.Simplex{Dim: 2, R: 1} },
		"epsilon":    func(p *Public) { p.Budget.Epsilon = 0 },
		"delta":      func(p *Public) { p.Budget.Delta = 0 },
		"spread":     func(p *Public) { p.Spread = 2 },
		"failure":    func(p *Public) { p.Failure = 1 },
	} {
		q := p
		change(&q)
		if _, err := output.Plan(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	plan, err := planOutput(p)
	if err != nil {
		t.Fatal(err)
	}
	ten := make([]Person, 10)
	if _, err := plan.Fit(t.Context(), convex.Logistic{}, ten[:9], rand.NewPCG(1, 1)); err == nil {
		t.Error("another number of people")
	}
	if _, err := plan.Fit(t.Context(), convex.Logistic{}, ten, nil); err == nil {
		t.Error("no entropy")
	}
	for _, l := range []convex.Loss{convex.Hinge{}, convex.Softmax{Classes: 2}} {
		if _, err := plan.Fit(t.Context(), l, ten, rand.NewPCG(1, 1)); err == nil {
			t.Errorf("loss %s", l.Name())
		}
	}
}

// TestBothAnswersAreCharged: neighbours' minimisers are 2L/(nu n) apart, and each answer is within xi of its own: 2L/(nu n) + 2
// xi.
func TestBothAnswersAreCharged(t *testing.T) {
	p := problem(50, 1, 2, 1)
	s, err := newSolver(p, 4, p.People)
	if err != nil {
		t.Fatal(err)
	}
	wide := *s
	wide.xi = 0.01
	o := &output{solver: &wide, people: p.People}
	if got, want := o.ratio()*2*o.ball(), 2./(4*50)+2*0.01; !(got >= want) || got > want*(1+1e-6) {
		t.Errorf("charged for a distance of %v, want %v", got, want)
	}
}
