package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A look is a round of moments.
type look struct {
	statistic wire.Statistic
	dim       int
	norm      float64
}

// looksOf returns the looks of a layout.
func looksOf(how practical.Problem, l practical.Layout) []look {
	out := []look{{wire.Statistic_STATISTIC_MOMENTS, how.MomentsDim(), how.MomentsNorm()}}
	if l.MatrixUsers > 0 {
		out = append(out, look{wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX, how.MatrixDim(), 1})
	}
	return out
}

// evenLayout returns the layout of even rounds, and the plan without phases. everybody is the source of the
// noise of one round of gradients in which everybody answers, once.
func (p Problem) evenLayout(how *practical.Problem, everybody source, reports uint64) (practical.Layout, Proposal,
	error) {
	out, err := p.proposal(schedule.Practical)
	if err != nil {
		return practical.Layout{}, Proposal{}, err
	}
	how.Even, how.Users, how.Interactive = true, p.Users, p.Interactive
	layout := how.Layout(float64(p.Users) * math.Sqrt(everybody.model(reports, 1).total()) * p.encodedNorm() / p.share())
	if p.MaxRounds > 0 {
		layout.Rounds = min(layout.Rounds, p.MaxRounds)
	}
	out.ExcessRisk, out.TrivialRisk, out.Plan.Clips, out.Plan.Practical = math.Inf(1), math.Inf(1), true,
		manifest.WirePractical(how)
	out.Plan.Practical.Unit = layout.Unit
	return layout, out, nil
}

// practicalSilos makes the practical plan of silos in one pass: all rounds, looks too, are of blocks of one size, so
// that a block is a fixed range of a silo's rows whatever round it joins.
func (p Problem) practicalSilos(how practical.Problem, of sourceOf) (Proposal, error) {
	gradients, err := of(p.encodedDim())
	if err != nil {
		return Proposal{}, err
	}
	s := p.Silos
	// As if the silos of one round had the units of all.
	layout, out, err := p.evenLayout(&how, gradients.about(max(1, p.Users/s.Reports)), s.Reports)
	if err != nil {
		return Proposal{}, err
	}
	looks := looksOf(how, layout)
	units := s.Blocks(uint64(len(looks)) + layout.Rounds)
	for units == 0 && layout.Rounds > 1 {
		layout.Rounds--
		units = s.Blocks(uint64(len(looks)) + layout.Rounds)
	}
	if units == 0 {
		return Proposal{},
			fmt.Errorf(
				"silos of %d units, %d of %d in a round: too few for a look and a round of gradients in one pass: give larger silos, or let them answer all rounds (interactive)", s.Units, s.Reports, s.Count)
	}
	phase := func(statistic wire.Statistic, rounds uint64, dim int, norm float64, scores int) error {
		from, err := of(dim)
		if err != nil {
			return err
		}
		_, privacy, err := from.about(units).exact(s.Reports, 1)
		if err != nil {
			return fmt.Errorf("rounds of %d silos: %w", s.Reports, err)
		}
		return out.add(len(out.Forecasts), &wire.Phase{Statistic: statistic, Users: rounds * s.Reports, Rounds: rounds,
			Cohort:  s.Reports,
			Minimum: p.minimum(s.Reports), RoundsPerUser: 1}, forecast(privacy, units), dim, norm, scores)
	}
	for _, l := range looks {
		if err := phase(l.statistic, 1, l.dim, l.norm, 0); err != nil {
			return Proposal{}, err
		}
	}
	return out, phase(wire.Statistic_STATISTIC_GRADIENT, layout.Rounds, p.encodedDim(), p.encodedNorm(), p.scores())
}

// practicalStint makes the practical plan of silos, or people, who answer all rounds, looks too: of silos with all
// their units. All rounds have the mechanism of the longest reports, with which as many reports of that length as there
// are rounds meet the target together.
func (p Problem) practicalStint(how practical.Problem, of sourceOf) (Proposal, error) {
	spare := min(spareOf(p.Users), p.Users-1)
	users, cohort, units := p.Users-spare, p.Users-spare, uint64(1)
	if s := p.Silos; s.Count > 0 {
		users, cohort, units = s.Count, s.Reports, s.Units
	} else if p.Cohort > 0 {
		return Proposal{}, fmt.Errorf("cohort: %d, want 0: all %d people answer all rounds", p.Cohort, p.Users)
	}
	gradients, err := of(p.encodedDim())
	if err != nil {
		return Proposal{}, err
	}
	layout, out, err := p.evenLayout(&how, gradients.about(units), cohort)
	if err != nil {
		return Proposal{}, err
	}
	looks, longest := looksOf(how, layout), p.encodedDim()
	for _, l := range looks {
		longest = max(longest, l.dim)
	}
	from, err := of(longest)
	if err != nil {
		return Proposal{}, err
	}
	if layout.Rounds == 1 && cohort < users { // one round of a phase takes all of its users that are left
		return Proposal{}, fmt.Errorf("rounds: 1 of gradients of %d of %d silos, want at least 2", cohort, users)
	}
	rounds := uint64(len(looks)) + layout.Rounds
	_, privacy, err := from.about(units).exact(cohort, rounds)
	if err != nil {
		return Proposal{}, fmt.Errorf("%d rounds of %d reports: %w", rounds, cohort, err)
	}
	phase := func(statistic wire.Statistic, rounds uint64, dim int, norm float64, scores int) error {
		return out.add(len(out.Forecasts), &wire.Phase{Statistic: statistic, Users: users, Rounds: rounds, Cohort: cohort,
			Minimum:       p.minimum(cohort),
			RoundsPerUser: uint32(rounds), Again: len(out.Forecasts) > 0}, forecast(privacy, units), dim, norm, scores)
	}
	for _, l := range looks {
		if err := phase(l.statistic, 1, l.dim, l.norm, 0); err != nil {
			return Proposal{}, err
		}
	}
	return out, phase(wire.Statistic_STATISTIC_GRADIENT, layout.Rounds, p.encodedDim(), p.encodedNorm(), p.scores())
}

// forecast returns the forecast of a phase of a practical plan: its privacy, and its units where a report is
// about several.
func forecast(privacy accounting.Plan, units uint64) Forecast {
	f := Forecast{Privacy: privacy}
	if units > 1 {
		f.Units = units
	}
	return f
}
