package private

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
)

// world makes n rows of the absolute loss |<x, theta> - y| with ||x|| <= 1: an instance whose best point is known
// up to its noise.
func world(n, d int, seed uint64) Data {
	rng := rand.New(rand.NewPCG(seed, 1))
	truth := make([]float64, d)
	for j := range truth {
		truth[j] = 0.7 / math.Sqrt(float64(d))
	}
	rows := make([]convex.Example, n)
	for i := range rows {
		x := make([]float64, d)
		for j := range x {
			x[j] = rng.NormFloat64()
		}
		norm := convex.Norm(x)
		for j := range x {
			x[j] /= norm
		}
		e := convex.Example{Value: x}
		e.Label = e.Dot(truth) + 0.05*rng.NormFloat64()
		rows[i] = e
	}
	return Data{Loss: convex.Absolute{}, Features: d, Rows: rows}
}

func meanLoss(d Data, theta []float64) float64 {
	var s float64
	for _, e := range d.Rows {
		s += d.Loss.Value(theta, e)
	}
	return s / float64(len(d.Rows))
}

func public(method string, n, d int) Public {
	return Public{Method: method, N: n, Dim: d, Lipschitz: 1, Radius: 1, Epsilon: 1, Delta: 1e-6, Convex: true}
}

// Theorem N at the settings of docs/proofs/resque.md: bounds, and the plan's own claims.
func TestNoisySGDPlans(t *testing.T) {
	for _, c := range []struct {
		n, d int
		want float64
	}{{1e4, 10, 0.0082}, {1e5, 10, 0.0024}, {1e4, 100, 0.0147}, {1e5, 100, 0.0041}} {
		p, err := NewPlan(public(NoisySGD, c.n, c.d))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("n %d, d %d: bound %.5f, %d steps of %.2f, noise %.3f, %v", c.n, c.d, p.Bound, p.Rounds, p.Rate*float64(c.n),
			p.Noise, p.Cost)
		if math.Abs(p.Bound/c.want-1) > 0.05 {
			t.Errorf("n %d, d %d: bound %v, want about %v", c.n, c.d, p.Bound, c.want)
		}
		if s := p.method.(sgd); p.Noise*s.mu < 1 || !(s.entry.slack > 0) {
			t.Errorf("n %d, d %d: noise %v for a charge of mu %v and slack %v", c.n, c.d, p.Noise, s.mu, s.entry.slack)
		}
		if p.Cost.Epsilon > 1 || p.Cost.Delta > 1e-6 || p.Queries > 10*float64(c.n)*(1+1e-6) {
			t.Errorf("n %d, d %d: %v, %v gradients", c.n, c.d, p.Cost, p.Queries)
		}
	}
}

// A target for one record replaced costs what it says.
func TestReplaceTarget(t *testing.T) {
	q := public(NoisySGD, 20000, 5)
	q.Replace = true
	p, err := NewPlan(q)
	if err != nil {
		t.Fatal(err)
	}
	if p.Cost.ReplaceEpsilon > 1 || p.Cost.ReplaceDelta > 1e-6 || p.Cost.ReplaceEpsilon < 0.98 {
		t.Errorf("%v, want a replaced record within epsilon 1, delta 1e-6", p.Cost)
	}
}

func TestRefusesTooFew(t *testing.T) {
	_, err := NewPlan(public(NoisySGD, 20, 50))
	if err == nil || !strings.Contains(err.Error(), "want at least") {
		t.Errorf("20 records in 50 dimensions: %v", err)
	}
	t.Log(err)
}

