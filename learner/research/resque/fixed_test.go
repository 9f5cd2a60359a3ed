package resque

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/dptest"
)

// The recursion of both accelerators.
func TestAccelerator(t *testing.T) {
	a := accelerator{a: 3}
	if got := a.step(2); got != 1.5 || 2*got*got != a.a+got {
		t.Errorf("a = %v", got)
	}
	a = accelerator{}
	var sum float64
	want := map[int]float64{1: 1, 2: 2.618034, 3: 4.811561, 10: 35.30875, 100: 2650.379}
	for n := 1; n <= 100; n++ {
		a.a += a.step(1)
		sum += a.a
		if v, ok := want[n]; ok {
			near(t, "A", a.a, v, 1e-6)
		}
		if a.a < float64(n)*float64(n)/4 {
			t.Errorf("A_%d = %v, below N^2/4", n, a.a)
		}
	}
	near(t, "sum A/A_100", sum/a.a, 34.5729, 1e-5)
}

// Plans keep Theorem F's bound below the gap, in no more rounds than 2 sqrt(kappa R/r), and with slack say honestly
// what they have.
func TestFixedPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		radius, s := math.Exp(rapid.Float64Range(-2, 2).Draw(t, "log R")), rapid.Float64Range(.1, 2).Draw(t, "s")
		b := ball{longest: math.Exp(rapid.Float64Range(-2, 2).Draw(t, "log L"))}
		kappa := math.Exp(rapid.Float64Range(.1, 5).Draw(t, "log kappa"))
		gap := b.longest * radius / kappa
		b.r = radius * math.Exp(-rapid.Float64Range(0, 6).Draw(t, "log R/r"))
		b.rho = b.r / s
		for _, solver := range []solver{epochSGD{}, restarted{}} {
			f, err := planFixed(b, radius, gap, 1, solver)
			if err != nil {
				t.Fatal(err)
			}
			if f.bound > gap*(1+1e-12) {
				t.Errorf("bound %v above the gap %v", f.bound, gap)
			}
			if most := math.Ceil(2 * math.Sqrt(kappa*radius/b.r)); float64(f.rounds) > most {
				t.Errorf("%d rounds, want at most %v", f.rounds, most)
			}
			loose, err := planFixed(b, radius, gap, 30, solver)
			if err != nil {
				t.Fatal(err)
			}
			if loose.bound < f.bound || loose.rounds != f.rounds || loose.fresh > f.fresh || loose.solve > f.solve {
				t.Errorf("with slack %+v, without %+v", loose, f)
			}
		}
	})
}

// The table of costs: rounds N for r = rho = R/(kappa sqrt(d)), and about 1.02e3 kappa^2 queries with the paper's
// shares, fewer with ours.
func TestFixedRounds(t *testing.T) {
	for _, c := range []struct {
		kappa, d float64
		rounds   int
	}{{10, 100, 63}, {100, 10, 356}, {100, 100, 632}, {1000, 100, 6325}} {
		r := 1 / c.kappa / math.Sqrt(c.d)
		f, err := planFixed(ball{1, r, r}, 1, 1/c.kappa, 1, epochSGD{})
		if err != nil {
			t.Fatal(err)
		}
		total := float64(f.rounds) * float64(f.solve+f.fresh) / c.kappa / c.kappa
		t.Logf("kappa %v, d %v: %d rounds, %.0f kappa^2 queries", c.kappa, c.d, f.rounds, total)
		if f.rounds > c.rounds || float64(f.rounds) < .96*float64(c.rounds) || total > 1020*1.1 {
			t.Errorf("kappa %v, d %v: %d rounds, want %d; %.0f kappa^2 queries, want at most 1020", c.kappa, c.d, f.rounds,
				c.rounds, total)
		}
	}
}

// Steps until A >= R^2/gap, for L = R = 1.
func TestFixedSteps(t *testing.T) {
	for _, c := range []struct {
		kappa, inverse float64
		rounds         int
	}{{30, 30, 58}, {100, 100, 197}, {100, 1000, 629}} {
		f, err := planFixed(ball{1, 1 / c.inverse, 1 / c.inverse}, 1, 1/c.kappa, 1, epochSGD{})
		if err != nil || f.rounds != c.rounds {
			t.Errorf("kappa %v, R/r %v: %d rounds, want %d, %v", c.kappa, c.inverse, f.rounds, c.rounds, err)
		}
	}
}

