package curator

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
)

// TestGradscoreNoise: of 10^4 people of 16 rows at epsilon 1, gamma of the formula is 5.02 L, and with it noise was
// computed independently to be 0.2156 and more, the more the larger the smoothness is; that nobody is further than
// 2 L from the mean makes it 2.5 times less, whatever the smoothness.
func TestGradscoreNoise(t *testing.T) {
	for _, beta := range []float64{1, 10, 100} {
		p := public(10000, 16, 1, 1)
		p.Smoothness, p.Ridge = beta, 1
		g, err := bestGradscore(p, p.Budget, 0, p.People)
		if err != nil {
			t.Fatal(err)
		}
		std, delta := g.cost()
		t.Logf("beta %v: noise %.4f, delta %.3g, %v", beta, std, delta, g.notes())
		if near(t, fmt.Sprintf("beta %v", beta), std, 0.2156/2.51, 0.05); !(delta <= 1e-6) {
			t.Errorf("beta %v: delta %v", beta, delta)
		}
		if notes := g.notes(); !strings.Contains(notes[len(notes)-1], "vacuous") {
			t.Errorf("no note says that nobody stands out: %v", notes)
		}
	}
}

// crew returns people of whom some stand out, and a person who is replaced by anything.
func crew(rng *rand.Rand, n, d int) (people []Person, other Person) {
	row := func(size float64) convex.Example {
		x := make([]float64, d)
		for j := range x {
			x[j] = rng.NormFloat64()
		}
		convex.Clip(x, size)
		return convex.Example{Value: x, Label: float64(2*rng.IntN(2) - 1)}
	}
	base := []convex.Example{row(1), row(1), row(1)}
	outliers := rng.IntN(4)
	for i := range n {
		person := Person{base[0], base[1], base[2], row(0.3)}
		if i < outliers {
			person = Person{row(1)}
		}
		people = append(people, person)
	}
	rng.Shuffle(n, func(i, j int) { people[i], people[j] = people[j], people[i] })
	if rng.IntN(3) > 0 {
		other = Person{row(1)}
	}
	return people, other
}

// TestScoresMoveByOne: of neighbours, scores differ by at most one, and the minimisers without outliers by at most
// what is charged for their scores.
func TestScoresMoveByOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	var closest float64
	scores := map[int]int{}
	for range 150 {
		p := public(14+rng.IntN(20), 1, 1+rng.IntN(2), 1)
		p.Items = 1 << (8 + rng.IntN(12)) // so that gamma is small
		few := rng.IntN(10) == 0
		if few {
			p.Items = 1 + rng.IntN(16) // so that it is 2 L
		}
		p.Set = []convex.Set{convex.Ball{R: 5}, convex.Box{Dim: p.Dim, Min: -0.2, Max: 1}}[rng.IntN(2)]
		g, err := newGradscore(p, math.Exp(rng.Float64()*6-1), p.People, lawOf(t, 1, 3))
		if err != nil {
			t.Fatal(err)
		}
		answer := func(people []Person) ([]float64, int) {
			table, err := newTable(p, convex.Logistic{}, people)
			if err != nil {
				t.Fatal(err)
			}
			middle, all := p.start(), numbers([2]int{0, p.People})
			x, err := g.minimiser(t.Context(), table, middle, all, nil)
			if err != nil {
				t.Fatal(err)
			}
			k, keep := g.score(g.far(table, x, all))
			if x, err = g.minimiser(t.Context(), table, middle, all, keep); err != nil {
				t.Fatal(err)
			}
			return x, k
		}
		people, other := crew(rng, p.People, p.Dim)
		x, k := answer(people)
		for i := range 3 {
			old := people[i]
			people[i] = other
			y, j := answer(people)
			people[i] = old
			scores[k]++
			if few && (k != 0 || j != 0) {
				t.Errorf("scores %d and %d where nobody can stand out", k, j)
			}
			if j-k > 1 || k-j > 1 {
				t.Errorf("scores %d and %d of neighbours", k, j)
			}
			if most := len(g.thresholds) - 1; k > most || j > most {
				continue
			}
			d := distance(x, y) / g.apart(k, j)
			if !(d <= 1) {
				t.Errorf("scores %d and %d: %v of what is charged", k, j, d)
			}
			closest = max(closest, d)
		}
	}
	t.Logf("scores %v; closest %.3f of the bound", scores, closest)
	if len(scores) < 3 || closest < 0.3 {
		t.Errorf("scores %v, closest pair %v of the bound: the test is weak", scores, closest)
	}
}

