package planning

import "github.com/panlearn/panlearn/randomizer/accounting"

// noise is the mean squared error of one coordinate of a round's mean that privacy causes, in units of the squared
// encoded norm.
type noise struct {
	privacy  float64 // the noise itself
	rounding float64 // stochastic rounding
}

func (n noise) total() float64 { return n.privacy + n.rounding }

// A source computes the noise of a round of m users, each of whom answers rounds rounds.
type source interface {
	// model returns an approximation that is smooth in m and fast.
	model(m, rounds uint64) noise
	// exact returns the noise and the calibration of the actual mechanism. It may take a second.
	exact(m, rounds uint64) (noise, accounting.Plan, error)
	// about returns the source for reports about that many units each.
	about(units uint64) source
}

// accounted is the noise of the randomizer, as the accountant calibrates it.
type accounted struct {
	problem Problem
	mu      float64 // analytic Gaussian multiplier of the target
}

// model returns the accountant's usual plan without its integers: 5% above the noise of the analytic Gaussian mechanism
// with sensitivity 2/(m K), times the number of copies of the noise that the trust requires. Rounds of the same users
// divide mu^2 among them. Rounding is about the 5%.
func (a accounted) model(m, rounds uint64) noise {
	var copies float64
	if a.problem.local() {
		copies = float64(m) // each report relies on its own noise alone
	} else if a.problem.Trust.HasReportNoise() {
		copies += 1 / a.problem.HonestFraction.Float()
	}
	if a.problem.Trust.HasFloors() {
		copies += 2
	}
	sd := 2 / (float64(m) * float64(max(1, a.problem.Units)) * a.mu)
	one := copies * sd * sd * float64(rounds)
	return noise{privacy: one, rounding: 0.05 * one}
}

func (a accounted) exact(m, rounds uint64) (noise, accounting.Plan, error) {
	plan, err := accounting.Calibrate(a.problem.request(m, rounds))
	return noise{privacy: plan.NoiseStd * plan.NoiseStd, rounding: plan.RoundingStd * plan.RoundingStd}, plan, err
}

func (a accounted) about(units uint64) source {
	a.problem = a.problem.about(units)
	return a
}

// scaled treats a source's model with a corrected level as exact.
type scaled struct {
	source
	factor float64
}

func (s scaled) model(m, rounds uint64) noise {
	n := s.source.model(m, rounds)
	return noise{privacy: s.factor * n.privacy, rounding: s.factor * n.rounding}
}

func (s scaled) exact(m, rounds uint64) (noise, accounting.Plan, error) {
	return s.model(m, rounds), accounting.Plan{}, nil
}

func (s scaled) about(units uint64) source {
	return scaled{source: s.source.about(units), factor: s.factor}
}