// Theorem F holds on quadratics and on norms: the mean gap over runs is below the bound by more than its standard
// errors.
func TestTheoremF(t *testing.T) {
	const d, trials = 6, 12
	random := rand.New(dptest.Source(t, 11))
	target := make([]float64, d)
	unit(random, target)
	for _, f := range []struct {
		name   string
		value  func(x []float64) float64
		oracle oracleFunc
		l      float64
	}{
		{"l1", func(x []float64) (sum float64) {
			// mean of |x_i - target_i|: each query asks one coordinate, with a second moment of 1
			for i, v := range x {
				sum += math.Abs(v-target[i]) / d
			}
			return sum
		}, func(_ context.Context, dst, points []float64, random *rand.Rand) error {
			clear(dst)
			for i := 0; i < len(points); i += d {
				j := random.IntN(d)
				dst[i+j] = math.Copysign(1, points[i+j]-target[j])
			}
			return nil
		}, 1},
		{"quadratic", func(x []float64) (sum float64) { // Huber's: a quadratic where it matters, with slopes of at most 1
			for i, v := range x {
				sum += (v - target[i]) * (v - target[i])
			}
			if norm := math.Sqrt(sum); norm > 1 {
				return norm - .5
			}
			return sum / 2
		}, func(_ context.Context, dst, points []float64, random *rand.Rand) error {
			for i := 0; i < len(points); i += d {
				g := dst[i : i+d]
				for j := range g {
					g[j] = points[i+j] - target[j]
				}
				convex.Clip(g, 1)
				g[random.IntN(d)] += math.Copysign(1, random.Float64()-.5)
			}
			return nil
		}, math.Sqrt2},
	} {
		for _, slack := range []float64{1, 30} {
			var total, squares, bound float64
			for trial := range trials {
				got, err := Minimize(t.Context(), Problem{f.oracle, d, f.l, 1}, Config{Gap: .15, Slack: slack,
					Seed: dptest.Seed(uint64(trial))})
				if err != nil {
					t.Fatal(err)
				}
				gap := f.value(got.Model)
				total, squares, bound = total+gap, squares+gap*gap, got.Bound
			}
			m := total / trials
			deviation := math.Sqrt((squares/trials - m*m) / trials)
			t.Logf("%s, slack %v: mean gap %.4f, bound %.4f", f.name, slack, m, bound)
			if m+20*deviation > bound { // of 12: Student's at a level of 1e-9
				t.Errorf("%s, slack %v: mean gap %v, standard error %v, above the bound %v", f.name, slack, m, deviation, bound)
			}
			if slack == 1 && bound > .15 {
				t.Errorf("%s: a bound of %v for a gap of .15", f.name, bound)
			}
		}
	}
}

// D23: where the gap is no smaller than L R there is nothing to do, and nobody is asked.
func TestNothingToDo(t *testing.T) {
	for _, gap := range []float64{6, 7} {
		got, err := Minimize(t.Context(), Problem{oracleFunc(noisy), 3, 2, 3}, Config{Gap: gap})
		if err != nil || got.Queries != 0 || got.Depth != 0 || len(got.Model) != 3 || dot(got.Model, got.Model) != 0 ||
			got.Bound != 6 {
			t.Errorf("gap %v: %+v, %v", gap, got, err)
		}
	}
}

// What does not fit is refused by its name.
func TestRefused(t *testing.T) {
	sound := Problem{oracleFunc(noisy), 1, 1, 1}
	for _, c := range []struct {
		p Problem
		c Config
	}{
		{Problem{nil, 1, 1, 1}, Config{Gap: .1}}, {Problem{sound.Oracle, 0, 1, 1}, Config{Gap: .1}},
		{Problem{sound.Oracle, 1, 0, 1}, Config{Gap: .1}},
		{Problem{sound.Oracle, 1, 1, math.Inf(1)}, Config{Gap: .1}}, {sound, Config{}}, {sound, Config{Gap: math.NaN()}},
		{sound, Config{Gap: .1, Algorithm: "naive"}},
		{sound, Config{Gap: .1, Solver: "sgd"}}, {sound, Config{Gap: .1, Slack: -1}},
		{sound, Config{Gap: .1, Workers: -1}},
		{sound, Config{Gap: 1e-12}},
	} {
		if _, err := Minimize(t.Context(), c.p, c.c); err == nil {
			t.Errorf("%+v, %+v: not refused", c.p, c.c)
		}
	}
}
