package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A sourceOf is the source of noise for vectors of a dimension.
type sourceOf func(dim int) (source, error)

// practical makes a practical plan: cohorts for moments, then one phase of few rounds of gradients, as package learner/practical lays
// them out. No bound on its risk is known.
func (pl *Planner) practical(p Problem) (Proposal, error) {
	return practicalPlan(p, func(dim int) (source, error) {
		p.Dim, p.Validation = dim, nil
		return pl.accountedFor(p)
	})
}

// practicalPlan makes the plan with the noise of a source. The errors are the source's, or say what does not fit into the users.
func practicalPlan(p Problem, of sourceOf) (Proposal, error) {
	how := *p.Practical
	out := Proposal{ExcessRisk: math.Inf(1), TrivialRisk: math.Inf(1), Plan: &wire.Plan{Algorithm: schedule.Practical, Continuous: continuous[p.Continuous],
		HonestFraction: p.HonestFraction.String(), Delta: p.Delta, EpsilonBudget: p.Epsilon, ClipNorm: p.ClipNorm, Clips: true, Ridge: p.Ridge,
		Set: manifest.WireSet(p.Set), Scorecard: manifest.WireScorecard(p.Validation), Practical: manifest.WirePractical(&how), Start: p.Start, StartHash: p.StartHash}}
	var err error
	if out.Plan.Trust, err = manifest.WireTrust(p.Trust); err != nil {
		return Proposal{}, err
	}
	gradients, err := of(p.encodedDim())
	if err != nil {
		return Proposal{}, err
	}
	half := max(1, p.Users/2)
	layout := how.Layout(float64(half) * math.Sqrt(gradients.model(half, 1).total()) * p.encodedNorm())
	if p.FirstCohort > 0 {
		layout.MomentUsers = p.FirstCohort
	}
	out.Plan.Practical.Unit = layout.Unit
	left := p.Users
	look := func(statistic wire.Statistic, users uint64, dim int, norm float64) error {
		if users >= left || users < p.Minimum || users < 1 {
			return fmt.Errorf("%d users are too few: %d of them for a first look, of %d at least", p.Users, users, max(1, p.Minimum))
		}
		left -= users
		from, err := of(dim)
		if err != nil {
			return err
		}
		_, privacy, err := from.exact(users, 1)
		if err != nil {
			return fmt.Errorf("a cohort of %d for moments: %w", users, err)
		}
		return out.add(len(out.Forecasts), &wire.Phase{Statistic: statistic, Users: users, Rounds: 1, Cohort: users, Minimum: p.minimum(users), RoundsPerUser: 1},
			Forecast{Privacy: privacy}, dim, norm, 0)
	}
	if err := look(wire.Statistic_STATISTIC_MOMENTS, layout.MomentUsers, how.MomentsDim(), how.MomentsNorm()); err != nil {
		return Proposal{}, err
	}
	if layout.MatrixUsers > 0 {
		if err := look(wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX, layout.MatrixUsers, how.MatrixDim(), 1); err != nil {
			return Proposal{}, err
		}
	}
	f, err := p.practicalRounds(layout.Rounds, left)
	if err != nil {
		return Proposal{}, err
	}
	_, privacy, err := gradients.exact(f.Cohort, uint64(f.RoundsPerUser))
	if err != nil {
		return Proposal{}, fmt.Errorf("cohorts of %d: %w", f.Cohort, err)
	}
	return out, out.add(len(out.Forecasts), f, Forecast{Privacy: privacy}, p.encodedDim(), p.encodedNorm(), p.scores())
}

// practicalRounds spreads users over the rounds of gradients; a cohort, a minimum or a limit on rounds that the task sets is kept.
func (p Problem) practicalRounds(rounds, users uint64) (*wire.Phase, error) {
	if p.MaxRounds > 0 {
		rounds = min(rounds, p.MaxRounds)
	}
	if p.Minimum > 0 && !p.Interactive {
		rounds = min(rounds, users/p.Minimum)
	}
	if p.Cohort > 0 {
		rounds = users / p.Cohort
	}
	rounds = min(rounds, users)
	if rounds < 1 {
		return nil, fmt.Errorf("%d users after the first look do not fill a cohort of %d", users, max(p.Cohort, p.Minimum))
	}
	if p.Interactive {
		return &wire.Phase{Users: users, Rounds: rounds, Cohort: users, Minimum: p.minimum(users), RoundsPerUser: uint32(rounds)}, nil
	}
	cohort := users / rounds
	if p.Cohort > 0 {
		cohort = p.Cohort
	}
	f := &wire.Phase{Users: users, Rounds: rounds, Cohort: cohort, Minimum: p.minimum(cohort), RoundsPerUser: 1}
	if p.Continuous != "" {
		f.Users = rounds * cohort
	}
	return f, nil
}

// minimum is the smallest cohort that is released of one that is planned.
func (p Problem) minimum(cohort uint64) uint64 {
	if p.Minimum > 0 {
		return p.Minimum
	}
	return cohort - cohort/10
}
