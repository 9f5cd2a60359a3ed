package private

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"gonum.org/v1/gonum/mathext"
)

// auditDelta is a lower bound, at confidence 1 - 2e-9, on the delta at eps of runs with and without the record: their first halves choose a threshold, by
// the second halves it is counted (Clopper and Pearson).
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

// atLeast is the lower bound of a frequency that was seen k times in n, at 1 - 1e-9. mathext.InvRegIncBeta stops far from it where n is large.
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

// Runs of the whole method on two neighbours, one of which has one record more: what their releases tell is within the claim, and where noise is a third of what it
// is charged as it is not.
func TestAuditOfReSQue(t *testing.T) {
	runs := 2000
	if longtest.Run(t, "100,000 runs a side; 2,000 are played") {
		runs = 100000
	}
	const n = 16
	p := Public{Method: ReSQue, N: n, Dim: 1, Lipschitz: 1, Radius: 1, Epsilon: 3, Delta: 1e-6, Convex: true}
	m := newMoments(.02, 1, true)
	s := pvSearch{p: p, a: accounting.NewAccountant(), most: 1e6}
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
		rows := make([]convex.Example, n)
		for i := range rows {
			rows[i] = convex.Example{Value: []float64{0}}
		}
		if present {
			rows[3] = convex.Example{Value: []float64{1}, Label: -1e6} // its gradient is 1 everywhere
		}
		r, err := newRecords(Data{Loss: convex.Absolute{}, Features: 1, Rows: rows}, p)
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
	if sound := auditDelta(play(v, true), play(v, false), eps); sound > claimed {
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
