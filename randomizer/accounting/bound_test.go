package accounting

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestRounds is the example of docs/proofs/theorem-a.md, section 4.
func TestRounds(t *testing.T) {
	for _, c := range []struct {
		rounds int
		eps    float64
	}{{1, 0.9972}, {2, 1.4508}, {5, 2.3935}, {10, 3.5159}, {50, 8.8668}, {100, 13.4845}} {
		got, err := Epsilon(1e-6, Mechanism{Trials: 26000, P: 0.5, Levels: 19, Dim: 100, Rounds: c.rounds})
		if err != nil || math.Abs(got-c.eps) > 6e-5 {
			t.Errorf("T=%d: epsilon %.5f (%v), want %.4f", c.rounds, got, err, c.eps)
		}
	}
	one, err := Delta(1, Mechanism{Trials: 26000, P: 0.5, Levels: 19, Dim: 100, Rounds: 3})
	if err != nil {
		t.Fatal(err)
	}
	m := Mechanism{Trials: 26000, P: 0.5, Levels: 19, Dim: 100, Rounds: 1}
	if split, err := Delta(1, m, m, m); err != nil || math.Abs(split/one-1) > 1e-9 {
		t.Errorf("three rounds at once %v, one by one %v (%v)", one, split, err)
	}
}

// TestFloorWorth: the noise of 100 .. 1000 users as a floor.
func TestFloorWorth(t *testing.T) {
	for _, c := range []struct {
		users uint64
		eps   float64
	}{{100, 3.584}, {250, 2.130}, {500, 1.454}, {1000, 0.997}} {
		m := Mechanism{Trials: c.users * 26, P: 0.5, Levels: 19, Dim: 100, Rounds: 1}
		if got, err := m.Epsilon(1e-6); err != nil || math.Abs(got-c.eps) > 6e-4 {
			t.Errorf("%d users' noise: epsilon %.4f (%v), want %.3f", c.users, got, err, c.eps)
		}
	}
}

// TestReleaseAdversaries counts the trials of every adversary by hand.
func TestReleaseAdversaries(t *testing.T) {
	third, err := ParseFraction("1/3")
	if err != nil {
		t.Fatal(err)
	}
	base := Release{Users: 1000, Dim: 10, Levels: 9, P: 0.5, HonestFraction: third, Rounds: 1}
	for _, c := range []struct {
		trust             Trust
		b, floor          uint64
		learner, intruder uint64
	}{
		{Shuffle, 20, 0, 333 * 20, 0},
		{Pan, 0, 5000, 10000, 5000},
		{ShufflePan, 20, 5000, 333*20 + 10000, 5020},
	} {
		r := base
		r.Trust, r.Trials, r.FloorTrials = c.trust, c.b, c.floor
		g, err := r.Epsilon(1e-6)
		if err != nil {
			t.Fatal(err)
		}
		of := func(trials uint64) float64 {
			e, err := Mechanism{Trials: trials, P: 0.5, Levels: 9, Dim: 10, Rounds: 1}.Epsilon(1e-6)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		if g.Learner != of(c.learner) || g.HasIntruder != (c.intruder > 0) {
			t.Errorf("%v: %+v, learner alone %v", c.trust, g, of(c.learner))
		}
		if g.HasIntruder && (g.Intruder != of(c.intruder) || g.Epsilon != g.Intruder) {
			t.Errorf("%v: %+v, intruder %v", c.trust, g, of(c.intruder))
		}
		f, err := r.Delta(g.Epsilon)
		if err != nil || f.Delta > 1e-6 || f.HasIntruder != g.HasIntruder {
			t.Errorf("%v: %+v at epsilon %v (%v)", c.trust, f, g.Epsilon, err)
		}
		// One look in T rounds: the intruder's mu joins T-1 of the learner's.
		r.Rounds = 4
		many, err := r.Epsilon(1e-6)
		if err != nil {
			t.Fatal(err)
		}
		if many.HasIntruder && !(many.Intruder > many.Learner && many.Learner > g.Learner) {
			t.Errorf("%v, four rounds: %+v", c.trust, many)
		}
	}
}

// TestMoreNoiseIsNeverWorse: delta falls with N up to the steps of the windows,
// and grows with g, d and T.
func TestMoreNoiseIsNeverWorse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := Mechanism{
			Trials: rapid.Uint64Range(50, 40000).Draw(rt, "trials"),
			P:      float64(rapid.Int64Range(1<<20, 1<<24-1<<20).Draw(rt, "k")) / (1 << coinBits),
			Levels: rapid.IntRange(1, 40).Draw(rt, "g"), Dim: rapid.IntRange(1, 800).Draw(rt, "d"),
			Rounds: rapid.IntRange(1, 5).Draw(rt, "T"),
		}
		eps := rapid.Float64Range(0, 8).Draw(rt, "eps")
		delta := func(m Mechanism) float64 {
			d, err := Delta(eps, m)
			if err != nil {
				rt.Fatal(err)
			}
			if !(d >= 0 && d <= 1) {
				rt.Fatalf("%+v: delta %v", m, d)
			}
			return d
		}
		base := delta(m)
		more := m
		more.Trials *= 2
		// What is proved: the bound at N holds for more noise. The strongest pair known, at 2N, stays below it.
		noise := noiseLaw(more.Trials, m.P)
		from, to := coordinateLaw(noise, 0, m.Levels), coordinateLaw(noise, float64(m.Levels), m.Levels)
		for _, pair := range [][2][]float64{{from, to}, {to, from}} {
			if d := min(1, hockeyStick([][]float64{pair[0]}, [][]float64{pair[1]}, eps)); d > base {
				// a sum can end a bit above 1
				rt.Fatalf("%+v: delta %v, but %v is attained with twice the trials", m, base, d)
			}
		}
		// The bound itself falls only up to the steps of its windows: below a standard deviation of 10 a step is
		// several percent. And where both are the slack of the ladder's last rung, tau = 1e-45, they do not fall at
		// all.
		saturated := (1 + math.Exp(eps)) * float64(m.Rounds*m.Dim) * 1e-45
		smooth := math.Sqrt(float64(m.Trials)*m.P*(1-m.P)) >= 10
		if d := delta(more); smooth && d > base*1.02 && d > saturated {
			rt.Fatalf("%+v: delta %v, with twice the trials %v", m, base, d)
		}
		for _, worse := range []Mechanism{
			{m.Trials, m.P, m.Levels + 1, m.Dim, m.Rounds, m.Units, m.Shift},
			{m.Trials, m.P, m.Levels, m.Dim + 1, m.Rounds, m.Units, m.Shift},
			{m.Trials, m.P, m.Levels, m.Dim, m.Rounds + 1, m.Units, m.Shift},
		} {
			if delta(worse) < base*(1-1e-9) {
				rt.Fatalf("%+v: delta %v, of the harder %+v %v", m, base, worse, delta(worse))
			}
		}
	})
}

