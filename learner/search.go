package learner

import (
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A choice is a number of rounds with what it costs.
type choice struct {
	method        string
	steps, cohort uint64
	privacy       accounting.Plan
	mse           float64 // of one coordinate, in units of the encoded norm
	variance      float64 // V
	bound         float64 // at the best v or eta, damping left out
}

// A search minimises the bound over all round numbers with a model of the noise that is smooth and costs nothing: the
// analytic Gaussian mechanism's, scaled to what the accountant really plans. The accountant is asked at the optimum,
// the scale corrected by its answer, and the search repeated, which settles in one or two rounds because the scale hardly
// changes with the cohort.
type search struct {
	p     Problem
	mu    float64 // analytic Gaussian multiplier of the target
	acct  *accounting.Accountant
	known map[uint64]accounting.Plan // by cohort
}

func newSearch(p Problem) *search {
	mu, err := accounting.GaussianMu(p.Epsilon, p.Delta)
	if err != nil {
		panic("learner: search of an unvalidated problem: " + err.Error())
	}
	return &search{p: p, mu: mu, acct: accounting.NewAccountant(), known: make(map[uint64]accounting.Plan)}
}

// best returns the choice with the smallest bound among the methods, or the error of the last cohort tried.
func (s *search) best() (choice, error) {
	var best choice
	var failure error
	for _, method := range s.p.methods() {
		c, err := s.refine(method)
		if err != nil {
			failure = err
			continue
		}
		if best.method == "" || c.bound < best.bound {
			best = c
		}
	}
	if best.method == "" {
		return choice{}, failure
	}
	return best, nil
}

// limits returns the smallest and largest admissible number of rounds.
func (s *search) limits() (low, high uint64) {
	low, high = 1, s.p.Users
	if s.p.Cohort > 0 {
		high = s.p.Users / s.p.Cohort
		low = high
	}
	if s.p.MaxRounds > 0 {
		high = min(high, s.p.MaxRounds)
		low = min(low, high)
	}
	if s.p.Minimum > 0 {
		high = max(low, min(high, s.p.Users/s.p.Minimum))
	}
	return low, min(high, maxSteps)
}

func (s *search) cohort(steps uint64) uint64 {
	if s.p.Cohort > 0 {
		return s.p.Cohort
	}
	return s.p.Users / steps
}

// start minimises the bound with scale times the model's noise: every round number up to 1000, then a grid of ratio
// 1.002, which is finer than what the bound can tell apart.
func (s *search) start(method string, scale float64) uint64 {
	low, high := s.limits()
	best, at := math.Inf(1), low
	for t := low; ; t = min(high, max(t+1, uint64(float64(t)*1.002))) {
		m := s.cohort(t)
		if b := s.bound(method, t, s.variance(m, scale*s.gaussianMSE(m))); b < best {
			best, at = b, t
		}
		if t == high {
			return at
		}
	}
}

// refine alternates between the model and the accountant. A move must gain half a percent: the accountant's integers make
// the exact bound jump by that much around a flat optimum. Where a cohort cannot meet the target at all, larger ones are
// tried.
func (s *search) refine(method string) (choice, error) {
	low, _ := s.limits()
	steps := s.start(method, 1)
	best, err := s.exact(method, steps)
	for err != nil && steps > low {
		steps = max(low, steps/2)
		best, err = s.exact(method, steps)
	}
	if err != nil {
		return choice{}, err
	}
	for range 4 {
		scale := best.mse / s.gaussianMSE(best.cohort)
		if math.Abs(scale-1) < 0.05 {
			break // the model was right, and so was its optimum
		}
		steps := s.start(method, scale)
		if s.cohort(steps) == best.cohort {
			break
		}
		c, err := s.exact(method, steps)
		if err != nil || c.bound > 0.995*best.bound {
			break
		}
		best = c
	}
	return best, nil
}

// exact evaluates a number of rounds with the accountant's plan for its cohort.
func (s *search) exact(method string, steps uint64) (choice, error) {
	m := s.cohort(steps)
	_, high := s.limits()
	steps = min(high, s.p.Users/m) // rounding the cohort down can leave users for further rounds of the same size
	plan, ok := s.known[m]
	if !ok {
		var err error
		if plan, err = s.acct.Calibrate(s.p.request(m)); err != nil {
			return choice{}, err
		}
		s.known[m] = plan
	}
	mse := plan.NoiseStd*plan.NoiseStd + plan.RoundingStd*plan.RoundingStd
	v := s.variance(m, mse)
	return choice{method: method, steps: steps, cohort: m, privacy: plan, mse: mse, variance: v, bound: s.bound(method, steps, v)}, nil
}

// variance returns V for a cohort of m and a mean squared error of one coordinate in units of the encoded norm.
func (s *search) variance(m uint64, mse float64) float64 {
	l := s.p.encodedNorm()
	return OracleVariance(s.p.gradientNorm(), m, s.p.Dim, mse*l*l, 0)
}

// gaussianMSE is the accountant's usual plan without its integers: 5% above the noise of the analytic Gaussian
// mechanism with sensitivity 2/m, times the shares of noise that the trust needs more than once.
func (s *search) gaussianMSE(m uint64) float64 {
	var copies float64
	if s.p.Trust.HasReportNoise() {
		copies += 1 / s.p.HonestFraction.Float()
	}
	if s.p.Trust.HasFloors() {
		copies += 2
	}
	sd := 2 / (float64(m) * s.mu)
	return 1.05 * copies * sd * sd
}

func (s *search) bound(method string, steps uint64, variance float64) float64 {
	r := s.p.radius()
	if method == MethodPSGD {
		second := s.p.gradientNorm()*s.p.gradientNorm() + variance
		return PSGDBound(r, second, PSGDStepSize(r, second, steps), steps)
	}
	return PAGDBound(r, variance, PAGDCurvature(r, s.p.Smoothness, variance, 1, steps), steps)
}