// learns checks that the model's excess is within the plan's bound, and that the ledger holds what was
// planned.
func learns(t *testing.T, q Public) {
	t.Helper()
	p, err := NewPlan(q)
	if err != nil {
		t.Fatal(err)
	}
	data := world(q.N, q.Dim, 1)
	r, err := p.Fit(context.Background(), data, dptest.Source(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	truth := make([]float64, q.Dim)
	for j := range truth {
		truth[j] = 0.7 / math.Sqrt(float64(q.Dim))
	}
	gap := meanLoss(data, r.Theta) - meanLoss(data, truth)
	t.Logf("excess %v, bound %v, %d rounds, %.3g gradients", gap, p.Bound, p.Rounds, p.Queries)
	if gap > p.Bound {
		t.Errorf("excess %v above the bound %v", gap, p.Bound)
	}
	if math.Abs(r.Cost.Epsilon-p.Cost.Epsilon) > 1e-6 || r.Cost.Epsilon > 1 {
		t.Errorf("the ledger holds %v, planned %v", r.Cost, p.Cost)
	}
}

func TestNoisySGDLearns(t *testing.T) { learns(t, public(NoisySGD, 10000, 5)) }

// A run stops before the release that the target has no room for.
func TestLedgerRefuses(t *testing.T) {
	const n = 2000
	p, err := NewPlan(public(NoisySGD, n, 2))
	if err != nil {
		t.Fatal(err)
	}
	s := p.method.(sgd)
	s.steps += s.steps / 4
	p.method = s
	if _, err := p.Fit(context.Background(), world(n, 2, 1), dptest.Source(t, 1)); err == nil ||
		!strings.Contains(err.Error(), "ledger") {
		t.Errorf("a quarter more steps: %v", err)
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Fit(done, world(n, 2, 1), nil); err == nil {
		t.Error("a context that is done")
	}
	if _, err := p.Fit(context.Background(), world(n+1, 2, 1), nil); err == nil {
		t.Error("more rows than n")
	}
}

// What is added is within the radius, in integers, whatever rounding does; and the release has the mean and
// variance that are claimed.
func TestLatticeLaw(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		x := make([]float64, 1+rng.IntN(30))
		for j := range x {
			x[j] = rng.NormFloat64()
		}
		length := math.Exp(rng.NormFloat64() * 10)
		for j := range x {
			x[j] *= 1e3 * length
		}
		convex.Clip(x, length)
		radius := uint64(1 + rng.IntN(1<<30))
		place := make([]int64, len(x))
		add(place, x, length, radius)
		var s float64
		for j, v := range place {
			s += float64(v) * float64(v)
			if math.Abs(float64(v)-x[j]*float64(radius)/length) > 1+1e-9*float64(radius) {
				t.Fatalf("place %v for %v", v, x[j]*float64(radius)/length)
			}
		}
		if math.Sqrt(s) > float64(radius)*(1+1e-15) {
			t.Fatalf("norm %v above %v", math.Sqrt(s), radius)
		}
	}
	noise, err := newLattice(nil, dptest.Source(t, 4))
	if err != nil {
		t.Fatal(err)
	}
	var of []float64
	out := make([]float64, 1)
	for range 40000 {
		noise.release(out, []int64{-(1 << stepBits) * 7 / 4}, 2)
		of = append(of, out[0])
	}
	dptest.Mean(t, "release", of, dptest.Moment{Mean: -3.5, Variance: 4 * noiseVariance, Term: 2}, dptest.Alpha)
	dptest.Variance(t, "release", of, -3.5, 4*(noiseTrials/4+3./16), dptest.Alpha)
}

// TestPlacesAreWithinTheirRadius: a vector whose norm is 1 in floating point, and in steps is one above the square
// of its radius: (2^29 - 1)^2 + 2^30 = 2^58 + 1.
func TestPlacesAreWithinTheirRadius(t *testing.T) {
	x := []float64{1 - 0x1p-29, 0x1p-14}
	if n := convex.Norm(x); n != 1 {
		t.Fatalf("norm %v", n)
	}
	place := make([]int64, 2)
	add(place, x, 1, 1<<29)
	if s := place[0]*place[0] + place[1]*place[1]; s > 1<<58 || s < 1<<58-1<<32 {
		t.Errorf("place %v: the square of its norm is %d above 2^58", place, s-1<<58)
	}
}

// TestFractionsOfALevelAreRoundedByChance: a place a quarter of a level above one is released a quarter higher on
// average, and so on, so that no record moves a release by more than its part of a level: rounded to the nearest, a
// step would.
func TestFractionsOfALevelAreRoundedByChance(t *testing.T) {
	coins, err := randomizer.NewBinomial(2, randomizer.Fair) // hardly any noise beside the rounding
	if err != nil {
		t.Fatal(err)
	}
	noise, err := newLattice(coins, dptest.Source(t, 12))
	if err != nil {
		t.Fatal(err)
	}
	for _, quarters := range []int64{-3, 1, 2, 3} {
		var of []float64
		out := make([]float64, 1)
		for range 20000 {
			noise.release(out, []int64{quarters << (stepBits - 2)}, 1)
			of = append(of, out[0]+noiseTrials/2-1)
		}
		up := float64(quarters&3) / 4
		dptest.Mean(t, "release", of, dptest.Moment{Mean: float64(quarters) / 4, Variance: 0.5 + up*(1-up), Term: 2},
			dptest.Alpha)
	}
}

// Each index is drawn with the rate, independently of the others: alone and in pairs.
func TestSamplerIsOneCoinARecord(t *testing.T) {
	const n, draws = 6, 200000
	s, err := newSampler(n, gridRate(0.3), dptest.Source(t, 5))
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]uint64, 1<<n)
	for range draws {
		set := 0
		for _, i := range s.draw() {
			if set&(1<<i) != 0 {
				t.Fatal("an index twice")
			}
			set |= 1 << i
		}
		counts[set]++
	}
	want := make([]float64, 1<<n)
	q := gridRate(0.3).Float()
	for set := range want {
		want[set] = 1
		for i := range n {
			if set&(1<<i) != 0 {
				want[set] *= q
			} else {
				want[set] *= 1 - q
			}
		}
	}
	dptest.ChiSquare(t, "samples", counts, want, dptest.Alpha)
}

