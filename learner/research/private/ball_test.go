package private

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"gonum.org/v1/gonum/mathext"
	"pgregory.net/rapid"
)

// smallBall returns a plan of few calls.
func smallBall(t *testing.T, n, d int, eps float64) (Public, ball) {
	p := public(ReSQueBall, n, d)
	p.Epsilon = eps
	return p, settled(t, p, 4)
}

// settled returns a plan of few calls, with probes of 2^log steps.
func settled(t *testing.T, p Public, log int) ball {
	s := ballSearch{p}
	b, ok := s.charge(ballShape{gap: .4, ratio: .1, log: [3]int{log, 4, 4}, levels: 2, probes: 3, copies: 3})
	if !ok {
		t.Fatal("no such plan")
	}
	if err := s.settle(&b); err != nil {
		t.Fatal(err)
	}
	return b
}

// Every release of a run has the noise of an entry of its ledger: what is seen, charged by its own noise, steps and
// rate, is no more than what the ledger holds, which is what was planned.
func TestBallIsCharged(t *testing.T) {
	const n = 400
	p, b := smallBall(t, n, 2, 4)
	book, releases := newLedger(p.target()), 0
	m := newMoments(b.outer.Ball/b.rho, .999, true)
	b.seen = func(s stage, of []phase, x []float64) {
		releases++
		q := s.rate.Float()
		steps, mu := 0, 0.
		for _, ph := range of {
			steps += ph.steps
			kd, _ := m.multiplier(1, ph.e*p.Lipschitz/b.rho, ph.steps, s.call.drift/q)
			mu = max(mu, kd*ph.e*p.Lipschitz/s.batch(n)/(math.Sqrt(noiseVariance)*ph.level))
		}
		if expected := q * n; math.Abs(expected-float64(steps)) > 1e-3*expected {
			t.Errorf("%d steps about %v records", steps, expected)
		}
		if math.Hypot(x[0], x[1]) > b.outer.Ball*(1+1e-12) {
			t.Errorf("%v is not within %v", x, b.outer.Ball)
		}
		close(t, "drift of a release", s.call.drift*b.stages(), driftShare*p.target().Delta*math.Exp(-p.target().Epsilon),
			1e-9)
		one := accounting.SampledGaussian(q, mu)
		for i, e := range one {
			if e > s.call.curve[i]*(1+1e-9) {
				t.Fatalf("%d steps: mu %v is seen, and %v was charged", steps, mu, s.mu)
			}
		}
		book = book.with(1, entry{curve: one, slack: s.call.slack, drift: s.call.drift})
	}
	r, err := newRecords(world(n, 2, 1), p)
	if err != nil {
		t.Fatal(err)
	}
	_, held, err := b.run(t.Context(), p, r, dptest.Source(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	planned := b.ledger(p)
	for i, e := range held.curve {
		if math.Abs(e/planned.curve[i]-1) > 1e-9 || book.curve[i] > e*(1+1e-9) {
			t.Fatalf("order %d: seen %v, held %v, planned %v", accounting.RenyiOrders()[i], book.curve[i], e, planned.curve[i])
		}
	}
	close(t, "slack", held.slack, planned.slack, 1e-9)
	close(t, "drift", held.drift, planned.drift, 1e-9)
	if !held.fits() || book.slack > held.slack*(1+1e-9) || book.drift > held.drift*(1+1e-9) ||
		!(held.slack > 0 && held.drift > 0) {
		t.Errorf("seen %v and %v, held %v and %v", book.slack, book.drift, held.slack, held.drift)
	}
	most := b.stages()
	t.Logf("%d releases of at most %v; seen epsilon %.4f, held %.4f", releases, most, book.cost().Epsilon,
		held.cost().Epsilon)
	if float64(releases) > most || float64(releases) < most/20 {
		t.Errorf("%d releases of %v", releases, most)
	}
	if want := b.outer.Steps * (b.outer.Probes*b.copies + 1); b.kinds[ofProbe].times+b.kinds[ofStep].times != want {
		t.Errorf("%d probes and %d steps are planned, want %d together", b.kinds[ofProbe].times, b.kinds[ofStep].times, want)
	}
}

// KD of every stage is computed for its longest steps, the smallest batch, and losses that are convex only
// where the plan says so.
func TestDriftIsOfTheLosses(t *testing.T) {
	for _, convexLosses := range []bool{true, false} {
		p := public(ReSQueBall, 400, 2)
		p.Epsilon, p.Convex = 4, convexLosses
		b := settled(t, p, 3)
		batch := math.Inf(1)
		for _, k := range b.kinds {
			for _, c := range k.strong {
				batch = min(batch, c.batch(p.N))
			}
		}
		right, wrong := newMoments(.1, batch, convexLosses), newMoments(.1, batch, !convexLosses)
		for _, k := range b.kinds {
			for _, c := range k.strong {
				delta := c.call.drift / c.rate.Float()
				close(t, "KD", c.kd, c.drift(right, delta), 1e-9)
				if other := c.drift(wrong, delta); convexLosses == (c.kd > other) {
					t.Errorf("convex %v: KD %v, and %v if not", convexLosses, c.kd, other)
				}
			}
		}
	}
}

// The numbers of calls are public: with other records, the same J, of which there are never more than the ledger has.
func TestLevelsAreDrawnBeforeRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps, levels := rapid.IntRange(1, 300).Draw(t, "steps"), rapid.IntRange(1, 8).Draw(t, "levels")
		caps, seed := levelCaps(steps, levels), rapid.Uint64().Draw(t, "seed")
		var fails float64
		for i, c := range caps {
			if c < steps {
				fails += mathext.RegIncBeta(float64(c+1), float64(steps-c), math.Ldexp(1, -i-1))
			}
		}
		if fails > .5 {
			t.Errorf("%v: above them with probability %v", caps, fails)
		}
		drawn, err := drawLevels(steps, caps, rand.NewPCG(seed, 1))
		if err != nil {
			t.Fatal(err)
		}
		times := levelTimes(steps, caps)
		for _, j := range drawn {
			times[0]--
			if j <= levels {
				times[j]--
				times[j-1]--
			}
		}
		if slices.Min(times) < 0 {
			t.Errorf("levels %v are not within %v", drawn, caps)
		}
	})
	const n = 400
	p, b := smallBall(t, n, 2, 4)
	var first []int
	for seed := range uint64(3) {
		r, err := newRecords(world(n, 2, seed), p)
		if err != nil {
			t.Fatal(err)
		}
		want, err := drawLevels(b.outer.Steps, b.caps, rand.NewPCG(5, 5))
		if err != nil {
			t.Fatal(err)
		}
		run, err := b.start(p, r, rand.NewPCG(5, 5))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := run.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = run.levels
		}
		if !slices.Equal(run.levels, want) || !slices.Equal(run.levels, first) {
			t.Fatalf("levels %v, want %v", run.levels, want)
		}
	}
}

