package accounting

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer"
)

// massMargin bounds the error of a mass of a truncated Laplace law.
const massMargin = 1e-9

// DeletionProfile bounds from above the hockey-stick divergence at e^eps, for every real eps, of a release that
// happens iff a score is at most R1: at and below are Pr[R1 >= s] and Pr[R1 < s] for s = 0, ..., Rmax+1
// (randomizer.TruncatedLaplace.Survival), scores of neighbours are at most one apart, and release returns the curve of
// a release of neighbours with the scores s and t, up to Rmax, which does not fall as they grow. It also returns the
// scores at which the bound is the largest.
//
// For the theorem see docs/proofs/curator.md, deletion: the profile (after Ghazi et al. 2023, Theorem 3.3).
func DeletionProfile(eps float64, at, below []float64, release func(s, t int) Curve) (delta float64, s, t int) {
	return deletionProfile(eps, at, below, release, 1)
}

// deletionProfile returns the same as DeletionProfile, or some number above most if that is above most.
func deletionProfile(eps float64, at, below []float64, release func(s, t int) Curve, most float64) (delta float64, s,
	t int) {
	if len(at) == 0 || len(at) != len(below) || math.IsNaN(eps) {
		return 1, 0, 0
	}
	charge := math.Min(math.Exp(eps), math.MaxFloat64)
	last := len(at) - 1
	const block = 8
	blocks := last/block + 1
	for i := range 2*blocks + 2 { // from the middle, where the bound is the largest, to either end
		first := (blocks/2 + (i+1)/2*(1-2*(i%2))) * block
		if first < 0 || first > last || blockDelta(eps, charge, at, below, first, min(first+block-1, last),
			release) <= delta {
			continue
		}
		for from := first; from <= min(first+block-1, last); from++ {
			for to := max(from-1, 0); to <= min(from+1, last); to++ {
				d := pairDelta(eps, charge, at, below, from, to, delta, release)
				if d > delta {
					delta, s, t = d, from, to
				}
				if delta > most {
					return delta, s, t
				}
			}
		}
	}
	return delta, s, t
}

// blockDelta bounds the bounds of all pairs of which the first has one of these scores: none has more mass, is further
// apart, or has a smaller share of its mass in the other.
func blockDelta(eps, charge float64, at, below []float64, first, final int, release func(s, t int) Curve) float64 {
	last := len(at) - 1
	if final >= last-1 {
		return 1 // the other may have no mass
	}
	least, halts := 1.0, 0.0
	for s := first; s <= final; s++ {
		for t := max(s-1, 0); t <= s+1; t++ {
			least = math.Min(least, at[t]*(1-massMargin)/math.Min(1, at[s]*(1+massMargin)))
			halts = math.Max(halts, below[s]*(1+massMargin)-charge*below[t]*(1-massMargin))
		}
	}
	if !(least > 0) {
		return 1
	}
	return math.Min(1, at[first]*(1+massMargin))*release(final, final+1).Delta(eps+math.Log(least)-2e-15*(1+
		math.Abs(eps)))*(1+2e-12) + halts
}

// pairDelta returns the bound of one ordered pair of scores, or some number of at most least if the bound is no
// larger.
func pairDelta(eps, charge float64, at, below []float64, s, t int, least float64,
	release func(s, t int) Curve) float64 {
	p, q := math.Min(1, at[s]*(1+massMargin)), at[t]*(1-massMargin)
	halts := math.Max(0, below[s]*(1+massMargin)-charge*below[t]*(1-massMargin))
	d := p + halts
	if !(d >= 0) {
		return 1 // no law
	}
	if p > 0 && q > 0 && d > least {
		d = p*release(s, t).Delta(eps+math.Log(q/p)-1e-15*(1+math.Abs(eps)))*(1+1e-12) + halts
	}
	return math.Min(1, d)
}

// DeletionNoise returns the smallest standard deviation, up to 1e-9 of it, at which Gaussian noise was evaluated to be
// within the budget; distance bounds the distance between the released vectors of neighbours of two scores, and bounds
// nothing where it is negative or NaN. The lattice's noise is compared with it.
func DeletionNoise(b Budget, at, below []float64, distance func(s, t int) float64) (sigma float64, err error) {
	if err := validateTarget(b); err != nil {
		return 0, err
	}
	scale := distance(0, 0)
	if !(scale > 0) || math.IsInf(scale, 1) {
		return 0, fmt.Errorf("distance %v: want a positive number", scale)
	}
	within := func(sigma float64) bool { return deletionNoiseEnough(b, at, below, distance, sigma) }
	if !within(scale * 0x1p60) {
		return 0, fmt.Errorf("the law halts too often, or its ends are too heavy, for epsilon %v and delta %v", b.Epsilon,
			b.Delta)
	}
	return smallestNoise(scale, within), nil
}

