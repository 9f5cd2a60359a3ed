package convex

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSigmoidSlopeIsTheBisection compares sigmoidSlope, bit by bit, with the bisection that takes a logarithm in every
// step.
func TestSigmoidSlopeIsTheBisection(t *testing.T) {
	plain := func(m, c float64) float64 {
		lo, hi := 0x1p-1000, 1.0
		for range 62 {
			p := between(lo, hi)
			if math.Log((1-p)/p)-float64(c*p) > m {
				lo = p
			} else {
				hi = p
			}
		}
		return hi
	}
	same := func(m, c float64) {
		t.Helper()
		if got, want := sigmoidSlope(m, c), plain(m, c); got != want {
			t.Fatalf("sigmoidSlope(%v, %v) is %v, want %v", m, c, got, want)
		}
	}
	edges := []float64{0, 1e-300, 1e-16, 1e-3, 0.5, 1, 20, 36, 37, 40, 690, 700, 710, 745, 800, 1e6, 1e16, 1e300, math.Inf(1)}
	for _, m := range edges {
		for _, c := range edges[1:] {
			same(m, c)
			same(-m, c)
			same(-c, c)
			same(-c/2, c)
		}
	}
	same(math.NaN(), 1)
	r, narrow := rand.New(rand.NewPCG(1, 2)), 0
	const n = 20_000
	for i := range n {
		m, c := 3*r.NormFloat64(), math.Exp(3*r.NormFloat64())
		if i%2 == 1 {
			m, c = m*math.Exp(2*r.NormFloat64()), c*math.Exp(4*r.NormFloat64())
		}
		same(m, c)
		if from, to := rootOfSigmoid(m, c); from > 0 && to-from < 1e-9*to {
			narrow++
		}
	}
	if narrow < n*99/100 {
		t.Errorf("of %d random pairs %d have a narrow interval: the others take as long as before", n, narrow)
	}
}
