package private

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/randomizer/accounting"
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
	s := pvSearch{p: p, a: accounting.NewAccountant(), most: 1e9}
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