// TestEpsilonInvertsDelta: what Epsilon returns, Delta accepts.
func TestEpsilonInvertsDelta(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 0))
	for range 100 {
		m := shapes(1+rng.IntN(300), 1+rng.IntN(4), 5, 300)(rng)
		delta := math.Pow(10, -1-10*rng.Float64())
		eps, err := Epsilon(delta, m)
		if err != nil {
			t.Fatal(err)
		}
		if math.IsInf(eps, 1) {
			continue
		}
		if d, err := Delta(eps, m); err != nil || d > delta {
			t.Errorf("%+v: delta %v at epsilon %v, want at most %v (%v)", m, d, eps, delta, err)
		}
		if eps > 1e-9 {
			if d, _ := Delta(eps*(1-1e-6), m); d <= delta {
				t.Errorf("%+v: epsilon %v for delta %v is not the smallest", m, eps, delta)
			}
		}
	}
}

// TestNoGuarantee: too little noise is reported, not hidden.
func TestNoGuarantee(t *testing.T) {
	for _, m := range []Mechanism{
		{1, 0.5, 1, 1, 1, 0, 0}, {3, 0.5, 1, 1, 1, 0, 0}, {10, 0.5, 5, 100, 1, 0, 0}, {100, 1. / (1 << 24), 1, 1, 1, 0, 0},
		{26, 0.5, 19, 100, 1, 0, 0}, {1 << 20, 0.5, maxCount - 1, maxCount - 1, maxCount - 1, 0, 0},
	} {
		if eps, err := m.Epsilon(1e-6); err != nil || !math.IsInf(eps, 1) {
			t.Errorf("%+v: epsilon %v (%v), want +Inf", m, eps, err)
		}
		if d, err := m.Delta(0.5); err != nil || !(d > 1e-6 && d <= 1) {
			t.Errorf("%+v: delta %v (%v)", m, d, err)
		}
	}
	if d, err := (Mechanism{26000, 0.5, 19, 100, 1, 0, 0}).Delta(1e300); err != nil || !(d >= 0 && d <= 1) {
		t.Errorf("delta at epsilon 1e300: %v (%v)", d, err)
	}
}

// TestAffordable: laws too wide to tabulate are bounded by narrower ones.
func TestAffordable(t *testing.T) {
	r := Release{Trust: Shuffle, Users: 1 << 39, Dim: 3, Levels: 1000, Trials: 1 << 19, P: 0.5, HonestFraction: One,
		Rounds: 1}
	wide, err := r.Epsilon(1e-6)
	if err != nil {
		t.Fatal(err)
	}
	if wide.Epsilon <= 0 || wide.Epsilon > 0.1 {
		t.Errorf("epsilon %v, want what a standard deviation of 5e4 proves", wide.Epsilon)
	}
	for _, b := range []binomial{{1 << 61, 1 << 23}, {1 << 61, 1}, {1 << 37, 1}, {1<<29 - 1, 1<<24 - 1}} {
		if c := affordable(b); c.n > b.n || c.variance() > maxVariance || c.n > 1<<37 || c.n < 1 {
			t.Errorf("affordable(%+v) = %+v", b, c)
		}
	}
}