// deletionNoiseEnough reports whether Gaussian noise of so many standard deviations is within the budget.
func deletionNoiseEnough(b Budget, at, below []float64, distance func(s, t int) float64, sigma float64) bool {
	delta, _, _ := deletionProfile(b.Epsilon, at, below, func(s, t int) Curve {
		if apart := distance(s, t); apart >= 0 {
			return Curve{{mu: apart / sigma * (1 + 1e-15)}}
		}
		return nil // a formula outside of its range: anywhere
	}, b.Delta)
	return delta <= b.Delta
}

// smallestNoise returns an accepted number, up to 1e-9 the smallest, where ok accepts all large ones.
func smallestNoise(guess float64, ok func(float64) bool) float64 {
	lo, hi := guess/2, guess
	for !ok(hi) {
		lo, hi = hi, 2*hi
	}
	for lo > 1e-300 && ok(lo) {
		lo, hi = lo/2, lo
	}
	for hi-lo > 1e-9*hi {
		if mid := lo + (hi-lo)/2; ok(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// CalibrateDeletions returns the law of deletions with the least Gaussian noise among those of rates of a fifth to all
// but a twentieth of epsilon, and of each the smallest laws whose ends have at most delta. distance is of a law, as
// its size enters.
func CalibrateDeletions(b Budget, distance func(l randomizer.TruncatedLaplace) func(s,
	t int) float64) (best randomizer.TruncatedLaplace, sigma float64, err error) {
	if err := validateTarget(b); err != nil {
		return best, 0, err
	}
	sigma = math.Inf(1)
	for i := 4; i < 20; i++ {
		l, err := randomizer.LaplaceOfRate(b.Epsilon * float64(i) / 20)
		if err != nil {
			return best, 0, err
		}
		for kappa := LeastKappa(l, b.Delta); kappa <= LeastKappa(l, b.Delta)+1; kappa++ {
			law, err := randomizer.NewTruncatedLaplace(l, kappa)
			if err != nil {
				continue
			}
			at, below := law.Survival()
			if apart := distance(law); !math.IsInf(sigma, 1) && !deletionNoiseEnough(b, at, below, apart, sigma) {
				continue // more noise than the best
			} else if s, err := DeletionNoise(b, at, below, apart); err == nil && s < sigma {
				best, sigma = law, s
			}
		}
	}
	if math.IsInf(sigma, 1) {
		return best, 0, fmt.Errorf("no law of deletions is within epsilon %v and delta %v", b.Epsilon, b.Delta)
	}
	return best, sigma, nil
}

// PaperDeletions returns kappa, and the standard deviation that replaces 1 for the effect of one deletion, as Ghazi et
// al. (2023, Algorithm 1) have them.
func PaperDeletions(b Budget) (kappa int, sigma float64, err error) {
	if err := validateTarget(b); err != nil {
		return 0, 0, err
	}
	eps := b.Epsilon / 2
	delta := b.Delta / (math.Exp(eps) + 2)
	kappa = 1 + int(math.Ceil(math.Log(1/delta)/eps))
	return kappa, math.Sqrt(2*math.Log(2/delta)) * 8 * float64(kappa) / eps, nil
}

// LeastKappa returns the smallest kappa at which either end of the truncated law has at most delta: q^kappa <= delta
// (1 + 2q (1 - q^kappa)/(1-q)).
func LeastKappa(l randomizer.DiscreteLaplace, delta float64) int {
	q := math.Exp(-l.Rate())
	// x = q^kappa with x (1 + 2 delta q/(1-q)) <= delta (1 + 2q/(1-q)).
	tail := 2 * q / -math.Expm1(-l.Rate())
	return max(1, int(math.Ceil(math.Log((1+delta*tail)/(delta*(1+tail)))/l.Rate()*(1+1e-12))))
}

// validateTarget refuses what no calibration meets.
func validateTarget(b Budget) error {
	if !(b.Epsilon > 0 && b.Epsilon <= MaxEpsilon) {
		return fmt.Errorf("epsilon %v: want a number in (0, %d]", b.Epsilon, MaxEpsilon)
	}
	return validateDelta(b.Delta)
}
