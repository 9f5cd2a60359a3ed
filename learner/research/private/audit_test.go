package private

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/resque"
	"github.com/panlearn/panlearn/randomizer"
	"gonum.org/v1/gonum/mathext"
)

// auditDelta returns a lower bound, at confidence 1 - 2e-9, on the delta at eps of runs with and without the
// record: their first halves choose a threshold, by the second halves it is counted (Clopper and Pearson).
func auditDelta(with, without []float64, eps float64) float64 {
	half := len(with) / 2
	above := func(of []float64, t float64) float64 {
		n := 0
		for _, v := range of {
			if v > t {
				n++
			}
		}
		return float64(n)
	}
	best, at := math.Inf(-1), 0.0
	for _, t := range slices.Sorted(slices.Values(with[:half])) {
		if e := above(with[:half], t) - math.Exp(eps)*above(without[:half], t); e > best {
			best, at = e, t
		}
	}
	n, k, l := float64(len(with)-half), above(with[half:], at), above(without[half:], at)
	return atLeast(k, n) - math.Exp(eps)*(1-atLeast(n-l, n))
}

// atLeast returns the lower bound of a frequency that was seen k times in n, at 1 - 1e-9.
// mathext.InvRegIncBeta stops far from it where n is large.
func atLeast(k, n float64) float64 {
	if k == 0 {
		return 0
	}
	lo, hi := 0.0, k/n
	for range 60 {
		if mid := (lo + hi) / 2; mathext.RegIncBeta(k, n-k+1, mid) <= 1e-9 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// Runs of the whole method on two neighbours, one of which has one record more: what their releases tell is within
// the claim, and where noise is a third of what it is charged as it is not.
func TestAuditOfReSQue(t *testing.T) {
	runs := 2000
	if longtest.Run(t, "100,000 runs a side; 2,000 are played") {
		runs = 100000
	}
	const n = 16
	p := Public{Method: ReSQue, N: n, Dim: 1, Lipschitz: 1, Radius: 1, Epsilon: 3, Delta: 1e-6, Convex: true}
	m := newMoments(.02, 1, true)
	s := pvSearch{p: p, last: new(int), most: 1e6}
	v, ok := s.shape(m, []float64{math.Log(.01), math.Log(2), math.Log(8), math.Log(.98 * n), 0})
	if !ok {
		t.Fatal("no such plan")
	}
	s.charge(&v, 8)
	if _, err := s.settle(&v); err != nil {
		t.Fatal(err)
	}
	var err error
	if v.coins, err = randomizer.NewBinomial(noiseTrials, randomizer.Fair); err != nil {
		t.Fatal(err)
	}
	entropy := rand.NewChaCha8([32]byte{7})
	play := func(v pv, present bool) []float64 {
		r, err := newRecords(Data{Loss: convex.Absolute{}, Features: 1, Rows: rowsOf(n, present)}, p)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float64, runs)
		for i := range out {
			v.seen = func(_, g []float64) { out[i] += g[0] }
			if _, _, err := v.run(context.Background(), p, r, entropy); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	t.Logf("mu of a call %.3f, of a gradient %.3f at rate %.2f", v.mu, v.gradMu, v.gradRate.Float())
	book := newLedger(p.target()).with(2, v.call).with(2, v.gradient)
	if !book.fits() {
		t.Fatal("the target is not met")
	}
	const eps = 0
	claimed := book.curve.Delta(eps) + book.masses(eps)
	without := play(v, false)
	var square float64
	for _, g := range without { // of two releases
		square += g * g / float64(2*runs)
	}
	if least := v.most * p.Lipschitz / v.gradMu; square < least*least*(1-6/math.Sqrt(float64(runs))) {
		t.Errorf("a gradient's noise has a standard deviation of %v, want at least %v", math.Sqrt(square), least)
	}
	if sound := auditDelta(play(v, true), without, eps); sound > claimed {
		t.Errorf("the audit shows delta %v at epsilon %v, claimed %v", sound, eps, claimed)
	} else {
		t.Logf("delta at epsilon %v: claimed %.4f, shown at least %.4f", eps, claimed, sound)
	}
	broken := v
	broken.radius *= 3
	if found := auditDelta(play(broken, true), play(broken, false), eps); found <= claimed {
		t.Errorf("a third of the noise: the audit shows delta %v, not above the claimed %v", found, claimed)
	} else {
		t.Logf("a third of the noise: at least %.4f", found)
	}
}

// Each phase of a call has the noise that it is charged for: the means of its releases with one record more, in the
// slot from which it moves most, are at most mu standard deviations apart, and no less than what KD leaves of that.
func TestCallNoiseIsAsCharged(t *testing.T) {
	const n, runs = 16, 4000
	p := Public{Method: ReSQue, N: n, Dim: 1, Lipschitz: 1, Radius: 1, Epsilon: 8, Delta: 1e-6, Convex: true}
	m := newMoments(.02, 1, true)
	s := pvSearch{p: p, last: new(int), most: 1e6}
	v, ok := s.shape(m, []float64{math.Log(.01), math.Log(2), math.Log(8), math.Log(8), 0})
	if !ok {
		t.Fatal("no such plan")
	}
	s.charge(&v, 1)
	if _, err := s.settle(&v); err != nil {
		t.Fatal(err)
	}
	if charged := newLedger(p.target()).with(2, v.call).with(2, v.gradient); !(v.call.slack > 0 && v.gradient.slack > 0 &&
		v.call.drift > 0) ||
		charged.masses(1) < (1+math.E)*2*(v.call.slack+v.gradient.slack)+math.E*2*v.call.drift {
		t.Errorf("charged slack %v and drift %v", charged.slack, charged.drift)
	}
	of, err := v.place(p)
	if err != nil {
		t.Fatal(err)
	}
	noise, err := newLattice(nil, rand.NewChaCha8([32]byte{9}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRecords(Data{Loss: convex.Absolute{}, Features: 1, Rows: []convex.Example{{Value: []float64{1},
		Label: -1e6}}}, p)
	if err != nil {
		t.Fatal(err)
	}
	for i, ph := range of {
		if far := v.kd * ph.e * p.Lipschitz / v.batch(n); math.Sqrt(noiseVariance)*ph.level < far/v.mu {
			t.Errorf("phase %d: a level of %v for runs that are %v apart", i+1, ph.level, far)
		}
		inner := newSolver(1, v.r, v.r/v.s, p.Lipschitz/v.r, v.batch(n), of[i:i+1], noise)
		slots := make([][]int, ph.steps)
		var mean, square [2]float64
		for side := range 2 {
			if side == 1 {
				slots[0] = []int{0}
			}
			for range runs {
				y := []float64{0}
				inner.solve(y, []float64{0}, []float64{0}, r, slots)
				mean[side] += y[0] / runs
				square[side] += y[0] * y[0] / runs
			}
		}
		apart := (mean[0] - mean[1]) / math.Sqrt(square[0]-mean[0]*mean[0])
		t.Logf("phase %d: %.3f standard deviations apart, charged %.3f, KD %.3f", i+1, apart, v.mu, v.kd)
		if margin := 6 * math.Sqrt(2./runs); apart > v.mu+margin || apart < 0.6*v.mu/v.kd-margin {
			t.Errorf("phase %d: releases are %v standard deviations apart, charged %v", i+1, apart, v.mu)
		}
	}
}

// A counter is the absolute loss, and counts its gradients.
type counter struct {
	convex.Absolute
	asked *float64
}

func (c counter) Gradient(dst, theta []float64, e convex.Example) {
	*c.asked++
	c.Absolute.Gradient(dst, theta, e)
}

// Runs ask as many gradients as rates that are charged expect: no record is sampled more often, or is in two slots
// of a call.
func TestSamplesAreAsCharged(t *testing.T) {
	const n = 400
	entropy := rand.NewChaCha8([32]byte{11})
	var asked float64
	data := Data{Loss: counter{asked: &asked}, Features: 1, Rows: slices.Repeat([]convex.Example{{Value: []float64{1}}},
		n)}
	check := func(what string, want float64) {
		t.Helper()
		if math.Abs(asked-want) > 6*math.Sqrt(want) {
			t.Errorf("%s: %v gradients, want about %v", what, asked, want)
		}
		asked = 0
	}
	sgd, err := NewPlan(public(NoisySGD, n, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sgd.Fit(t.Context(), data, entropy); err != nil {
		t.Fatal(err)
	}
	check("noisy SGD", sgd.Queries)
	p := public(ReSQue, n, 1)
	m := newMoments(.02, 1, true)
	s := pvSearch{p: p, last: new(int), most: 1e6}
	v, ok := s.shape(m, []float64{math.Log(.01), math.Log(50), math.Log(8), math.Log(7), 0})
	if !ok {
		t.Fatal("no such plan")
	}
	s.charge(&v, 1)
	if _, err := s.settle(&v); err != nil {
		t.Fatal(err)
	}
	r, err := newRecords(data, p)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		_, book, err := v.run(t.Context(), p, r, entropy)
		if err != nil {
			t.Fatal(err)
		}
		want := newLedger(p.target()).with(float64(v.rounds), v.call).with(float64(v.rounds), v.gradient)
		if math.Abs(book.cost().Epsilon/want.cost().Epsilon-1) > 1e-9 || math.Abs(book.drift/want.drift-1) > 1e-9 ||
			math.Abs(book.slack/want.slack-1) > 1e-9 {
			t.Fatalf("the ledger holds %v, want %v", book.cost(), want.cost())
		}
	}
	check("ReSQue", 10*float64(v.rounds)*n*(v.rate.Float()+v.gradRate.Float()))
}

// Points at which weights are taken are in the ball of their call, which the moments of Lemma D need: those after
// steps, and the noisy one that a phase starts at.
func TestCallStaysInItsBall(t *testing.T) {
	noise, err := newLattice(nil, rand.NewChaCha8([32]byte{12}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRecords(Data{Loss: convex.Absolute{}, Features: 1, Rows: []convex.Example{{Value: []float64{1},
		Label: -1e6}}}, public(ReSQue, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	const radius, steps = 0.5, 4
	inner := newSolver(1, radius, radius, 1, 1, []phase{{steps: steps, e: 100, level: 1e-9, scale: 1e9}}, noise)
	inner.solve([]float64{0}, []float64{0}, []float64{1e3}, r, make([][]int, steps))
	if far := math.Abs(inner.sum[0]); far > radius*steps*(1+1e-12) {
		t.Errorf("%d points of a phase sum to %v, want at most %v", steps, far, radius*steps)
	}
	inner.phases[0].steps = 1
	inner.solve([]float64{40 * radius}, []float64{0}, []float64{0}, r, [][]int{{0}})
	if w := math.Abs(inner.step[0]); w < 1e-5 {
		t.Errorf("a weight of %v, taken far outside of the ball", w)
	}
}

// The same of Theorem 3's method: what all calls of a run tell, of one step each, so that a record moves a release
// by all that it may.
func TestAuditOfBall(t *testing.T) {
	runs := 3000
	if longtest.Run(t, "100,000 runs a side; 3,000 are played") {
		runs = 100000
	}
	const n, mu = 2, 0.3
	p := Public{Method: ReSQueBall, N: n, Dim: 1, Lipschitz: 1, Radius: 1, Epsilon: 8, Delta: 1e-3, Convex: true}
	one := strong{{slotted: slotted{slots: 1, rate: gridRate(.85), mu: mu}}}
	b := ball{rho: .5, copies: 2, caps: []int{1}, outer: resque.Outer{Lipschitz: 1, Radius: 1, Ball: .01, Gap: 1e-3,
		Steps: 2, Probes: 1},
		kinds: []kind{{slices.Clone(one), 4}, {slices.Clone(one), 2}, {slices.Clone(one), 3}, {slices.Clone(one), 1}}}
	if err := (ballSearch{p}).settle(&b); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.coins, err = randomizer.NewBinomial(noiseTrials, randomizer.Fair); err != nil {
		t.Fatal(err)
	}
	entropy := rand.NewChaCha8([32]byte{8})
	play := func(b ball, present bool) []float64 {
		r, err := newRecords(Data{Loss: convex.Absolute{}, Features: 1, Rows: rowsOf(n, present)}, p)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float64, runs)
		for i := range out {
			b.seen = func(_ stage, of []phase, x []float64) { out[i] -= x[0] / of[0].level }
			if _, _, err := b.run(context.Background(), p, r, entropy); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	book := b.ledger(p)
	if !book.fits() {
		t.Fatal("the target is not met")
	}
	const eps = 1
	claimed := book.curve.Delta(eps) + book.masses(eps)
	if sound := auditDelta(play(b, true), play(b, false), eps); sound > claimed {
		t.Errorf("the audit shows delta %v at epsilon %v, claimed %v", sound, eps, claimed)
	} else {
		t.Logf("delta at epsilon %v: claimed %.4f, shown at least %.4f", eps, claimed, sound)
	}
	broken := b
	broken.kinds = nil
	for _, k := range b.kinds {
		k.strong = slices.Clone(k.strong)
		k.strong[0].shift *= 3
		broken.kinds = append(broken.kinds, k)
	}
	if found := auditDelta(play(broken, true), play(broken, false), eps); found <= claimed {
		t.Errorf("a third of the noise: the audit shows delta %v, not above the claimed %v", found, claimed)
	} else {
		t.Logf("a third of the noise: at least %.4f", found)
	}
}

// rowsOf returns n rows with zero gradients; one of them, if present, has a gradient of 1 everywhere instead.
func rowsOf(n int, present bool) []convex.Example {
	rows := make([]convex.Example, n)
	for i := range rows {
		rows[i] = convex.Example{Value: []float64{0}}
	}
	if present {
		rows[n/5] = convex.Example{Value: []float64{1}, Label: -1e6}
	}
	return rows
}
