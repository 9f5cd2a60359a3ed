package planning

import (
	"math"
	"math/bits"
	"sort"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// defaultMaxInteractive is the limit on the rounds of a phase in which the same users answer all of them, where
// Problem.MaxRounds sets none. Plain descent needs about beta D sqrt(n)/L of them, so up to some 10^7 users it
// does not bind. Silos, who wait for each other in every round, have defaultMaxPasses.
const (
	defaultMaxInteractive = 10_000
	defaultMaxPasses      = 100
)

// A choice is a number of rounds with its noise and bound.
type choice struct {
	steps, cohort uint64 // rounds; reports of one
	units         uint64 // K, of a report
	privacy       accounting.Plan
	factor        float64 // exact noise over the source's model
	situation     situation
	setting       setting
}

// A search plans one phase. It minimises the bound over all round numbers with the source's model of the noise,
// computes the exact noise at the optimum, corrects the model's level, and repeats. One or two repetitions are enough,
// because the level hardly changes with the cohort.
type search struct {
	p         Problem
	t         schedule.Method
	objective objective
	source    source

	users           uint64 // of the phase: units
	maxRounds       uint64 // of the phase; 0 means no limit
	distance, prior float64
}

// limits returns the smallest and largest admissible number of rounds.
func (s *search) limits() (low, high uint64) {
	low, high = 1, s.users
	if o := s.p.Silos; o.Count > 0 {
		high = max(1, s.users/o.Reports)
	}
	if s.p.Cohort > 0 {
		high = max(1, s.users/s.p.Cohort)
		low = high
	}
	switch {
	case s.t.Interactive && s.maxRounds == 0 && s.p.Silos.Count > 0:
		high = defaultMaxPasses
	case s.t.Interactive && s.maxRounds == 0:
		high = defaultMaxInteractive
	case s.t.Interactive:
		high = s.maxRounds
	case s.maxRounds > 0:
		high = min(high, s.maxRounds)
		low = min(low, high)
	}
	if s.p.Minimum > 0 && !s.t.Interactive && s.p.Silos.Count == 0 {
		high = max(low, min(high, s.users/s.p.Minimum))
	}
	high = min(high, method.MaxSteps)
	if s.p.Continuous == schedule.Epochs { // 1 + 2 + 4 + ..
		high = 1<<(bits.Len64(high+1)-1) - 1
		low = min(low, high)
		if s.p.Cohort > 0 {
			low = high
		}
	}
	return low, high
}

// shape returns the reports of a round and the units of each: for silos all their units if they answer every round,
// else the size of that many disjoint blocks.
func (s *search) shape(steps uint64) (reports, units uint64) {
	switch o := s.p.Silos; {
	case o.Count > 0 && s.t.Interactive:
		return o.Reports, o.Units
	case o.Count > 0:
		return o.Reports, max(1, o.Blocks(steps))
	case s.t.Interactive:
		return s.users, 1
	case s.p.Cohort > 0:
		return s.p.Cohort, 1
	}
	return s.users / steps, 1
}

// from returns the source of noise for reports about that many units.
func (s *search) from(units uint64) source {
	if units == 1 {
		return s.source
	}
	return s.source.about(units)
}

// answers returns how many rounds of the phase one user answers.
func (s *search) answers(steps uint64) uint64 {
	if s.t.Interactive {
		return steps
	}
	return 1
}

// next returns the number of rounds to try after t: every one up to 50, then steps of the given share of t. Epochs have
// 2^k - 1.
func (s *search) next(t, high uint64, share float64) uint64 {
	if s.p.Continuous == schedule.Epochs {
		return min(high, 2*t+1)
	}
	return min(high, max(t+1, uint64(float64(t)*(1+share))))
}

// start minimises the bound with factor times the model's noise: on a grid of ratio 1.02, and around its best on one of
// 1.002, which is finer than the bound's accuracy. If the same users answer all rounds, it returns the smallest number
// within a hundredth of the best, because every round costs each of them a report.
func (s *search) start(factor float64) uint64 {
	const coarse, fine = 0.02, 0.002
	low, high := s.limits()
	best, at := math.Inf(1), low
	try := func(from, to uint64, share float64) {
		for t := from; ; t = s.next(t, to, share) {
			if b := s.modelled(t, factor); b < best {
				best, at = b, t
			}
			if t == to {
				return
			}
		}
	}
	try(low, high, coarse)
	if s.p.Continuous != schedule.Epochs {
		try(max(low, uint64(float64(at)/(1+2*coarse))), min(high, uint64(float64(at)*(1+2*coarse))+1), fine)
	}
	if !s.t.Interactive {
		return at
	}
	enough := func(t uint64) bool { return s.modelled(t, factor) <= 1.01*best }
	last, t := low, low
	for ; t < at && !enough(t); t = s.next(t, high, coarse) {
		last = t + 1
	}
	return last + uint64(sort.Search(int(min(t, at)-last), func(i int) bool { return enough(last + uint64(i)) }))
}

func (s *search) modelled(t uint64, factor float64) float64 {
	m, k := s.shape(t)
	n := s.from(k).model(m, s.answers(t))
	n.privacy, n.rounding = factor*n.privacy, factor*n.rounding
	return s.objective.tune(s.t, s.situation(m, k, t, n)).risk
}

// situation returns the inputs of the bounds for T rounds of m reports of k units.
func (s *search) situation(m, k, steps uint64, n noise) situation {
	l := s.p.encodedNorm()
	out := situation{distance: s.distance, prior: s.prior, users: m * k, steps: steps,
		rounding: float64(s.p.Dim) * n.rounding * l * l}
	if s.t.Interactive {
		out.variance = float64(s.p.Dim) * n.total() * l * l
		if of := s.p.Silos; of.some() { // drawn for each round, so that all of them count
			out.users, out.drawn = of.Count*k, true
		}
	} else {
		out.variance = OracleVariance(s.objective.lipschitz, m*k, s.p.Dim, n.total()*l*l, 0)
	}
	out.variance += s.p.Silos.heterogeneity(s.objective.lipschitz)
	return out
}

// best returns the choice with the smallest bound, or the error of the last cohort tried. A move away from the model's
// optimum must gain half a percent: the accountant's integers make the exact bound jump by that much around a flat
// optimum. If a cohort cannot meet the target at all, larger ones are tried.
func (s *search) best() (choice, error) {
	low, _ := s.limits()
	steps := s.start(1)
	best, err := s.exact(steps)
	for err != nil && steps > low {
		steps = max(low, steps/2)
		if s.p.Continuous == schedule.Epochs {
			steps = max(low, 1<<(bits.Len64(steps+1)-1)-1)
		}
		best, err = s.exact(steps)
	}
	if err != nil {
		return choice{}, err
	}
	for range 4 {
		if math.Abs(best.factor-1) < 0.05 {
			break // the model was right, and so was its optimum
		}
		steps := s.start(best.factor)
		if m, k := s.shape(steps); steps == best.steps || m == best.cohort && k == best.units && !s.t.Interactive {
			break
		}
		c, err := s.exact(steps)
		if err != nil || c.setting.risk > 0.995*best.setting.risk {
			break
		}
		best = c
	}
	return best, nil
}

// exact evaluates a number of rounds with the real noise of its cohort.
func (s *search) exact(steps uint64) (choice, error) {
	m, k := s.shape(steps)
	_, high := s.limits()
	switch o := s.p.Silos; {
	case s.t.Interactive || s.p.Continuous == schedule.Epochs:
	case o.Count > 0: // rounding blocks or cohorts down can leave units for further rounds of the same size
		steps = min(high, o.Count*(o.Units/k)/m)
	default:
		steps = min(high, s.users/m)
	}
	from := s.from(k)
	n, plan, err := from.exact(m, s.answers(steps))
	if err != nil {
		return choice{}, err
	}
	at := s.situation(m, k, steps, n)
	return choice{steps: steps, cohort: m, units: k, privacy: plan, situation: at,
		setting: s.objective.tune(s.t, at), factor: n.total() / from.model(m, s.answers(steps)).total()}, nil
}
