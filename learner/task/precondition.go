package task

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// estimated reports whether a first cohort estimates the second moments.
func (f *Features) estimated() bool { return f.Precondition != nil && f.Precondition.Users > 0 }

// checkEstimated checks what belongs to moments that are estimated, alone.
func (f *Features) checkEstimated() error {
	p, most := f.Precondition, f.momentBound()
	switch {
	case len(p.SecondMoments) > 0:
		return refuse("features.precondition.second_moments", p.SecondMoments, "nothing together with features.precondition.users")
	case !(most <= maxScale):
		return refuse("features.precondition.users", p.Users, "bounds of values whose squares have a norm of at most %g, not %g: scale them", float64(maxScale), most)
	case p.Norm < 0 || p.Norm > most:
		return refuse("features.precondition.norm", p.Norm, "a number > 0 and at most %v, the largest that the declared bounds allow, or 0 for that", most)
	}
	return nil
}

// checkEstimation checks the cohort of an estimate against the schedule.
func (s *Spec) checkEstimation() error {
	if !s.Features.estimated() {
		return nil
	}
	n, c := s.Features.Precondition.Users, s.Schedule
	const path = "features.precondition.users"
	switch {
	case n >= c.Users:
		return refuse(path, n, "fewer than schedule.users (%d)", c.Users)
	case c.MinimumCohort > n:
		return refuse(path, n, "at least schedule.minimum_cohort (%d)", c.MinimumCohort)
	case max(c.Cohort, c.MinimumCohort) > c.Users-n:
		return refuse(path, n, "fewer, so that a cohort of %d is left", max(c.Cohort, c.MinimumCohort))
	case c.Rounds.Max == 1:
		return refuse("schedule.rounds.max", c.Rounds.Max, "at least 2 with %s, whose cohort takes the first one", path)
	}
	return nil
}

// Preconditioner is how a first cohort's second moments become scales; nil where the declaration does not ask for it.
func (s *Spec) Preconditioner() *convex.Preconditioner {
	if !s.Features.estimated() {
		return nil
	}
	p := s.Features.Precondition
	out := &convex.Preconditioner{Dim: s.Features.width(), Norm: p.Norm, Damping: p.Damping, Bound: s.NormBound}
	if out.Norm == 0 {
		out.Norm = s.Features.momentBound()
	}
	if out.Bound == 0 {
		out.Bound = s.declaredBound()
	}
	return out
}

// Scaled returns the declaration that a model of estimated scales is for: the same, with the scales as if they had been public
// from the start. nil stands for scales of 1, which is before the estimate. A declaration without an estimate it returns as it is. As
// with ReadAs, the canonical form is that of another declaration.
func (s *Spec) Scaled(scales []float64) (*Spec, error) {
	if !s.Features.estimated() {
		return s, nil
	}
	out := *s
	if out.Features.Precondition = nil; scales == nil {
		scales = slices.Repeat([]float64{1}, s.Features.width())
	}
	out.Features.Scales = slices.Clone(scales)
	out.NormBound = s.Preconditioner().Bound
	if out.Features.checkScales() == nil { // Validate says what is wrong
		if most := out.declaredBound(); out.NormBound >= most || math.IsInf(most, 0) {
			out.NormBound = 0 // it bounds nothing more than the declaration does
		}
	}
	if err := out.Validate(); err != nil {
		return nil, err
	}
	return &out, nil
}
