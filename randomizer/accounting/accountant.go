package accounting

import (
	"fmt"
	"math"
	"slices"
)

// A depth is the first levels of a law's profile, down to a rung.
type depth struct {
	law   binomial
	rungs int
}

// Delta returns an upper bound on delta at eps for the adaptive composition of
// the views, each in all of its rounds (Theorem A with sum mu_t^2 and
// sum d_t tau_t). At most 1.
func Delta(eps float64, views ...Mechanism) (float64, error) {
	if err := validateEpsilon(eps); err != nil {
		return 0, err
	}
	if err := validateAll(views); err != nil {
		return 0, err
	}
	return compose(views).Delta(eps), nil
}

// Epsilon returns an epsilon at which Delta of the same views was evaluated to be
// at most delta; +Inf means no guarantee up to MaxEpsilon.
func Epsilon(delta float64, views ...Mechanism) (float64, error) {
	if err := validateDelta(delta); err != nil {
		return 0, err
	}
	if err := validateAll(views); err != nil {
		return 0, err
	}
	return compose(views).epsilon(delta), nil
}

func validateAll(views []Mechanism) error {
	if len(views) == 0 {
		return fmt.Errorf("mechanisms: want at least one")
	}
	for i, v := range views {
		if err := v.validate(); err != nil {
			return fmt.Errorf("mechanism %d: %w", i, err)
		}
	}
	return nil
}

// compose returns the curve of views that come one after the other.
func compose(views []Mechanism) Curve { return composeTo(rungs, views) }

// composeTo returns the first points of compose's curve, those of so many rungs.
func composeTo(most int, views []Mechanism) Curve {
	return worstTo(most, []turns{{1, [][]Mechanism{views}}})
}

// turns describes how often one of several sets of views is looked at: each time, the choice of the set may depend on
// everything seen before.
type turns struct {
	times int
	of    [][]Mechanism
}

// worst returns the curve of all turns, whatever each chooses: at every rung the largest mu and the largest slack of
// its choices (docs/proofs/theorem-a.md, section 4). It pairs the views' windows rung by rung. Any pairing is valid;
// equal slack is near the best.
func worst(all []turns) Curve { return worstTo(rungs, all) }

// worstTo returns the first points of worst's curve, those of so many rungs.
func worstTo(most int, all []turns) Curve {
	var of []*profile // of every view, in order
	for _, t := range all {
		for _, v := range slices.Concat(t.of...) {
			k, err := gridP(v.P)
			if err != nil {
				panic("accounting: worst got an unvalidated mechanism: " + err.Error())
			}
			of = append(of, profiles.of(depth{affordable(binomial{n: int64(v.Trials), k: k}), most}, newProfile))
		}
	}
	var c Curve
rungs:
	for k := range most {
		var square, slack float64
		fresh, next := false, 0
		for _, t := range all {
			var mostSquare, mostSlack float64
			for _, views := range t.of {
				var oneSquare, oneSlack float64
				for _, v := range views {
					l, ok := of[next].rung(k)
					if !ok {
						continue rungs
					}
					next++
					fresh = fresh || l.rung == k
					mu := v.mu(l)
					oneSquare += float64(v.Rounds) * mu * mu
					oneSlack += float64(v.Rounds) * float64(v.Dim) * l.tau
				}
				mostSquare, mostSlack = max(mostSquare, oneSquare), max(mostSlack, oneSlack)
			}
			square += float64(t.times) * mostSquare
			slack += float64(t.times) * mostSlack
		}
		if fresh {
			// The last factor covers the rounding of the sums.
			c = append(c, point{math.Sqrt(square) * (1 + 1e-12), slack * (1 + 1e-12)})
		}
	}
	return c
}

// maxVariance is the largest table that is built: standard deviation 5e4.
const maxVariance = 2.5e9

// affordable lowers the trials of a law too wide to tabulate. Bin(N', p) with
// N' > N is post-processing of Bin(N, p), so fewer trials bound more from above
// (docs/proofs/theorem-a.md, section 6).
func affordable(b binomial) binomial {
	if v := b.variance(); v > maxVariance {
		b.n = int64(maxVariance / (b.p() * b.q()))
	}
	// Integer differences x 2^24 - k N must fit 63 bits.
	b.n = min(b.n, 1<<37)
	return b
}
