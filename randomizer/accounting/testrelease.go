package accounting

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer"
)

// A ScoreTest releases a vector, with noise, iff score + X >= Threshold, where X is drawn for each test. Scores are
// integers, in steps. If one of two neighbours has a score of at least Full, the curve passed to Delta bounds the
// divergence of their releases (Theorem P1 of docs/proofs/curator.md, after Lowy, Liu and Asi 2024, Algorithm 1).
type ScoreTest struct {
	Noise       randomizer.DiscreteLaplace
	Sensitivity int64 // by how much the scores of neighbours differ at most
	Full        int64 // U
	Threshold   int64 // Theta, at least Full
}

// Epsilon returns e1, the cost of the test itself.
func (t ScoreTest) Epsilon() float64 { return t.Noise.Rate() * float64(t.Sensitivity) * (1 + 1e-15) }

// Slip returns the largest probability that a score below Full passes.
func (t ScoreTest) Slip() float64 { return t.Noise.Tail(t.Threshold - t.Full + 1) }

// Delta bounds from above the hockey-stick divergence at e^eps, for every real eps: the larger of what slips, and the
// release at eps - e1.
func (t ScoreTest) Delta(eps float64, release Curve) float64 {
	left := eps - t.Epsilon() - 1e-15*(1+math.Abs(eps))
	if !(t.Epsilon() > 0) || math.IsNaN(left) {
		return 1 // no test
	}
	return math.Min(1, math.Max(t.Slip()+math.Max(0, -math.Expm1(left))*(1+1e-12), release.Delta(left)))
}

// Profile returns a sharper bound than Delta, for two to five percent less noise; plans use it. A score that has a
// chance to fail does not release always. The bound is the supremum over scores, taken in blocks.
func (t ScoreTest) Profile(eps float64, release Curve) float64 {
	if !(t.Epsilon() > 0 && eps >= t.Epsilon()*(1+1e-12)) {
		return t.Delta(eps, release)
	}
	release = release.Near(eps - t.Epsilon()) // some of its points, which are a curve
	// With k = Theta - score, p_k = Pr[X >= k], and scores that are the sensitivity apart: p_k and p_(k+D)/p_k fall in
	// k, and the latter is e^-e1 from 0 on.
	at := func(p float64, k int64) float64 {
		q := t.Noise.Tail(k+t.Sensitivity) * (1 - 3e-9)
		return p * release.Delta(eps+math.Log(q/t.Noise.Tail(k))-1e-15*(1+eps))
	}
	top := min(0, t.Threshold-t.Full)
	best := math.Max(t.Slip(), at(t.Noise.Tail(top), top))
	scale := 1 / t.Noise.Rate()
	block := max(1, int64(math.Min(scale, float64(t.Sensitivity))/32))
	for end := top - t.Sensitivity - int64(4*scale); top > end; top -= block {
		best = math.Max(best, at(t.Noise.Tail(top-block), top))
	}
	return math.Min(t.Delta(eps, release), math.Max(best, at(1, top))*(1+1e-12))
}

// A SharedTest is made in every round until it fails: score + V >= Threshold + X, where X is drawn once and V in every
// round. Its Full has the meaning of ScoreTest.Full (Mode F of docs/proofs/curator.md, after Lowy, Liu and Asi 2024,
// Algorithm 2).
type SharedTest struct {
	Once, Each  randomizer.DiscreteLaplace // of X and of V
	Sensitivity int64
	Full        int64
	Threshold   int64
}

// Epsilon returns e1, the cost of all tests together.
func (t SharedTest) Epsilon() float64 {
	return (t.Once.Rate() + 2*t.Each.Rate()) * float64(t.Sensitivity) * (1 + 2e-15)
}

// Slip returns delta_1, the probability that the first score below Full passes.
func (t SharedTest) Slip() float64 { return differenceTail(t.Each, t.Once, t.Threshold-t.Full+1) }

// Delta bounds from above the hockey-stick divergence at e^eps, for every real eps, where release is the curve of all
// rounds.
func (t SharedTest) Delta(eps float64, release Curve) float64 {
	if !(t.Epsilon() > 0) {
		return 1 // no test
	}
	return math.Min(1, t.Slip()+release.Delta(eps-t.Epsilon()-1e-15*(1+math.Abs(eps))))
}

// differenceTail bounds Pr[A - B >= k] from above, for independent draws of two laws: (c_a Pr[A >= k] - c_b Pr[B >=
// k])/(c_a - c_b), c = q/(1-q)^2, for k > 0. Where the two are near each other the wider one is taken to be wider yet,
// which only adds to the tail (docs/proofs/curator.md, exact discrete Laplace).
func differenceTail(a, b randomizer.DiscreteLaplace, k int64) float64 {
	if k <= 0 {
		return 1
	}
	wide, narrow := math.Min(a.Rate(), b.Rate()), math.Max(a.Rate(), b.Rate())
	if wide > narrow/1.05 {
		wide = narrow / 1.05
	}
	part := func(rate float64) (c, tail float64) {
		p := -math.Expm1(-rate)
		return math.Exp(-rate) / (p * p), math.Exp(-rate*float64(k)) / (1 + math.Exp(-rate))
	}
	c1, t1 := part(wide)
	c2, t2 := part(narrow)
	return math.Min(1, (t1+(t1-t2)*c2/(c1-c2))*(1+1e-9)+1e-300)
}