// TestNobodyIsFurtherThanTwo: who pulls with all of L against everybody else is 2L(n-1)/n from the mean gradient,
// and nobody is further than what plans take for the most.
func TestNobodyIsFurtherThanTwo(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for n := 2; n < 40; n++ {
		p := public(n, 1, 1, 1)
		p.Lipschitz = 0.1 // below all slopes at 0
		people := make([]Person, n)
		for i := range people {
			people[i] = Person{{Value: []float64{1}, Label: 1}}
		}
		people[rng.IntN(n)] = Person{{Value: []float64{1}, Label: -1}}
		s, err := newSolver(p, 1, n)
		if err != nil {
			t.Fatal(err)
		}
		table, err := newTable(p, convex.Logistic{}, people)
		if err != nil {
			t.Fatal(err)
		}
		got, most := slices.Max(s.far(table, p.start(), numbers([2]int{0, n}))), farthest*p.lipschitz()
		if !(got <= most) || !(got > most*(1-1/float64(n))*(1-1e-6)) {
			t.Errorf("%d people: %v from the mean, of at most %v", n, got, most)
		}
	}
}

// TestGradscoreIsReleasedByItsScore: of people of whom so many stand out, there is a release iff they are no more
// than the deletions that are drawn, which are kappa here but with the probability e^-60.
func TestGradscoreIsReleasedByItsScore(t *testing.T) {
	const kappa = 2
	p := public(200, 1<<18, 1, 8)
	for outliers := range 2*kappa + 3 {
		g, err := newGradscore(p, 1, p.People, lawOf(t, 60, kappa))
		if err != nil {
			t.Fatal(err)
		}
		g.lattice = lattice{1, 1 << 20, 2}
		people := make([]Person, p.People)
		for i := range people {
			people[i] = Person{{Value: []float64{1}, Label: 1}}
			if i < outliers {
				people[i][0].Label = -1
			}
		}
		table, err := newTable(p, convex.Logistic{}, people)
		if err != nil {
			t.Fatal(err)
		}
		_, ok, err := g.release(t.Context(), table, p.start(), numbers([2]int{0, p.People}), rand.NewPCG(1, 2))
		if err != nil || ok != (outliers <= kappa) {
			t.Errorf("%d stand out, of at most %d: released %v, %v", outliers, kappa, ok, err)
		}
	}
}