// A row that is no example of the loss says what an absent one says.
func TestUnsoundRowsSayZero(t *testing.T) {
	d := world(3, 2, 1)
	d.Rows[1].Label = math.NaN()
	d.Rows[2].Value = []float64{1}
	r, err := newRecords(d, public(NoisySGD, 5, 2))
	if err != nil {
		t.Fatal(err)
	}
	g := []float64{9, 9}
	for i := 1; i < 5; i++ {
		if r.gradient(g, []float64{.1, .1}, i); g[0] != 0 || g[1] != 0 {
			t.Errorf("record %d says %v", i, g)
		}
	}
}

// TestHostileRowsStayConvex checks that gradients never fall along a line, however large the record: they
// belong to a convex function.
func TestHostileRowsStayConvex(t *testing.T) {
	counts, err := convex.Declaration{Name: "poisson", ScoreBound: 2}.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, loss := range []convex.Loss{convex.Squared{}, convex.Absolute{}, counts} {
		for _, x := range [][]float64{{1}, {1e90}, {1e160}, {1e300}} {
			for _, label := range []float64{0, 1, 1e90, 1e300} {
				r, err := newRecords(Data{Loss: loss, Features: 1, Rows: []convex.Example{{Value: x, Label: label}}},
					public(ReSQue, 2, 1))
				if err != nil {
					t.Fatal(err)
				}
				g, last := make([]float64, 1), math.Inf(-1)
				for _, theta := range []float64{-1e9, -1, -1e-50, -1e-200, 0, 1e-200, 1e-50, 1, 1e9} {
					if r.gradient(g, []float64{theta}, 0); g[0] < last-1e-15 {
						t.Errorf("%s, a row of %v with label %v: a gradient of %v at %v, before it %v", loss.Name(), x[0], label, g[0],
							theta, last)
					}
					last = g[0]
				}
			}
		}
	}
}

