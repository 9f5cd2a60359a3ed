package curator

import (
	"fmt"
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

func sixteen(epsilon float64, n int) Public {
	return Public{People: n, Items: 16, Dim: 10, Lipschitz: 1, Smoothness: 1, Ridge: 1, Budget: budget(epsilon)}
}

func near(t *testing.T, what string, got, want, to float64) {
	t.Helper()
	if !(math.Abs(got/want-1) <= to) {
		t.Errorf("%s: %.5g, want %.5g within %v", what, got, want, to)
	}
}

// The items of a person from which on each release has less noise than the baseline's, were its noise to fall like
// the root of their number from 16 on. That of sums over people does so exactly. What a score of gradients allows
// for the minimiser's own moves does not fall at all: its crossover is later. At 16 items its gamma is the
// formula's here, above the most that a plan's is.
func TestCrossovers(t *testing.T) {
	want := map[string]struct {
		people        int
		scaled, exact [3]float64
	}{
		"paper deletion": {10_000, [3]float64{1.42e10, 3.65e8, 7.47e7}, [3]float64{1.42e10, 3.65e8, 7.47e7}},
		"deletion":       {10_000, [3]float64{6.0e7, 1.77e6, 3.5e5}, [3]float64{6.0e7, 1.77e6, 3.5e5}},
		"gradscore":      {10_000, [3]float64{1.04e6, 1.04e5, 3.5e4}, [3]float64{0, 1.49e5, 3.96e4}},
		"filtered":       {5000, [3]float64{2195, 1545, 1399}, [3]float64{2195, 1545, 1399}},
		"group-sgd":      {5000, [3]float64{791, 557, 505}, [3]float64{791, 557, 505}},
	}
	for _, c := range Contests() {
		name := c.Method
		if c.Paper {
			name = "paper " + name
		}
		for i, epsilon := range epsilons {
			p := sixteen(epsilon, want[name].people)
			root := c.Root(p)
			near(t, fmt.Sprintf("%s, epsilon %v, scaled", name, epsilon), root, want[name].scaled[i], 0.1)
			exact := c.From(p)
			if want[name].exact[i] == 0 {
				if exact != 0 {
					t.Errorf("%s, epsilon %v: %d, want none", name, epsilon, exact)
				}
				continue
			}
			near(t, fmt.Sprintf("%s, epsilon %v", name, epsilon), float64(exact), want[name].exact[i], 0.1)
			if float64(exact) < 0.99*root {
				t.Errorf("%s, epsilon %v: %d, before %v", name, epsilon, exact, root)
			}
		}
	}
}

// With more people the moves of the minimiser weigh less, and a score of gradients has its crossover.
func TestManyPeopleHaveACrossover(t *testing.T) {
	c := contests[0]
	from := c.From(sixteen(1, 100_000))
	near(t, "100,000 people", float64(from), 1.73e6, 0.1)
	for _, m := range []int{from / 2, from * 2} {
		p := sixteen(1, 100_000)
		if p.Items = m; (c.noiseRatio(p) > 1) != (m < from) {
			t.Errorf("%d items: ratio %v, crossover at %d", m, c.noiseRatio(p), from)
		}
	}
}

// Noise of a score of gradients over the baseline's, 10,000 people.
func TestGradientScoreNoise(t *testing.T) {
	for smoothness, want := range map[float64]float64{1: 0.2156, 10: 0.2247, 100: 0.314} {
		p := sixteen(1, 10_000)
		p.Smoothness = smoothness
		near(t, fmt.Sprintf("smoothness %v", smoothness), uncapped(p), want, 0.05)
	}
	near(t, "a person as one item", minimiserShift(10_000)*perShift(budget(1)), 0.000845, 0.001)
	near(t, "deletions", deletionRatio(sixteen(1, 10_000))(16)*0.000845, 1.639, 0.01)
	p := sixteen(1, 1000)
	near(t, "the paper's sensitivity", deletionSensitivity(p, 16, 32), 0.0430062926, 1e-6)
	_, paper := paperDeletions(p.Budget)
	near(t, "the paper's noise", deletionSensitivity(p, 16, 32)*paper, 123.790469, 1e-6)
}

// Rows that are less different need fewer items, by the square, and too few people have no crossover.
func TestSpreadAndFewPeople(t *testing.T) {
	for _, c := range Contests() {
		p := sixteen(4, 5000)
		p.Items = 4096 // from which on no bound but the rows' own is reached
		all, some := c.noiseRatio(p), p
		if some.Spread = 0.1; c.Method != "gradscore" {
			near(t, c.Method, c.noiseRatio(some), all/10, 1e-3)
		} else if c.noiseRatio(some) > all/5 {
			t.Errorf("%s: %v of %v", c.Method, c.noiseRatio(some), all)
		}
		for _, n := range []int{1, 2, 17} {
			if p.People = n; c.From(p) != 0 {
				t.Errorf("%s: %d people have a crossover at %d", c.Method, n, c.From(p))
			}
		}
	}
}

// What plans release on the lattice has the noise of the planning figures, within 5 %.
func TestPlansHaveTheirFigures(t *testing.T) {
	p := sixteen(1, 10_000)
	p.Set = convex.Ball{R: 5}
	m, _ := Of("gradscore")
	plan, err := m.Plan(p)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "gradscore", plan.NoiseStd, contests[0].noiseRatio(p)*minimiserNoise(p), 0.05)

	p.People, p.Ridge, p.Budget = 2000, 0, budget(4)
	g, err := searchGroups(p)
	if err != nil {
		t.Fatal(err)
	}
	m, _ = Of("group-sgd")
	if plan, err = m.Plan(p); err != nil {
		t.Fatal(err)
	}
	last := g.phases[len(g.phases)-1]
	near(t, "group-sgd on its lattice", plan.NoiseStd, g.constants.sigma*last.tau, 0.05)
}