// TestDistancesMoveByRho attacks the growth of the thresholds: everybody pulls with L into one direction, and one
// person's pull is turned round. That moves the mean gradient by 2L/n, and so everybody else's distance from it from
// 0 to 2L/n.
func TestDistancesMoveByRho(t *testing.T) {
	p := public(10, 1<<18, 1, 8)
	p.Lipschitz = 0.1 // below all slopes near 0
	g, err := newGradscore(p, 1000, p.People, lawOf(t, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	people := make([]Person, p.People)
	far := func(label float64) float64 {
		for i := range people {
			people[i] = Person{{Value: []float64{1}, Label: 1}}
		}
		people[0][0].Label = label
		table, err := newTable(p, convex.Logistic{}, people)
		if err != nil {
			t.Fatal(err)
		}
		all := numbers([2]int{0, p.People})
		x, err := g.minimiser(t.Context(), table, p.start(), all, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g.far(table, x, all)[1]
	}
	moved := far(-1) - far(1)
	if !(moved <= g.rho+2*g.unsure()) || !(moved >= 0.99*g.rho) {
		t.Errorf("a distance moved by %v, charged %v: want at most that, and nearly as much", moved, g.rho)
	}
	for k, most := range g.thresholds[1:] {
		if !(most >= g.thresholds[k]+moved) {
			t.Errorf("thresholds %v and %v are closer than distances of neighbours, %v", g.thresholds[k], most, moved)
		}
	}
}

// counted is a context that counts how often it is asked: once a step of a solver.
type counted struct {
	context.Context
	steps int
}

func (c *counted) Err() error { c.steps++; return nil }

// TestHaltsDoTheSameWork: whether the release happens is public, and how many steps it took to find out says nothing.
func TestHaltsDoTheSameWork(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	p := public(60, 1<<16, 2, 8)
	plan, err := planGradscore(p)
	if err != nil {
		t.Fatal(err)
	}
	tame := make([]Person, p.People)
	row := convex.Example{Value: []float64{1, 0}, Label: 1}
	for i := range tame {
		tame[i] = Person{row}
	}
	wild := make([]Person, p.People)
	copy(wild, tame)
	for i := range p.People / 2 {
		x := []float64{rng.NormFloat64(), rng.NormFloat64()}
		convex.Clip(x, 1)
		wild[2*i] = Person{{Value: x, Label: -1}}
	}
	steps := 0
	for name, people := range map[string][]Person{"tame": tame, "wild": wild} {
		ctx := &counted{Context: t.Context()}
		r, err := plan.Fit(ctx, convex.Logistic{}, people, rand.NewPCG(1, 2))
		if err != nil {
			t.Fatal(err)
		}
		if r.Halted != (name == "wild") || !p.Set.Contains(r.Model) || (r.Phase == 0) != r.Halted {
			t.Errorf("%s: halted %v in phase %d", name, r.Halted, r.Phase)
		}
		if r.Halted && distance(r.Model, p.start()) != 0 {
			t.Errorf("%s: halted, and not at the start", name)
		}
		if steps != 0 && ctx.steps != steps {
			t.Errorf("%s: %d steps, others %d", name, ctx.steps, steps)
		}
		steps = ctx.steps
	}
}

// lawOf returns the law of a rate and a size.
func lawOf(t *testing.T, rate float64, kappa int) law {
	t.Helper()
	l, err := randomizer.LaplaceOfRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	out, err := randomizer.NewTruncatedLaplace(l, kappa)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDistancesByHand: of 10 people, 2 and 3 of whom go from one of two neighbours, 4 inliers of radius f(2) and 3 of f(3)
// are between the minimisers, over the 4 people that both have: (4 f(2) + 3 f(3))/4. An inlier's gradient at k deletions is
// within gamma + k rho + k rho n/(n-k) of the mean.
func TestDistancesByHand(t *testing.T) {
	// rho = (4 beta/nu + 2) L/n, here (4 * 1.5/2 + 2) * 2/400: a minimiser moves by 2 L/(nu n), and with it, beta times as
	// far, a person's gradient and the mean one, which one person's own moves by 2 L/n more.
	steep := problem(400, 1<<20, 3, 8)
	steep.Lipschitz, steep.Smoothness, steep.Ridge = 2, 1.5, 0.5
	of, _ := calibratedLaw(steep.Budget)
	if g, err := newGradscore(steep, 1.5, 400, of); err != nil || !(g.rho >= 0.025 && g.rho < 0.02501) {
		t.Fatalf("rho %v, want 0.025; %v", g.rho, err)
	}
	apart := scoredApart(10, func(k int) float64 { return float64(100 + k) })
	if got := apart(2, 3); math.Abs(got-(4*102.+3*103.)/4) > 1e-12 {
		t.Errorf("%v apart, want 179.25", got)
	}
	if got := apart(5, 4); !math.IsInf(got, 1) {
		t.Errorf("nobody is left and they are %v apart", got)
	}
	p := problem(400, 1<<20, 3, 8)
	l, _ := calibratedLaw(p.Budget)
	g, err := newGradscore(p, 1, p.People, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{0, 1, l.Kappa(), 2 * l.Kappa()} {
		want := min(g.gamma+float64(k)*g.rho*(1+400/(400-float64(k))), 2)
		if got := g.inlier(k); !(got >= want) || got > want*1.001 {
			t.Errorf("%d deletions: an inlier is within %v, want %v", k, got, want)
		}
	}
	if g.inlier(2*l.Kappa()) >= 2 {
		t.Error("every gradient is an inlier: nothing is seen")
	}
}

// TestUncertaintyByHand: L = 2, beta = 1.5, R = 1, nu = 2, d = 3 and n = 400. A gradient is wrong by at most 2e, where
// e is twice 2 (1024 + 8) + 1024 + 400/1024 of sums, 2^14 of slopes, 1.5 (3 + 3/1024 + 8) 3/2 of scores, 32 (of the
// ridge), (4.5 + 80) 3.5/2 of projections and 16, in all 19693.022, in units of 2^-53 L: 1.749092e-11. A distance from
// the mean gradient is then uncertain by v = 2 beta xi + 2w; thresholds go up by rho + 2v, and an inlier is v further
// away.
func TestUncertaintyByHand(t *testing.T) {
	p := problem(400, 1<<20, 3, 8)
	p.Lipschitz, p.Smoothness, p.Ridge = 2, 1.5, 0.5
	l, _ := calibratedLaw(p.Budget)
	g, err := newGradscore(p, 1.5, 400, l)
	if err != nil {
		t.Fatal(err)
	}
	relative(t, "what a gradient is wrong by", g.wrong, 1.749092e-11, 1e-6)
	relative(t, "what is added to L", p.lipschitz()/2-1, 0x1p-24, 1e-6) // for the rounding of norms, and to beta
	relative(t, "what is added to beta", p.smoothness()/1.5-1, 0x1p-19, 1e-5)
	// xi is 2^-12 2L/(nu n), 4e/nu and (3/2 + 24) R 2^-53.
	relative(t, "rounding in xi", g.xi-0x1p-12*2*p.lipschitz()/(2*400), 1.749375e-11, 1e-5)
	relative(t, "from one threshold to the next", g.thresholds[1]-g.thresholds[0], g.rho+2*g.unsure(), 1e-8)
	wide := *g.solver
	wide.xi, wide.wrong = 0.01, 0.003
	g.solver = &wide
	relative(t, "v", g.unsure(), 0.036, 1e-5)
	relative(t, "an inlier", g.inlier(0), g.gamma+0.036, 1e-5)
}
