package private

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
)

func TestReSQuePlans(t *testing.T) {
	for i, c := range []struct {
		n, d int
		most float64
	}{{1e4, 10, 0.016}, {1e5, 10, 0.0048}, {1e5, 100, 0.0102}} {
		if i > 0 && !longtest.Run(t, "plans of 100,000 records") {
			break
		}
		p, err := NewPlan(public(ReSQue, c.n, c.d))
		if err != nil {
			t.Fatal(err)
		}
		v := p.method.(pv)
		t.Logf(
			"n %d, d %d: bound %.4g, noisy SGD %.4g; s %v r %.3g N %d That %d KD %.3f mu %.4f q %.4f Ng %.1f zg %.3g eta %.3g, %.3g gradients, %v", c.n, c.d, p.Bound, p.Baseline, v.s, v.r, v.rounds,
			v.slots+1, v.kd, v.mu, v.rate.Float(), v.gradRate.Float()*float64(c.n), 1/v.gradMu, v.eta, p.Queries, p.Cost)
		if p.Bound > c.most || p.Cost.Epsilon > 1 || p.Cost.Delta > 1e-6 {
			t.Errorf("n %d, d %d: bound %v, %v", c.n, c.d, p.Bound, p.Cost)
		}
		if p.Baseline > p.Bound {
			t.Errorf("n %d, d %d: the bound of noisy SGD is the larger one", c.n, c.d)
		}
	}
}

func TestReSQueLearns(t *testing.T) {
	q := public(ReSQue, 4000, 3)
	q.Rounds = 2000
	learns(t, q)
}

// What is charged for drift is of the batch that is run: the grid of rates makes it a little less than 1, and its
// moments larger.
func TestDriftIsOfTheBatchThatIsRun(t *testing.T) {
	p := public(ReSQue, 1<<22, 10)
	s := pvSearch{p: p, last: new(int), most: 1e9}
	v, ok := s.shape(newMoments(.1, 1, true), []float64{math.Log(1e-5), math.Log(100), math.Log(16), math.Log(100), 0})
	if !ok {
		t.Fatal("no such plan")
	}
	v.rate-- // as coarse as a grid is at its worst
	s.charge(&v, 1)
	if _, err := s.settle(&v); err != nil {
		t.Fatal(err)
	}
	delta := driftDelta(p.target(), v.rounds, v.rate.Float())
	if kd := s.drift(&v, newMoments(v.s, v.batch(p.N), true), delta); v.kd < kd {
		t.Errorf("KD %v is charged, want %v at batch %v", v.kd, kd, v.batch(p.N))
	}
	if kd := s.drift(&v, newMoments(v.s, 1, true), delta); v.kd <= kd {
		t.Errorf("batch %v: KD %v, and %v at batch 1", v.batch(p.N), v.kd, kd)
	}
}

// TestBoundOfTheoremV: L rho sqrt(d) + (R^2/2 + (1+s)^2 phi S + sigma^2 S/(2 lambda))/A + 2 R b with lambda a^2 = A
// + a: for L = 2, r = 0.04 and so lambda = 50, two rounds have a = 1/50 and (1 + sqrt 5)/100, and thus A =
// 0.0523606798 and S = A + 1/50. The gap phi is a call's, sigma^2 and b are of a round's gradients.
func TestBoundOfTheoremV(t *testing.T) {
	p := public(ReSQue, 10_000, 9)
	p.Lipschitz, p.Radius = 2, 0.3
	v := pv{rounds: 2, s: 0.2, r: 0.04, slotted: slotted{slots: 255, rate: gridRate(0.3)}, eta: 0.001,
		gradRate: gridRate(0.1), most: 2.5}
	m := newMoments(v.s, v.batch(p.N), true)
	const callNoise, gradNoise, A, S = 3.0, 40.0, 0.0523606798, 0.0723606798
	call, _ := v.callBound(p, m, callNoise) // over L r
	records := v.gradRate.Float() * 10_000  // of a gradient, each of a weight of at most 2.5
	variance := 4 * (math.Exp(0.04)/records + 9*2.5*2.5*gradNoise*gradNoise/(records*records))
	got, bias := v.estimate(p, gradNoise)
	if math.Abs(got/variance-1) > 1e-9 {
		t.Errorf("variance %v, want %v", got, variance)
	}
	start, calls, gradients := 0.045/A, 1.44*call*0.08*S/A, variance*S/100/A
	want := 2*0.2*3 + start + calls + gradients + bias
	bound := v.bound(p, m, callNoise, gradNoise)
	if math.Abs(bound/want-1) > 1e-7 || calls < 1e-4*want || gradients < 1e-4*want {
		t.Errorf("bound %v, want %v: %v of the start, %v of calls, %v of gradients", bound, want, start, calls, gradients)
	}
}

// TestDriftIsOfTheLongestSteps: KD of Lemma D is for the first phase, T/2 steps of eta/4 with weights of scale rho = r/s,
// so t = eta L/(4 rho). The steps of stages are eta = 2 unit r/L at most.
func TestDriftIsOfTheLongestSteps(t *testing.T) {
	const s, eta, delta = 0.1, 0.01, 1e-9
	p := public(ReSQue, 10_000, 9)
	p.Lipschitz = 2
	m := newMoments(s, 12, true)
	v := pv{s: s, r: 0.04, slotted: slotted{slots: 255}, eta: eta} // rho = 0.4, eta L/(4 rho) = 1/80
	want, _ := m.multiplier(1, 1./80, 128, delta)
	if got := (pvSearch{p: p}).drift(&v, m, delta); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("KD %v of a call, want %v", got, want)
	}
	c := stage{slotted: slotted{slots: 255}, unit: 0.25} // eta L/rho = 2 unit s = 1/20
	if got := c.drift(m, delta); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("KD %v of a stage, want %v", got, want)
	}
	if less, _ := m.multiplier(1, 1./160, 128, delta); less > 0.999*want {
		t.Errorf("KD %v of steps half as long, %v", less, want)
	}
}

// TestBiasOfTheoremN: 10^12 steps of nearly all of 10^6 records, for R = 3, L = 2: R L M/10^6 with M = 1, and 2 R b, where
// truncation moves a gradient by b = L sqrt(d) 2^-20 128/sqrt(2^14 + 1/4) for 128 units of noise.
func TestBiasOfTheoremN(t *testing.T) {
	p := public(NoisySGD, 1_000_000, 4)
	p.Lipschitz, p.Radius = 2, 3
	bound, _ := sgdBound(p, 1e12, gridRate(0.999999), 128)
	want := 6e-6 + 6*2*2*0x1p-20*128/math.Sqrt(0x1p14+0.25)
	if math.Abs(bound/want-1) > 1e-6 {
		t.Errorf("bound %v, want %v", bound, want)
	}
}