// A ScoreRequest holds the requirements for which a test of scores is calibrated.
type ScoreRequest struct {
	Budget      Budget
	Rounds      int     // T; 1 for a ScoreTest
	Failure     float64 // b_u: the probability that scores of Most, those of well-behaved data, fail in any round
	Sensitivity int64   // of the score
	Most        int64   // the highest score
	Least       int64   // Full may not be lower
	// Apart is S_U, how far apart the vectors of neighbours lie of which one has a score of at least full. It falls in
	// full.
	Apart func(full int64) float64
}

func (q ScoreRequest) validate() error {
	if err := validateTarget(q.Budget); err != nil {
		return err
	}
	if q.Rounds < 1 || q.Rounds >= maxCount {
		return fmt.Errorf("rounds %d: want 1 to %d", q.Rounds, maxCount-1)
	}
	if !(q.Failure > 0 && q.Failure < 1) {
		return fmt.Errorf("failure %v: want a probability strictly between 0 and 1", q.Failure)
	}
	if !(q.Failure/float64(q.Rounds) > leastMass && q.Budget.Delta/10 > leastMass) {
		return fmt.Errorf("failure %v of %d rounds, delta %v: want more, or tails are not told from 0", q.Failure, q.Rounds,
			q.Budget.Delta)
	}
	const most = 1 << 52
	if q.Sensitivity < 1 || q.Least < 0 || q.Most < q.Least || q.Most > most || q.Sensitivity > most {
		return fmt.Errorf("scores of %d to %d with sensitivity %d: want numbers from 0 on, and a sensitivity of at least 1",
			q.Least, q.Most, q.Sensitivity)
	}
	return nil
}

// shares is the number of parts of epsilon that e1 may have.
const shares = 100

// CalibrateTest returns the test with the least Gaussian noise, and its standard deviation, among those that cost a
// hundredth, two hundredths, ... of epsilon. It fails where scores as high as Most do not leave enough room for the
// noise of the test.
func CalibrateTest(q ScoreRequest) (best ScoreTest, sigma float64, err error) {
	return cheapest(q, func(e1 float64) (t ScoreTest, full int64, mu float64, err error) {
		noise, err := randomizer.LaplaceOfRate(e1 / float64(q.Sensitivity))
		if err != nil {
			return t, 0, 0, err
		}
		threshold := q.Most + 1 - leastTail(noise.Tail, q.Failure/float64(q.Rounds))
		full = threshold + 1 - leastTail(noise.Tail, q.Budget.Delta)
		t = ScoreTest{Noise: noise, Sensitivity: q.Sensitivity, Full: full, Threshold: threshold}
		return t, full, gaussianMu(q.Budget.Epsilon-t.Epsilon(), q.Budget.Delta), nil
	})
}

// CalibrateSharedTest is CalibrateTest for all rounds together: a tenth of delta is spent on Slip, and the variances
// of X and V are as small as they can be together.
func CalibrateSharedTest(q ScoreRequest) (best SharedTest, sigma float64, err error) {
	return cheapest(q, func(e1 float64) (t SharedTest, full int64, mu float64, err error) {
		split := math.Cbrt(4) // 2 Delta/b_v over Delta/b_x
		once, err := randomizer.LaplaceOfRate(e1 / float64(q.Sensitivity) / (1 + split))
		if err != nil {
			return t, 0, 0, err
		}
		each, err := randomizer.LaplaceOfRate(e1 / float64(q.Sensitivity) * split / (1 + split) / 2)
		if err != nil {
			return t, 0, 0, err
		}
		tail := func(k int64) float64 { return differenceTail(once, each, k) }
		threshold := q.Most + 1 - leastTail(tail, q.Failure/float64(q.Rounds))
		full = threshold + 1 - leastTail(tail, q.Budget.Delta/10)
		t = SharedTest{Once: once, Each: each, Sensitivity: q.Sensitivity, Full: full, Threshold: threshold}
		return t, full, gaussianMu(q.Budget.Epsilon-t.Epsilon(), q.Budget.Delta-t.Slip()) / math.Sqrt(float64(q.Rounds)), nil
	})
}

// cheapest tries tests by their e1: each has a Full, and the mu that a release of neighbours S_U apart may have.
func cheapest[T any](q ScoreRequest, try func(e1 float64) (t T, full int64, mu float64, err error)) (best T,
	sigma float64, err error) {
	if err := q.validate(); err != nil {
		return best, 0, err
	}
	sigma = math.Inf(1)
	for i := 1; i < shares; i++ {
		t, full, mu, err := try(q.Budget.Epsilon * float64(i) / shares)
		if err != nil || full < q.Least || !(mu > 0) {
			continue
		}
		if s := q.Apart(full) / mu; s < sigma {
			best, sigma = t, s
		}
	}
	if math.IsInf(sigma, 1) {
		return best, 0,
			fmt.Errorf("scores of %d to %d with sensitivity %d leave no room for a test within epsilon %v and delta %v",
				q.Least, q.Most, q.Sensitivity, q.Budget.Epsilon, q.Budget.Delta)
	}
	return best, sigma, nil
}

// leastMass is below all that a tail is asked to be at most: tails of noise have 1e-300 added to them, and fall no
// lower.
const leastMass = 1e-290

// leastTail returns the smallest k > 0 at which a tail that falls is at most p, above leastMass.
func leastTail(tail func(k int64) float64, p float64) int64 {
	lo, hi := int64(0), int64(1)
	for tail(hi) > p {
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; tail(mid) > p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}
