package accounting

import (
	"errors"
	"math"
	"math/bits"

	"github.com/panlearn/panlearn/randomizer"
)

var errNoPlan = errors.New(
	"no plan: the noise needed exceeds 2^38 trials or the dimension of the search; want more users, a larger epsilon or delta, fewer rounds, or a bit budget")

// search looks for the parameters of one request. The unit is what is searched
// for: the trials b of a report, or under Pan and Split the trials N_f of one floor,
// or two of a report under Local, where they are even.
type search struct {
	q Request
	// perUnit counts trials per unit: seen by the learner, by the intruder or an
	// operator (0 if the trust knows neither) and in the released totals.
	learner, second, released float64
	// limit is the mean squared error of infinitely many bits: (2/n)^2 times the
	// released over the credited noise, over mu^2.
	limit float64
	// needed times g^2 is the variance of one unit's trials that would do if the
	// binomial were Gaussian.
	needed float64
	seen   map[int]candidate
	// rungs bounds how deep a curve is computed first.
	rungs int
}

// candidate is a grid size with its smallest feasible unit and a coin.
type candidate struct {
	g    int
	unit uint64
	k    int64
	// variance estimates the variance of one unit's trials that the target needs;
	// an exact coin would come close to it.
	variance float64
}

func newSearch(q Request) *search {
	s := &search{q: q, seen: make(map[int]candidate)}
	n, one := float64(q.Users), q.noise(1)
	s.learner, s.released = float64(one.Released(q.HonestFraction.Floor(q.Users))), float64(one.Released(q.Users))
	if q.Trust == Local {
		s.learner = float64(one.Report)
	}
	t := float64(q.rounds())
	s.needed = t / s.learner
	switch {
	case q.Trust.HasIntruder():
		s.second = float64(one.Intruded(1))
		s.needed = max(s.needed, 1/s.second+(t-1)/s.learner)
	case q.Trust.HasOperators():
		s.second = float64(one.Floor)
		s.needed = t / s.second // in every round
	}
	mu := gaussianMu(q.Epsilon, q.Delta)
	k := float64(q.units())
	s.needed /= mu * mu * k * k
	s.limit = 4 / (n * n) * s.released * s.needed
	// The best window's slack is a few hundredths of delta, and Near keeps 7 rungs more, of 10^(-1/4) each.
	tau := 1e-5 * q.Delta / (t * float64(q.Dim) * (1 + math.Exp(q.Epsilon)))
	s.rungs = min(rungs, max(1, int(-4*(math.Log10(tau)+2))))
	return s
}

// noise returns where the trials of a total come from, of so many units: one floor is worth the noise of all planned
// users.
func (q Request) noise(unit uint64) randomizer.Noise {
	switch q.Trust {
	case Pan, Split:
		return randomizer.Noise{Floor: unit}
	case ShufflePan:
		return randomizer.Noise{Report: unit, Floor: unit * q.Users}
	case Local:
		return randomizer.Noise{Report: 2 * unit}
	}
	return randomizer.Noise{Report: unit}
}

// release returns the release of a candidate.
func (s *search) release(c candidate) Release {
	noise := s.q.noise(c.unit)
	return Release{
		Trust: s.q.Trust, Users: s.q.Users, Dim: s.q.Dim, Levels: c.g, Trials: noise.Report,
		P:           float64(c.k) / (1 << coinBits),
		FloorTrials: noise.Floor, HonestFraction: s.q.HonestFraction, Rounds: s.q.rounds(),
		Units: s.q.Units, Minimizer: s.q.Minimizer,
	}
}

// curves returns one privacy curve per adversary.
func (s *search) curves(c candidate) []Curve {
	learner, second := s.release(c).views()
	if second == nil {
		return []Curve{s.curve(learner)}
	}
	if s.q.rounds() == 1 || s.q.Trust.HasOperators() {
		// The learner's view is the other's with more trials, so its curve is
		// checked once, at the end, by the final evaluation of the release.
		return []Curve{s.curve(second)}
	}
	return []Curve{s.curve(second), s.curve(learner)}
}

// curve returns the curve of the views, or its first points where the rest changes nothing that a search asks.
func (s *search) curve(views []Mechanism) Curve {
	if first := composeTo(s.rungs, views); first.settles(s.q.Epsilon) {
		return first
	}
	return compose(views)
}

func (s *search) meets(c candidate) bool {
	return meets(s.curves(c), s.q.Epsilon, s.q.Delta)
}

// mse returns the worst case of one coordinate of the mean, rounding included.
func (s *search) mse(c candidate) float64 {
	p := float64(c.k) / (1 << coinBits)
	return s.error(c.g, float64(c.unit)*p*(1-p))
}

func (s *search) error(g int, unitVariance float64) float64 {
	n := float64(s.q.Users)
	scale := 2 / (float64(g) * n)
	return scale * scale * (s.released*unitVariance + n/4)
}

// maxUnit returns the largest unit at which every view of a candidate can be tabulated exactly.
func (s *search) maxUnit() float64 {
	return (1 << 37) / max(s.learner, s.second, s.released)
}

