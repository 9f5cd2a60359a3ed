package accounting

import (
	"fmt"
	"math"
)

// Calibrate returns the cheapest release that meets a request.
func Calibrate(q Request) (Plan, error) {
	if err := q.Validate(); err != nil {
		return Plan{}, err
	}
	c := plans.of(q, func(q Request) calibrated {
		plan, err := calibrate(q)
		return calibrated{plan, err}
	})
	return c.plan, c.err
}

func calibrate(q Request) (Plan, error) {
	if q.Profile == Paper {
		return paperPlan(q)
	}
	s := newSearch(q)
	var best candidate
	var err error
	if q.MaxBits > 0 {
		best, err = s.withinBits(q.MaxBits)
	} else {
		best, err = s.smallestGrid()
	}
	if err == nil && q.Trust.HasOperators() {
		best, err = s.wholeBits(best.g, q.MaxBits == 0)
	}
	if err != nil {
		return Plan{}, fmt.Errorf("calibrate users %d, dim %d, epsilon %v, delta %v, trust %v: %w",
			q.Users, q.Dim, q.Epsilon, q.Delta, q.Trust, err)
	}
	if q.Coin == CoinFair {
		fair := best
		fair.k = fairCoin
		// The unit of the candidate was chosen as one that meets the target at 1/2.
		if s.mse(fair) <= 1.03*s.mse(best) && s.meets(fair) {
			best = fair
		}
	}
	r := s.release(best)
	g, err := r.Within(Budget{Epsilon: q.Epsilon, Delta: q.Delta})
	if err != nil {
		return Plan{}, fmt.Errorf("calibrate: %w", err)
	}
	if !(g.Epsilon <= q.Epsilon) {
		// The learner sees more noise than the adversary whose view was searched, so
		// its bound is lower; release nothing if that ever failed to show.
		return Plan{}, fmt.Errorf("calibrate: epsilon %v at delta %v, want at most %v", g.Epsilon, q.Delta, q.Epsilon)
	}
	p := q.plan(r)
	p.Epsilon = g.Epsilon
	p.ProvedEpsilon = &g.Epsilon
	return p, nil
}

// smallestP returns the smallest p <= 1/2 on the grid 2^-24, up to a few steps,
// at which m (its P ignored) was evaluated to be within the budget.
func smallestP(m Mechanism, b Budget) (float64, error) {
	m.P = 0.5
	if err := m.validate(); err != nil {
		return 0, err
	}
	eps, delta := b.Epsilon, b.Delta
	if !(eps > 0 && eps <= MaxEpsilon) {
		return 0, fmt.Errorf("epsilon %v: want a number in (0, %d]", eps, MaxEpsilon)
	}
	if err := validateDelta(delta); err != nil {
		return 0, err
	}
	at := func(k int64) []Curve {
		m.P = float64(k) / (1 << coinBits)
		return []Curve{compose([]Mechanism{m})}
	}
	if !meets(at(fairCoin), eps, delta) {
		return 0, fmt.Errorf("trials %d: p = 1/2 does not meet epsilon %v, delta %v", m.Trials, eps, delta)
	}
	return float64(smallestCoin(at, eps, delta)) / (1 << coinBits), nil
}

// fairCoin is p = 1/2 on the grid.
const fairCoin = 1 << (coinBits - 1)

// meets reports whether every curve has at most delta at eps.
func meets(curves []Curve, eps, delta float64) bool {
	for _, c := range curves {
		if !(c.Delta(eps) <= delta) {
			return false
		}
	}
	return true
}

// headroom returns the factor by which every mu could grow with the target still met: the required variance is about
// the present one over its square. It is only a guess for the searches; 0 if the windows' slack alone exceeds delta.
func headroom(curves []Curve, eps, delta float64) float64 {
	least := math.Inf(1)
	for _, c := range curves {
		c = c.Near(eps)
		ok := func(scale float64) bool { return c.scaledDelta(eps, scale) <= delta }
		if !ok(1e-3) {
			return 0
		}
		lo, hi := 1e-3, 1.0
		for ok(hi) && hi < 1e3 {
			lo, hi = hi, hi*1.25
		}
		for lo < 0.5*hi {
			if mid := math.Sqrt(lo * hi); ok(mid) {
				lo = mid
			} else {
				hi = mid
			}
		}
		for hi-lo > 1e-9*hi {
			if mid := (lo + hi) / 2; ok(mid) {
				lo = mid
			} else {
				hi = mid
			}
		}
		least = min(least, lo)
	}
	return least
}

// guessedCoins is the number of steps in which smallestCoin follows its guesses; then it halves.
const guessedCoins = 24

// smallestCoin searches k for p = k/2^24 between 0 and a feasible 1/2. Every
// accepted k was evaluated; that delta falls with p is used for speed alone.
func smallestCoin(at func(k int64) []Curve, eps, delta float64) int64 {
	lo, hi := int64(0), int64(fairCoin)
	h := headroom(at(hi), eps, delta)
	from := hi
	for step := 0; hi-lo > 1; step++ {
		p := float64(from) / (1 << coinBits)
		x := p * (1 - p) / (h * h)
		guess := (lo + hi) / 2
		if h > 0 && x < 0.25 && step < guessedCoins {
			guess = int64(math.Ceil((1 - math.Sqrt(1-4*x)) / 2 * (1 << coinBits)))
			guess = min(max(guess, lo+1), hi-1)
		}
		curves := at(guess)
		if from = guess; step+1 < guessedCoins { // the next one is a guess
			h = headroom(curves, eps, delta)
		}
		if meets(curves, eps, delta) {
			hi = guess
		} else {
			lo = guess
		}
	}
	return hi
}
