package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// practicalSilos makes the practical plan of silos in one pass: all rounds, looks too, are of blocks of one size, so that a block is a fixed range
// of a silo's rows whatever round it joins.
func (p Problem) practicalSilos(how practical.Problem, of sourceOf) (Proposal, error) {
	switch {
	case p.Interactive:
		return Proposal{}, fmt.Errorf("not yet: a practical plan for silos who answer all rounds; plan: proved has one")
	case p.FirstCohort > 0:
		return Proposal{}, fmt.Errorf("first cohort: %d, want 0: the looks of silos are as large as any round", p.FirstCohort)
	}
	out, err := p.proposal(schedule.Practical)
	if err != nil {
		return Proposal{}, err
	}
	gradients, err := of(p.encodedDim())
	if err != nil {
		return Proposal{}, err
	}
	s := p.Silos
	how.Even, how.Users = true, p.Users
	// As if the silos of one round had the units of all.
	all := gradients.about(max(1, p.Users/s.Reports)).model(s.Reports, 1)
	layout := how.Layout(float64(p.Users) * math.Sqrt(all.total()) * p.encodedNorm() / p.share())
	if p.MaxRounds > 0 {
		layout.Rounds = min(layout.Rounds, p.MaxRounds)
	}
	looks := uint64(1)
	if layout.MatrixUsers > 0 {
		looks = 2
	}
	units := s.Blocks(looks + layout.Rounds)
	for units == 0 && layout.Rounds > 1 {
		layout.Rounds--
		units = s.Blocks(looks + layout.Rounds)
	}
	if units == 0 {
		return Proposal{}, fmt.Errorf("silos of %d units, %d of %d in a round: too few for a look and a round of gradients", s.Units, s.Reports, s.Count)
	}
	out.ExcessRisk, out.TrivialRisk, out.Plan.Clips, out.Plan.Practical = math.Inf(1), math.Inf(1), true, manifest.WirePractical(&how)
	out.Plan.Practical.Unit = layout.Unit
	phase := func(statistic wire.Statistic, rounds uint64, dim int, norm float64, scores int) error {
		from, err := of(dim)
		if err != nil {
			return err
		}
		_, privacy, err := from.about(units).exact(s.Reports, 1)
		if err != nil {
			return fmt.Errorf("rounds of %d silos: %w", s.Reports, err)
		}
		f := Forecast{Privacy: privacy}
		if units > 1 {
			f.Units = units
		}
		return out.add(len(out.Forecasts), &wire.Phase{Statistic: statistic, Users: rounds * s.Reports, Rounds: rounds, Cohort: s.Reports,
			Minimum: p.minimum(s.Reports), RoundsPerUser: 1}, f, dim, norm, scores)
	}
	if err := phase(wire.Statistic_STATISTIC_MOMENTS, 1, how.MomentsDim(), how.MomentsNorm(), 0); err != nil {
		return Proposal{}, err
	}
	if layout.MatrixUsers > 0 {
		if err := phase(wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX, 1, how.MatrixDim(), 1, 0); err != nil {
			return Proposal{}, err
		}
	}
	return out, phase(wire.Statistic_STATISTIC_GRADIENT, layout.Rounds, p.encodedDim(), p.encodedNorm(), p.scores())
}