// smallestUnit finds, for a grid size, the smallest unit that meets the target at
// p = 1/2. ok is false beyond the range of the accountant.
func (s *search) smallestUnit(g int) (c candidate, ok bool) {
	if c, ok := s.seen[g]; ok {
		return c, true
	}
	limit := s.maxUnit()
	guess := 4 * float64(g) * float64(g) * s.needed
	if !(guess < limit) {
		return candidate{}, false
	}
	lo, hi := uint64(0), uint64(0) // infeasible, feasible (0: unknown)
	unit := max(1, uint64(guess))
	var variance float64
	for step := 0; ; step++ {
		c = candidate{g: g, unit: unit, k: fairCoin}
		curves := s.curves(c)
		h := headroom(curves, s.q.Epsilon, s.q.Delta)
		if meets(curves, s.q.Epsilon, s.q.Delta) {
			hi = unit
		} else {
			lo = unit
		}
		if h > 0 {
			variance = float64(unit) / 4 / (h * h)
		}
		if hi == lo+1 {
			c = candidate{g: g, unit: hi, k: fairCoin, variance: variance}
			s.seen[g] = c
			return c, true
		}
		next := 2 * float64(lo)
		if h > 0 && step < 12 {
			next = math.Ceil(float64(unit) / (h * h))
		} else if hi > 0 {
			next = float64(lo + (hi-lo)/2)
		}
		if hi > 0 {
			next = min(next, float64(hi-1))
		}
		next = max(next, float64(lo+1))
		if !(next < limit) {
			return candidate{}, false
		}
		unit = uint64(next)
	}
}

// finish chooses the coin of a candidate.
func (s *search) finish(c candidate) candidate {
	if s.q.Trust == Pan || s.q.Trust == Split || s.q.Trust == Local {
		return c // the floors are drawn by the stage; a fair coin has no skew, and one of Local has to have none
	}
	c.k = smallestCoin(func(k int64) []Curve {
		return s.curves(candidate{g: c.g, unit: c.unit, k: k})
	}, s.q.Epsilon, s.q.Delta)
	return c
}

// smallestGrid finds the smallest g whose error is within the slack of the limit.
// g + b grows with g, so this is the cheapest plan.
func (s *search) smallestGrid() (candidate, error) {
	slack := s.q.slack()
	// Rounding alone: n/(4 g^2) = slack times released times needed.
	guess := math.Sqrt(float64(s.q.Users) / (4 * slack * s.released * s.needed))
	var best candidate
	lo, hi := 0, 0
	for step := 0; hi-lo != 1; step++ {
		if !(guess < maxCount/2) {
			return candidate{}, errNoPlan
		}
		g := max(1, int(math.Ceil(guess)))
		if hi > 0 {
			g = min(g, hi-1)
		}
		g = max(g, lo+1)
		c, ok := s.smallestUnit(g)
		if !ok {
			return candidate{}, errNoPlan
		}
		ratio := s.error(g, c.variance) / s.limit
		// The estimate ignores the skew of the coin that will be chosen; near the
		// border only the finished candidate decides.
		if math.Abs(ratio/(1+slack)-1) < 0.02 {
			c = s.finish(c)
			ratio = s.mse(c) / s.limit
		}
		if ratio <= 1+slack {
			hi, best = g, c
		} else {
			lo = g
		}
		// The noise part hardly depends on g, the rounding part falls like 1/g^2.
		rounding := s.error(g, 0) / s.limit
		noise := ratio - rounding
		guess = float64(g) * 1.15
		if spare := 1 + slack - noise; spare > 0 && step < 12 {
			guess = float64(g) * math.Sqrt(rounding/spare)
		} else if hi > 0 {
			guess = float64(lo+hi) / 2
		}
	}
	if best.k == fairCoin {
		best = s.finish(best)
	}
	return best, nil
}

// wholeBits returns the candidate of a grid of 2^k - 1 steps next to g, not below it or not above it: a report of Split
// is proved to be of k bits a coordinate, so that the lattice is all that a proof lets through.
func (s *search) wholeBits(g int, above bool) (candidate, error) {
	k := bits.Len(uint(g))
	if !above && g&(g+1) != 0 {
		k--
	}
	g = 1<<k - 1
	if !(g < maxCount/2) {
		return candidate{}, errNoPlan
	}
	c, ok := s.smallestUnit(g)
	if !ok {
		return candidate{}, errNoPlan
	}
	return c, nil
}

// withinBits finds the least error with g + b at most budget: the largest such g,
// or one of the three below it, since b is an integer.
func (s *search) withinBits(budget int) (candidate, error) {
	fits := func(g int) (candidate, bool) {
		c, ok := s.smallestUnit(g)
		if ok && s.q.Trust.HasReportNoise() {
			b := s.q.noise(c.unit).Report
			ok = b <= uint64(budget) && uint64(g)+b <= uint64(budget)
		}
		return c, ok
	}
	lo, hi := 0, budget+1 // largest that fits, smallest that does not
	// b is about 4 g^2 needed: solve g + b = budget.
	a := 4 * s.needed
	guess := (math.Sqrt(1+4*a*float64(budget)) - 1) / (2 * a)
	if !s.q.Trust.HasReportNoise() {
		guess = float64(budget)
	}
	for stride := 0; hi-lo > 1; stride = 2*stride + 1 {
		g := lo + (hi-lo)/2
		switch {
		case stride == 0:
			g = int(guess)
		case hi > budget:
			g = lo + stride // still no upper end near the guess
		case lo == 0:
			g = hi - stride
		}
		g = min(max(g, lo+1), hi-1)
		if _, ok := fits(g); ok {
			lo = g
		} else {
			hi = g
		}
	}
	var best candidate
	for g := lo; g >= 1 && g > lo-4; g-- {
		c, ok := fits(g)
		if !ok {
			continue
		}
		if c = s.finish(c); best.g == 0 || s.mse(c) < s.mse(best) {
			best = c
		}
	}
	if best.g == 0 {
		return candidate{}, errNoPlan
	}
	return best, nil
}
