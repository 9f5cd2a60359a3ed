package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// siloStream makes the plan of silos whose rows never stop coming: a first look, and rounds of gradients for ever, all
// of blocks of one size, so that a block is a fixed range of a silo's rows whatever round it joins. Cohorts are the
// silos of a round: the size of blocks, which is in the mechanism, cannot follow the stream.
func (p Problem) siloStream(how practical.Problem, of sourceOf) (Proposal, error) {
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
	unit := func(units uint64) float64 {
		return float64(s.Reports*units) * math.Sqrt(gradients.about(units).model(s.Reports,
			1).total()) * p.encodedNorm() / p.share()
	}
	layout, err := how.SiloLayout(unit, s.Reports, s.Blocks)
	if err != nil {
		return Proposal{}, err
	}
	out.ExcessRisk, out.TrivialRisk, out.Plan.Clips, out.Plan.Practical = math.Inf(1), math.Inf(1), true,
		manifest.WirePractical(&how)
	out.Plan.Practical.Unit = layout.Unit
	minimum := p.minimum(s.Reports)
	phase := func(f *wire.Phase, dim int, norm float64, scores int) error {
		from, err := of(dim)
		if err != nil {
			return err
		}
		_, privacy, err := from.about(layout.Units).exact(s.Reports, 1)
		if err != nil {
			return fmt.Errorf("rounds of %d silos: %w", s.Reports, err)
		}
		f.Rounds, f.Cohort, f.Minimum, f.RoundsPerUser = 1, s.Reports, minimum, 1
		return out.add(len(out.Forecasts), f, forecast(privacy, layout.Units), dim, norm, scores)
	}
	look := &wire.Phase{Statistic: wire.Statistic_STATISTIC_MOMENTS, Users: s.Reports}
	if err := phase(look, how.MomentsDim(), how.MomentsNorm(), 0); err != nil {
		return Proposal{}, err
	}
	return out, phase(&wire.Phase{Users: layout.Rounds * s.Reports, Top: s.Reports}, p.encodedDim(), p.encodedNorm(),
		p.scores())
}
