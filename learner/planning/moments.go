package planning

import (
	"fmt"

	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// checkMoments checks what belongs to the first cohort.
func (p Problem) checkMoments() error {
	if p.Precondition == nil {
		if p.MomentUsers > 0 {
			return fmt.Errorf("moment users: %d without a precondition", p.MomentUsers)
		}
		return nil
	}
	if err := p.Precondition.Validate(); err != nil {
		return err
	}
	n := p.MomentUsers
	switch {
	case n < 1 || n >= p.Users:
		return fmt.Errorf("moment users: %d, want 1 to users - 1 = %d", n, p.Users-1)
	case p.Minimum > n:
		return fmt.Errorf("moment users: %d, want at least the minimum cohort, %d", n, p.Minimum)
	case max(p.Cohort, p.Minimum) > p.Users-n:
		return fmt.Errorf("moment users: %d of %d leave no cohort of %d", n, p.Users, max(p.Cohort, p.Minimum))
	case p.MaxRounds == 1:
		return fmt.Errorf("max rounds: 1, want at least 2 with a round of moments")
	}
	return nil
}

// afterMoments is the problem of the users and rounds that are left for the method.
func (p Problem) afterMoments() Problem {
	if p.Precondition == nil {
		return p
	}
	p.Users -= p.MomentUsers
	if p.MaxRounds > 0 {
		p.MaxRounds--
	}
	p.Precondition, p.MomentUsers = nil, 0
	return p
}

// ofMoments is the problem as the accountant sees it in the first round.
func (p Problem) ofMoments() Problem {
	p.Dim, p.Validation = p.Precondition.Dim, nil
	return p
}

// prepend puts the round of moments before a plan of the rest. The source is one of vectors of the moments' dimension.
func (p *Proposal) prepend(of Problem, from source) error {
	m := of.MomentUsers
	_, privacy, err := from.exact(m, 1)
	if err != nil {
		return fmt.Errorf("%s: a cohort of %d for the second moments: %w", p.Plan.Algorithm, m, err)
	}
	minimum := of.Minimum
	if minimum == 0 {
		minimum = m - m/10
	}
	p.Plan.Preconditioner = manifest.WirePreconditioner(of.Precondition)
	return p.add(0, &wire.Phase{Statistic: wire.Statistic_STATISTIC_SECOND_MOMENTS, Users: m, Rounds: 1, Cohort: m, Minimum: minimum, RoundsPerUser: 1},
		Forecast{Distance: p.Forecasts[0].Distance, Risk: p.TrivialRisk, Privacy: privacy}, of.Precondition.Dim, of.Precondition.Norm, 0)
}
