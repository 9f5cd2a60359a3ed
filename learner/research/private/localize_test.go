package private

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
)

// smallBlock returns a plan for a block of n records at L = ridge = 1, in few rounds.
func smallBlock(t *testing.T, n, d int, eps float64) (Public, blockPlan) {
	q := public(ReSQueSCO, n, d)
	q.Epsilon, q.Rounds = eps, 1000
	b, _, err := planBlock(q, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q, b
}

// A phase comes as near to the minimiser with the regulariser as Theorem R says, from a start that is not the
// origin, and stays in its ball.
func TestRegularisedPhase(t *testing.T) {
	const n, d, ridge = 2000, 2, 0.7
	q, b := smallBlock(t, n, d, 8)
	v := b.pv.scaled(1, ridge)
	q.Radius = 1 / ridge
	data := world(n, d, 1)
	start := []float64{-0.4, 0.9}
	value := func(x []float64) float64 {
		return meanLoss(data, x) + ridge/2*((x[0]-start[0])*(x[0]-start[0])+(x[1]-start[1])*(x[1]-start[1]))
	}
	best, least := []float64{0, 0}, math.Inf(1)
	for step, at := 0.1, append([]float64(nil), start...); step > 1e-3; step /= 4 {
		for i := -12.; i <= 12; i++ {
			for j := -12.; j <= 12; j++ {
				if x := []float64{at[0] + i*step, at[1] + j*step}; value(x) < least {
					best, least = x, value(x)
				}
			}
		}
		at = best
	}
	r, err := newRecords(data, q)
	if err != nil {
		t.Fatal(err)
	}
	x, book, err := v.from(context.Background(), q, start, r, dptest.Source(t, 7))
	if err != nil {
		t.Fatal(err)
	}
	bound := (b.gap + b.smoothing) / ridge
	t.Logf("gap %.4g, bound %.4g, at the start %.4g; %d rounds; minimiser %v, found %v", value(x)-least, bound,
		value(start)-least, v.rounds, best, x)
	if value(x)-least > bound {
		t.Errorf("gap %v above %v", value(x)-least, bound)
	}
	if value(x)-least > (value(start)-least)/20 {
		t.Errorf("gap %v, at the start %v", value(x)-least, value(start)-least)
	}
	if math.Hypot(x[0]-start[0], x[1]-start[1]) > q.Radius*(1+1e-12) {
		t.Errorf("%v is not within %v of %v", x, q.Radius, start)
	}
	if !book.fits() {
		t.Error("the ledger is over its target")
	}
}

// All arrangements are alike likely, and one row more changes its own place alone.
func TestPlaces(t *testing.T) {
	rows := []convex.Example{{Label: 1}, {Label: 2}, {Label: 3}}
	rng := rand.New(dptest.Source(t, 8))
	counts := map[string]uint64{}
	const draws = 48000
	for range draws {
		var s string
		for _, e := range places(rows, 4, rng) {
			s += fmt.Sprint(e.Label)
		}
		counts[s]++
	}
	if len(counts) != 24 {
		t.Fatalf("%d arrangements of 3 rows in 4 places, want 24", len(counts))
	}
	var seen []uint64
	for _, c := range counts {
		seen = append(seen, c)
	}
	want := make([]float64, 24)
	for i := range want {
		want[i] = 1. / 24
	}
	dptest.ChiSquare(t, "arrangements", seen, want, dptest.Alpha)
	for seed := range uint64(20) {
		with, without := places(rows, 9, rand.New(rand.NewPCG(seed, 1))), places(rows[:2], 9, rand.New(rand.NewPCG(seed, 1)))
		for i := range with {
			if with[i].Label != without[i].Label && with[i].Label != 3 {
				t.Fatalf("place %d has row %v, without the third %v", i, with[i].Label, without[i].Label)
			}
		}
	}
}

// rounds is a context that counts how often it is asked: once a round of a phase.
type rounds struct {
	context.Context
	done int
}

func (r *rounds) Err() error { r.done++; return nil }

// A register is the absolute loss, and notes in which round which row was asked about, by its label.
type register struct {
	convex.Absolute
	at    *rounds
	asked []map[int]int // by phase: rows and how often
	ends  []int         // the last round of each phase
}

func (r register) Gradient(dst, theta []float64, e convex.Example) {
	phase := 0
	for r.at.done > r.ends[phase] {
		phase++
	}
	r.asked[phase][int(e.Label)]++
	r.Absolute.Gradient(dst, theta, e)
}

// TestNoRecordIsInTwoBlocks: each phase asks about nearly all of as many records as its block has, and of no other's.
func TestNoRecordIsInTwoBlocks(t *testing.T) {
	const n = 300
	p, b := smallBlock(t, n, 1, 8)
	p.N = 3 * n // a third of the records are in no block
	l := localized{blocks: []int{n, n}, phases: []pv{b.pv.scaled(1, 0.7), b.pv.scaled(1, 5.6)}}
	loss := register{at: &rounds{Context: t.Context()}, asked: []map[int]int{{}, {}}, ends: []int{b.pv.rounds,
		2 * b.pv.rounds}}
	data := Data{Loss: loss, Features: 1}
	for i := range p.N {
		data.Rows = append(data.Rows, convex.Example{Value: []float64{1}, Label: float64(1 + i)})
	}
	r, err := newRecords(data, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.run(loss.at, p, r, dptest.Source(t, 9)); err != nil {
		t.Fatal(err)
	}
	if loss.at.done != 2*b.pv.rounds {
		t.Fatalf("%d rounds, want %d of each phase", loss.at.done, b.pv.rounds)
	}
	for i, asked := range loss.asked {
		if len(asked) > n || len(asked) < n*9/10 {
			t.Errorf("phase %d asks about %d records, want nearly all of %d", i+1, len(asked), n)
		}
	}
	for row := range loss.asked[0] {
		if times := loss.asked[1][row]; times > 0 {
			t.Fatalf("record %d is asked about in the first phase and %d times in the second", row, times)
		}
	}
}

// TestLocalizedLedgerShowsAnyPhaseThatIsBeyond: one phase above the target shows, wherever it is.
func TestLocalizedLedgerShowsAnyPhaseThatIsBeyond(t *testing.T) {
	p, b := smallBlock(t, 300, 1, 8)
	l := localized{blocks: []int{300, 300, 300}, phases: []pv{b.pv, b.pv, b.pv}}
	if !l.ledger(p).fits() {
		t.Error("phases within the target are beyond it")
	}
	for i := range l.phases {
		for _, slack := range []float64{p.Delta, 1} {
			l.phases[i].call.slack += slack
			if l.ledger(p).fits() {
				t.Errorf("phase %d: %v of slack in each of %d calls fit", i+1, slack, b.pv.rounds)
			}
			l.phases[i] = b.pv
		}
	}
}

// The bound is ridge_1 R^2/2 + (L^2/ridge_1) Q at its best ridge_1, and Q what phases say one by one.
func TestLocalizationCost(t *testing.T) {
	plans := []blockPlan{{gap: 1e-3, smoothing: 1e-4}, {gap: 4e-3, smoothing: 2e-4}, {gap: 16e-3, smoothing: 4e-4}}
	got := localizationCost(plans, []int{500, 250, 125})
	// (mu_i/2) E||xhat - x||^2 is 8 Gamma of the phase before; Gamma_i = gap_i/mu_i.
	want := (2./500 + 1e-4) + 8*1e-3 + (2./250+2e-4)/8 + 8*4e-3/8 + (2./125+4e-4)/64 + math.Sqrt(2*16e-3)/64
	if math.Abs(got-want) > 1e-15 {
		t.Errorf("Q %v, want %v", got, want)
	}
}

func TestLocalizationLearns(t *testing.T) {
	const n, d = 4000, 2
	q := public(ReSQueSCO, n, d)
	q.Rounds, q.Epsilon = 2000, 8
	p, err := NewPlan(q)
	if err != nil {
		t.Fatal(err)
	}
	l := p.method.(localized)
	for i, b := range l.blocks {
		if v := l.phases[i]; b != n>>(i+1) || math.Abs(v.ridge/l.phases[0].ridge/math.Pow(8, float64(i))-1) > 1e-12 {
			t.Errorf("phase %d: %d records, ridge %v", i+1, b, v.ridge)
		}
	}
	r, err := p.Fit(context.Background(), world(n-1, d, 1), dptest.Source(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	fresh, truth := world(20000, d, 2), []float64{0.7 / math.Sqrt2, 0.7 / math.Sqrt2}
	gap := meanLoss(fresh, r.Theta) - meanLoss(fresh, truth)
	t.Logf("excess %.4g on fresh rows, bound %.4g; %d phases, %d rounds, %.3g gradients, %v", gap, p.Bound, len(l.phases),
		p.Rounds, p.Queries, r.Cost)
	if gap > p.Bound {
		t.Errorf("excess %v above the bound %v", gap, p.Bound)
	}
	if math.Abs(r.Cost.Epsilon-p.Cost.Epsilon) > 1e-6 || p.Cost.Epsilon > q.Epsilon || p.Cost.Delta > q.Delta ||
		p.Cost.Epsilon < 0.9*q.Epsilon {
		t.Errorf("the ledger holds %v, planned %v", r.Cost, p.Cost)
	}
	if p.Rounds > q.Rounds {
		t.Errorf("%d rounds, want at most %d", p.Rounds, q.Rounds)
	}
}

func TestLocalizationPlans(t *testing.T) {
	if !longtest.Run(t, "plans of many records") {
		return
	}
	for n, most := range map[int]float64{4000: 0.41, 20000: 0.15, 100000: 0.061} {
		p, err := NewPlan(public(ReSQueSCO, n, 3))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("n %d: bound %.4g, %d phases, %d rounds, %.3g gradients, %v", n, p.Bound, len(p.method.(localized).phases),
			p.Rounds, p.Queries, p.Cost)
		if p.Bound > most {
			t.Errorf("n %d: bound %v", n, p.Bound)
		}
	}
}

// TestRegularisedPhaseHasItsBound: (1+s/2)^2 Gamma_call (lambda+mu)/lambda S and sigma^2 sum a^2/(1 + mu A), with D^2/2 for
// D = L/mu, over A, for the A of a recursion that is checked here: lambda a^2 = (1 + mu A)(A + a).
func TestRegularisedPhaseHasItsBound(t *testing.T) {
	p, b := smallBlock(t, 2000, 2, 8)
	v := b.pv
	m := newMoments(v.s, 1, p.Convex)
	const callNoise, gradNoise = 3.0, 40.0
	gap, _ := v.regularised(p, m, callNoise, gradNoise)
	call, _ := v.callBound(p, m, callNoise)
	variance, bias := v.estimate(p, gradNoise)
	L, mu := p.Lipschitz, v.ridge
	strength := 2 * L / v.r // lambda + mu
	lambda := strength - mu
	var A, S, squares float64
	for range v.rounds {
		lo, hi := 0.0, 1.0
		for lambda*hi*hi < (1+mu*A)*(A+hi) {
			hi *= 2
		}
		for range 200 {
			if mid := (lo + hi) / 2; lambda*mid*mid < (1+mu*A)*(A+mid) {
				lo = mid
			} else {
				hi = mid
			}
		}
		a := hi
		A += a
		S += A
		squares += a * a / (1 + mu*A)
	}
	want := (L/mu*L/mu/2+(1+v.s/2)*(1+v.s/2)*call*L*v.r*strength/lambda*S+variance*squares)/A + bias
	start := L / mu * L / mu / 2 / A
	if math.Abs(gap-want) > 1e-6*want || start < 1e-4*want {
		t.Errorf("gap %v, want %v, of it %v for the start", gap, want, start)
	}
}