// Clipped softmax is found by iteration, in which long rows lose digits: rows for which its gradients would not be
// monotone say zero.
func TestLongRowsOfSoftmaxStayConvex(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	loss := convex.Softmax{Classes: 3}
	for _, long := range []float64{1, 1e3, 1e6, 9e6, 1e10, 1e16, 1e50, 1e99} {
		said := false
		for range 500 {
			p := public(ReSQueBall, 2, 6)
			p.Lipschitz = math.Pow(10, float64(rng.IntN(7)-3))
			angle := 2 * math.Pi * rng.Float64()
			row := convex.Example{Value: []float64{long * p.Lipschitz * math.Cos(angle), long * p.Lipschitz * math.Sin(angle)},
				Label: float64(rng.IntN(3))}
			r, err := newRecords(Data{Loss: loss, Features: 2, Rows: []convex.Example{row}}, p)
			if err != nil {
				t.Fatal(err)
			}
			a, b, at, to := make([]float64, 6), make([]float64, 6), make([]float64, 6), make([]float64, 6)
			wide, far := math.Pow(10, 6*rng.Float64()-3), math.Pow(10, -6*rng.Float64())
			if rng.IntN(2) == 0 {
				wide = math.Pow(10, 2*rng.Float64()) / long / p.Lipschitz
			}
			for i := range a {
				a[i] = wide * rng.NormFloat64()
				b[i] = a[i] + wide*far*rng.NormFloat64()
			}
			r.gradient(at, a, 0)
			r.gradient(to, b, 0)
			var rise, square float64
			for i := range a {
				said = said || at[i] != 0
				rise += (at[i] - to[i]) * (a[i] - b[i]) / p.Lipschitz
				square += (a[i] - b[i]) * (a[i] - b[i])
			}
			if rise < -1e-7*math.Sqrt(square) {
				t.Errorf("a row of %v clip norms: gradients fall by %v", long, -rise/math.Sqrt(square))
			}
		}
		if said != (long < 1e7) {
			t.Errorf("rows of %v clip norms: said something: %v", long, said)
		}
	}
}

// TestRefusesWhatTheAccountantCannotShow: an epsilon that not even no release has says so, and what would be planned.
func TestRefusesWhatTheAccountantCannotShow(t *testing.T) {
	q := public(NoisySGD, 1_000_000, 5)
	q.Epsilon = 0.02
	if _, err := NewPlan(q); err == nil || !strings.Contains(err.Error(), "accountant shows nothing") {
		t.Errorf("epsilon 0.02: %v", err)
	}
}

// TestVarianceOfLemmaV: what noise adds, 4 d/(beta^2 B^2 T) + slope sqrt(d)/(beta B T^2) for noise 1/beta, and without noise
// (e^(s^2)/B + q/(1-q))/(6 (1 - eta L/(4 rho))) beside a term of k (2+2s) q/(7 B) times a drift of at least 1.
func TestVarianceOfLemmaV(t *testing.T) {
	const s, step, noise, slope = 0.2, 0.05, 30., 4.
	p := public(ReSQue, 10_000, 7)
	c := slotted{slots: 255, rate: gridRate(0.3)}
	m := newMoments(s, c.batch(p.N), true)
	d, T, B, q := 7., 256., c.rate.Float()*10_000/255, c.rate.Float()
	quiet := c.variance(p, m, step, slope, 0)
	added := c.variance(p, m, step, slope, noise) - quiet
	if want := 4*d*noise*noise/(B*B*T) + slope*math.Sqrt(d)*noise/(B*T*T); math.Abs(added/want-1) > 1e-9 {
		t.Errorf("noise adds %v, want %v", added, want)
	}
	first := (math.Exp(s*s)/B + q/(1-q)) / (6 * (1 - step*s/4)) // eta L/rho = step s
	second := 8 * (2 + 2*s) * q * T / (T - 1) / (7 * B)         // k = log2 T = 8
	if rest := quiet - first; !(rest >= second) || rest > 1.5*second {
		t.Errorf("without noise %v, of it %v, and a drift of %v times %v", quiet, first, rest/second, second)
	}
}
