package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A sourceOf is the source of noise for vectors of a dimension.
type sourceOf func(dim int) (source, error)

// practical makes a practical plan: cohorts for moments, then one phase of few rounds of gradients, as package
// learner/practical lays them out. No bound on its risk is known.
func (pl *Planner) practical(p Problem) (Proposal, error) {
	out, err := practicalPlan(p, func(dim int) (source, error) {
		p.Dim, p.Validation = dim, nil
		return pl.accountedFor(p)
	})
	if err != nil {
		return Proposal{}, err
	}
	return out, pl.charge(&out, p)
}

// practicalPlan makes the plan with the noise of a source. The errors are the source's, or tell which part does
// not fit into the users.
func practicalPlan(p Problem, of sourceOf) (Proposal, error) {
	how := *p.Practical
	if how.Radius = p.Radius; p.MaxRounds > 0 { // which is declared, and comes before the few rounds from a start
		how.Start = nil
	}
	if many := p.Interactive && (p.Silos.Count > 0 || p.ByUser); p.FirstCohort > 0 && (many || p.Silos.Count > 0) {
		return Proposal{},
			fmt.Errorf(
				"first cohort: %d, want 0: looks of silos, and of people who answer all rounds, are as large as any round",
				p.FirstCohort)
	} else if many {
		return p.practicalStint(how, of)
	} else if p.Silos.Count > 0 && p.Continuous != "" {
		return p.siloStream(how, of)
	} else if p.Silos.Count > 0 {
		return p.practicalSilos(how, of)
	}
	out, err := p.proposal(schedule.Practical)
	if err != nil {
		return Proposal{}, err
	}
	out.ExcessRisk, out.TrivialRisk, out.Plan.Clips, out.Plan.Practical = math.Inf(1), math.Inf(1), true,
		manifest.WirePractical(&how)
	gradients, err := of(p.encodedDim())
	if err != nil {
		return Proposal{}, err
	}
	unit := func(users uint64) float64 {
		return float64(users) * math.Sqrt(gradients.model(users, 1).total()) * p.encodedNorm() / p.share()
	}
	layout := how.Layout(unit(max(1, p.Users/2)))
	if p.Continuous != "" {
		if layout, err = how.StreamLayout(unit, p.local() || p.Cohort > 0); err != nil {
			return Proposal{}, err
		}
		layout.MomentUsers = max(layout.MomentUsers, p.Minimum)
	}
	if p.FirstCohort > 0 {
		layout.MomentUsers = p.FirstCohort
	}
	out.Plan.Practical.Unit = layout.Unit
	left := p.Users
	look := func(statistic wire.Statistic, users uint64, dim int, norm float64) error {
		if users >= left || users < p.Minimum || users < 1 {
			return fmt.Errorf("%d users are too few: %d of them for a first look, of %d at least", p.Users, users,
				max(1, p.Minimum))
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
		return out.add(len(out.Forecasts), &wire.Phase{Statistic: statistic, Users: users, Rounds: 1, Cohort: users,
			Minimum: p.minimum(users), RoundsPerUser: 1},
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
	var phases []*wire.Phase
	if p.Continuous != "" {
		phases = []*wire.Phase{p.adaptive(layout, left)}
	} else if phases, err = p.practicalRounds(layout.Rounds, left); err != nil {
		return Proposal{}, err
	}
	for _, f := range phases {
		_, privacy, err := gradients.exact(f.Cohort, uint64(f.RoundsPerUser))
		if err != nil {
			return Proposal{}, fmt.Errorf("cohorts of %d: %w", f.Cohort, err)
		}
		if err := out.add(len(out.Forecasts), f, Forecast{Privacy: privacy}, p.encodedDim(), p.encodedNorm(),
			p.scores()); err != nil {
			return Proposal{}, err
		}
	}
	return out, nil
}

// adaptive returns the phase of gradients of a task without an end. Its one mechanism is planned for as many
// users as the largest round has, or for more where reports carry noise: they are as long, and carry less of
// it.
func (p Problem) adaptive(l practical.Layout, left uint64) *wire.Phase {
	base, top := l.Base, l.Top
	if p.Cohort > 0 {
		base, top = p.Cohort, p.Cohort
	}
	if p.Minimum > 0 {
		base, top = p.Minimum, max(top, p.Minimum)
	}
	if base == top && p.Minimum == 0 { // else a round that lacks one user would wait for ever
		base = p.minimum(top)
	}
	planned := top
	if p.Trust.HasReportNoise() && !p.local() {
		planned = max(top, noisyCohort)
	}
	return &wire.Phase{Users: left, Rounds: 1, Cohort: planned, Minimum: base, Top: top, RoundsPerUser: 1}
}

// noisyCohort is the least number of users that the noise of adaptive rounds is planned for. The stage adds the noise
// of missing users.
const noisyCohort = 4_000

// practicalRounds spreads the users that the looks left over the rounds of gradients, except a share to spare,
// in phases with a mechanism each. Cohorts grow as the root of the round's number, so that the last gradients,
// which count most, have the least noise. They do not grow where the same users answer all rounds, or where the
// task sets the cohort, which comes before a share to spare. A minimum or a limit on rounds is kept.
func (p Problem) practicalRounds(rounds, left uint64) ([]*wire.Phase, error) {
	if p.MaxRounds > 0 {
		rounds = min(rounds, p.MaxRounds)
	}
	if p.Minimum > 0 && !p.Interactive {
		rounds = min(rounds, left/p.Minimum)
	}
	if p.Cohort > 0 {
		rounds = left / p.Cohort
	}
	rounds = min(rounds, left)
	if rounds < 1 {
		return nil, fmt.Errorf("%d users after the first look do not fill a cohort of %d", left, max(p.Cohort, p.Minimum))
	}
	spare := min(spareOf(p.Users), left-min(left, max(1, p.Minimum, rounds*p.Cohort)))
	users := left - spare
	if p.Interactive {
		return []*wire.Phase{{Users: users, Rounds: rounds, Cohort: users, Minimum: p.minimum(users),
			RoundsPerUser: uint32(rounds)}}, nil
	}
	if p.Cohort > 0 {
		return []*wire.Phase{{Users: users, Rounds: rounds, Cohort: p.Cohort, Minimum: p.minimum(p.Cohort),
			RoundsPerUser: 1}}, nil
	}
	var weight float64
	for t := range rounds {
		weight += math.Sqrt(float64(t + 1))
	}
	share := float64(left) / weight
	for share < float64(max(p.Minimum, 1)) && rounds > 1 { // the first cohort is the smallest
		weight -= math.Sqrt(float64(rounds))
		rounds--
		share = float64(left) / weight
	}
	cohorts := make([]uint64, rounds)
	for t := range cohorts {
		cohorts[t] = uint64(share * math.Sqrt(float64(t+1)))
		if t == len(cohorts)-1 {
			cohorts[t] = left
		}
		left -= cohorts[t]
	}
	takeOff(cohorts, spare)
	out := make([]*wire.Phase, rounds)
	for t, m := range cohorts {
		out[t] = &wire.Phase{Users: m, Rounds: 1, Cohort: m, Minimum: p.minimum(m), RoundsPerUser: 1}
	}
	return out, nil
}

// minimum returns the smallest cohort that is released of one that is planned.
func (p Problem) minimum(cohort uint64) uint64 {
	if p.Minimum > 0 {
		return p.Minimum
	}
	return cohort - cohort/10
}
