package dptest

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// minExpected is the expected count below which neighbouring cells are merged: at 50 the chi-square law is close
// enough in the tail for alpha = 1e-9.
const minExpected = 50

// ChiSquare fails the test if counts do not look like independent draws from the distribution with probabilities prob,
// which must sum to 1. Neighbouring cells are merged until each expects at least 50. It returns the p-value.
func ChiSquare(t testing.TB, name string, counts []uint64, prob []float64, alpha float64) float64 {
	t.Helper()
	if len(counts) != len(prob) {
		t.Fatalf("%s: %d counts and %d probabilities", name, len(counts), len(prob))
	}
	var n, mass float64
	for i, c := range counts {
		n += float64(c)
		mass += prob[i]
	}
	if math.Abs(mass-1) > 1e-6 {
		t.Fatalf("%s: probabilities sum to %v", name, mass)
	}
	var stat, got, want, lastGot, lastWant float64
	cells := 0
	for i, c := range counts {
		got += float64(c)
		want += prob[i] * n
		if want >= minExpected {
			stat += (got - want) * (got - want) / want
			lastGot, lastWant = got, want
			got, want = 0, 0
			cells++
		}
	}
	if cells > 0 && want+got > 0 {
		// The rest joins the last full cell.
		stat -= (lastGot - lastWant) * (lastGot - lastWant) / lastWant
		lastGot, lastWant = lastGot+got, lastWant+want
		stat += (lastGot - lastWant) * (lastGot - lastWant) / lastWant
	}
	if cells < 2 {
		t.Fatalf("%s: %v draws fill only %d cells of %d expected draws", name, n, cells, minExpected)
	}
	p := distuv.ChiSquared{K: float64(cells - 1)}.Survival(stat)
	t.Logf("%s: chi-square %.1f in %d cells, p-value %.3g (false-alarm rate %g)", name, stat, cells, p, alpha)
	if !(p >= alpha) {
		t.Errorf("%s: chi-square %v in %d cells has p-value %v, below %v", name, stat, cells, p, alpha)
	}
	return p
}

// Rate fails the test if hits out of n is impossible, up to alpha, for independent events of probability p. The test
// is exact: both binomial tails against alpha/2.
func Rate(t testing.TB, name string, hits, n uint64, p, alpha float64) {
	t.Helper()
	atLeast, atMost := 1.0, 1.0
	if hits > 0 {
		atLeast = mathext.RegIncBeta(float64(hits), float64(n-hits+1), p)
	}
	if hits < n {
		atMost = 1 - mathext.RegIncBeta(float64(hits+1), float64(n-hits), p)
	}
	if !(atLeast >= alpha/2 && atMost >= alpha/2) {
		t.Errorf("%s: %d of %d, want rate %v; tails %v and %v are below %v", name, hits, n, p, atLeast, atMost, alpha/2)
	}
}

// BinomialProbabilities returns P(Bin(n, p) = k) for k = 0, ..., n, to about 12 digits.
func BinomialProbabilities(n int, p float64) []float64 {
	out := make([]float64, n+1)
	whole, _ := math.Lgamma(float64(n + 1))
	for k := range out {
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		out[k] = math.Exp(whole - a - b + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	return out
}
