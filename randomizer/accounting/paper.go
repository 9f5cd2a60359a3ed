package accounting

import (
	"fmt"
	"math"
)

// paperConstants are the closed forms of Theorem 3.2 of the paper, for one round.
type paperConstants struct {
	g      int
	b      uint64
	p      float64
	epsHat float64 // per coordinate
}

// closedForm evaluates g = max(2 sqrt(n), d, 4), deltaHat = delta/(d+1),
// epsHat = eps/(18 sqrt(ln(1/deltaHat))), b = ceil(180 g^2 ln(2/deltaHat)/(epsHat^2 m)) + 1
// and p = 90 g^2 ln(2/deltaHat)/(b epsHat^2 m), p rounded up to the grid. m counts
// the honest users, whose noise alone is credited (Corollary A.9).
func closedForm(users, honest uint64, dim int, eps, delta float64) (paperConstants, error) {
	if !(eps <= 15) {
		return paperConstants{}, fmt.Errorf("epsilon %v a round: the paper's constants want at most 15; use profile numeric",
			eps)
	}
	if !(delta < 0.5) {
		return paperConstants{}, fmt.Errorf("delta %v a round: the paper's constants want below 1/2; use profile numeric",
			delta)
	}
	g := math.Ceil(max(2*math.Sqrt(float64(users)), float64(dim), 4))
	deltaHat := delta / float64(dim+1)
	epsHat := eps / (18 * math.Sqrt(math.Log(1/deltaHat)))
	need := 180 * g * g * math.Log(2/deltaHat) / (epsHat * epsHat * float64(honest))
	b := math.Ceil(need) + 1
	if !(b*float64(users) < maxUnits/8) || !(g < maxCount) {
		return paperConstants{},
			fmt.Errorf("the paper's constants ask for b = %.3g trials a report: want totals below 2^59; use profile numeric", b)
	}
	p := math.Ceil(need/2/b*(1<<coinBits)) / (1 << coinBits)
	return paperConstants{int(g), uint64(b), p, epsHat}, nil
}

// paperPlan plans with the paper's constants. Several rounds split the target as
// in its Theorem 4.9: (eps/(2 sqrt(2 T ln(1/delta))), delta/(T+1)) each.
func paperPlan(q Request) (Plan, error) {
	if q.Trust != Shuffle {
		return Plan{}, fmt.Errorf("trust %v: profile paper has constants for trust shuffle only; use profile numeric",
			q.Trust)
	}
	if q.units() > 1 {
		return Plan{}, fmt.Errorf("units %d: profile paper has constants for reports about one; use profile numeric", q.Units)
	}
	if q.MaxBits > 0 {
		return Plan{}, fmt.Errorf("bits per coordinate %d: profile paper fixes its own; use profile numeric", q.MaxBits)
	}
	eps, delta := q.Epsilon, q.Delta
	if t := float64(q.rounds()); t > 1 {
		eps, delta = eps/(2*math.Sqrt(2*t*math.Log(1/delta))), delta/(t+1)
	}
	c, err := closedForm(q.Users, q.HonestFraction.Floor(q.Users), q.Dim, eps, delta)
	if err != nil {
		return Plan{}, err
	}
	r := Release{
		Trust: Shuffle, Users: q.Users, Dim: q.Dim, Levels: c.g, Trials: c.b, P: c.p,
		HonestFraction: q.HonestFraction, Rounds: q.rounds(),
	}
	g, err := r.Epsilon(q.Delta)
	if err != nil {
		return Plan{}, fmt.Errorf("profile paper: %w", err)
	}
	p := q.plan(r)
	if !math.IsInf(g.Epsilon, 1) {
		p.ProvedEpsilon = &g.Epsilon
	}
	return p, nil
}