// A run that exceeds the plan is refused before it starts.
func TestBallRefuses(t *testing.T) {
	const n = 400
	p, b := smallBall(t, n, 2, 4)
	r, err := newRecords(world(n, 2, 1), p)
	if err != nil {
		t.Fatal(err)
	}
	run, err := b.start(p, r, dptest.Source(t, 4))
	if err != nil {
		t.Fatal(err)
	}
	run.left[ofStep] = 0 // as where a plan forgot them
	if _, _, err := run.play(t.Context()); err == nil || !strings.Contains(err.Error(), "ledger") {
		t.Errorf("no step is left: %v", err)
	}
	small := p
	small.Epsilon /= 2
	book := newLedger(small.target())
	b.seen = func(s stage, _ []phase, _ []float64) {
		if book = book.with(1, s.call); !book.fits() {
			t.Fatal("a call was made for which there was no room")
		}
	}
	if _, _, err := b.run(t.Context(), small, r, dptest.Source(t, 4)); err == nil ||
		!strings.Contains(err.Error(), "ledger") {
		t.Errorf("half of the epsilon: %v", err)
	}
}

func TestBallLearns(t *testing.T) {
	const n, d = 20000, 2
	q := public(ReSQueBall, n, d)
	q.Epsilon, q.Rounds, q.Passes = 4, 500, 10
	p, err := NewPlan(q)
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsInf(p.Bound, 1) || !strings.HasPrefix(p.advice(), NoisySGD) || p.Rounds > q.Rounds ||
		p.Queries > q.Passes*n*(1+1e-9) {
		t.Errorf("bound %v, %d rounds, %v queries: %s", p.Bound, p.Rounds, p.Queries, p.advice())
	}
	data := world(n, d, 1)
	r, err := p.Fit(t.Context(), data, dptest.Source(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	truth := []float64{0.7 / math.Sqrt2, 0.7 / math.Sqrt2}
	least := meanLoss(data, truth)
	gap, start := meanLoss(data, r.Theta)-least, meanLoss(data, []float64{0, 0})-least
	t.Logf("excess %.4g of %.4g; %d rounds, %.3g gradients, %v", gap, start, p.Rounds, p.Queries, r.Cost)
	if gap > start/10 {
		t.Errorf("excess %v, at the origin %v", gap, start)
	}
	if math.Abs(r.Cost.Epsilon-p.Cost.Epsilon) > 1e-6 || p.Cost.Epsilon > q.Epsilon || p.Cost.Delta > q.Delta ||
		p.Cost.Epsilon < 0.9*q.Epsilon {
		t.Errorf("the ledger holds %v, planned %v", r.Cost, p.Cost)
	}
}
