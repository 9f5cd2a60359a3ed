package audit

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// atLeast returns the Clopper-Pearson lower bound: a p that exceeds the true probability of hits out of n with
// probability at most alpha.
func atLeast(hits, n int, alpha float64) float64 {
	if hits == 0 {
		return 0
	}
	// mathext.InvRegIncBeta stops far from the answer where n is large: what is returned here was evaluated.
	lo, hi := 0.0, float64(hits)/float64(n)
	for hi-lo > 1e-9*hi {
		if mid := (lo + hi) / 2; mathext.RegIncBeta(float64(hits), float64(n-hits+1), mid) <= alpha {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// atMost returns the upper bound.
func atMost(hits, n int, alpha float64) float64 {
	return 1 - atLeast(n-hits, n, alpha)
}

// A sample holds the sorted scalars of one input.
type sample []float64

func newSample(s []float64) sample {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// count returns how many scalars are >= t.
func (s sample) count(t float64) int { return len(s) - sort.SearchFloat64s(s, t) }

// threshold returns the t for which the training runs show the largest P(X >= t) - e^eps Q(X >= t).
func threshold(p, q sample, eps float64) float64 {
	best, at := math.Inf(-1), 0.0
	scale := math.Exp(eps)
	for i, t := range p {
		if i > 0 && t == p[i-1] {
			continue
		}
		gain := float64(len(p)-i)/float64(len(p)) - scale*float64(q.count(t))/float64(len(q))
		if gain > best {
			best, at = gain, t
		}
	}
	return at
}

// An event bounds the probabilities of E by the runs that did not choose it: P(E) >= p and Q(E) <= q.
type event struct{ p, q float64 }

// delta returns the lower bound on delta(eps) that the event gives.
func (e event) delta(eps float64) float64 { return max(0, e.p-math.Exp(eps)*e.q) }

// epsilon returns the lower bound on epsilon at delta: P(E) <= e^epsilon Q(E) + delta.
func (e event) epsilon(delta float64) float64 {
	if e.p <= delta || e.q <= 0 {
		return 0
	}
	return max(0, math.Log((e.p-delta)/e.q))
}

// observe chooses an event for eps on the first part of the runs and bounds it on the rest, each bound wrong with
// probability at most alpha.
func observe(p, q []float64, eps, alpha float64) event {
	train := len(p) / 8
	t := threshold(newSample(p[:train]), newSample(q[:train]), eps)
	hitsP, hitsQ := 0, 0
	for i := train; i < len(p); i++ {
		if p[i] >= t {
			hitsP++
		}
		if q[i] >= t {
			hitsQ++
		}
	}
	n := len(p) - train
	return event{p: atLeast(hitsP, n, alpha), q: atMost(hitsQ, n, alpha)}
}
