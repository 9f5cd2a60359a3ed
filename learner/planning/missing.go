package planning

import (
	"math"

	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream/wire"
)

// AtMinimum bounds the expected excess risk of a plan of the problem, with its constants, where every round is released
// with the fewest reports that it may be released with, of a random part of those who would answer: ExcessRisk is for
// rounds in which every report comes. It returns false for plans without such a bound: practical ones, those without an
// end, and those of minimisers.
//
// All bounds grow with the variance of a round's estimate, and on the population are affine in it. Where a report hides by
// itself that variance is one number plus another times 1/M_r, M_r the reports of round r, so that only the mean of 1/M_r
// counts (Lowy, Razaviyayn, ICLR 2023, Section 2): what comes in between is in between.
func (p Problem) AtMinimum(plan Proposal) (risk float64, ok bool) {
	return p.with(plan, func(f *wire.Phase) uint64 { return f.Minimum })
}

// with is AtMinimum for any number of reports in each round of a phase, at most the planned ones.
func (p Problem) with(plan Proposal, reports func(*wire.Phase) uint64) (risk float64, ok bool) {
	if p.Practical != nil || p.Continuous != "" || traitsOf(plan.Plan.Algorithm).Minimizers {
		return 0, false
	}
	d, err := newDraft(p, plan.Plan.Algorithm, nil)
	if err != nil {
		return 0, false
	}
	prior, reach := d.trivial, d.distance
	for i, f := range plan.Plan.Phases {
		m, of := reports(f), plan.Forecasts[i]
		if m < 1 || m > f.Cohort {
			return 0, false
		}
		s := search{p: p, t: d.t, objective: d.objective, users: p.Users, distance: reach, prior: prior}
		if p.Ridge > 0 {
			s.distance = min(reach, restartDistance(prior, p.Ridge))
		}
		risk = d.objective.kept(d.t, s.missing(f, of, m), f)
		prior, reach = risk, 2*d.objective.radius
	}
	out := Proposal{}
	d.conclude(&out, risk)
	return out.ExcessRisk, !math.IsNaN(out.ExcessRisk)
}

// missing returns the situation of a phase in whose rounds m reports come.
func (s *search) missing(f *wire.Phase, of Forecast, m uint64) situation {
	less := float64(f.Cohort) / float64(m)
	n := noise{privacy: of.Privacy.NoiseStd * of.Privacy.NoiseStd * less, rounding: of.Privacy.RoundingStd *
		of.Privacy.RoundingStd * less}
	if !s.p.local() { // who comes, or the stage, adds noise for those who do not: no more than was planned for all
		n.privacy *= less
	}
	if s.p.Silos.Count > 0 {
		s.p.Silos.Reports = m
	}
	units := m
	if s.t.Interactive && s.p.Silos.Count == 0 {
		units = f.Cohort // the mean loss is of all who answer; those who are there are drawn, one unit each
	}
	out := s.situation(units, of.units(), f.Rounds, n)
	if s.t.Interactive && s.p.Silos.Count == 0 && m < f.Cohort {
		out.variance += float64(f.Cohort-m) / float64(f.Cohort-1) * s.objective.lipschitz * s.objective.lipschitz / float64(m)
		out.drawn = true
	}
	return out
}

// kept returns the bound of a phase with the constants that it has; +Inf where the bound's proof wants others.
func (o objective) kept(t schedule.Method, s situation, f *wire.Phase) (risk float64) {
	defer func() {
		if f.Smoothing > 0 {
			risk += envelopeGap(o.lipschitz, f.Smoothing)
		}
	}()
	l := o.regularLipschitz()
	if a := f.GetAcceleration(); a != nil {
		risk = PAGDBound(s.distance, s.variance, a.V, a.Smoothness, a.Mu, s.steps)
		if t.OnRecords() && s.smoothness(o) < o.smoothness {
			risk += 2 * unlikely * l * o.radius
		}
		return risk
	}
	eta, mu := f.GetDescent().GetStepSize(), f.GetDescent().GetMu()
	if t.Interactive {
		smoothing := f.Smoothing
		if smoothing == 0 {
			smoothing = math.Inf(1)
		}
		beta := o.envelopeSmoothness(smoothing)
		if of := s.smoothness(o); of < beta && !s.drawn {
			beta, risk = of, 4*unlikely*l*o.radius
		}
		b := gradientBound{situation: s, loss: o.lipschitz, whole: l, beta: beta + o.ridge, ridge: o.ridge}
		if mu > 0 {
			return risk + b.weighted(eta)
		}
		return risk + b.risk(eta)
	}
	if mu > 0 {
		return weightedBound(s.distance, l*l+s.variance, eta, mu, s.steps)
	}
	return PSGDBound(s.distance, l*l+s.variance, eta, s.steps)
}

// FewerReports looks for a number of silos of a round, below the problem's, with which the method's bound is at least a
// hundredth smaller: noise of a mean of fewer reports is larger, and in one pass each is about more records. It returns
// that number with its bound, or false where there is none. Trust local alone is looked at, where a report's guarantee
// rests on no other.
func (pl *Planner) FewerReports(p Problem, of Proposal) (reports uint64, risk float64, ok bool) {
	if !p.local() || p.Silos.Count == 0 || p.Practical != nil {
		return 0, 0, false
	}
	least, worse := of.ExcessRisk, 0
	for m := p.Silos.Reports * 4 / 5; m >= 1 && worse < 2; m = m * 4 / 5 {
		q := p
		q.Silos.Reports, q.Minimum = m, (m+1)/2
		plan, err := pl.single(q, of.Plan.Algorithm)
		if worse++; err == nil && plan.OnRecords == of.OnRecords && plan.ExcessRisk < 0.99*least {
			least, reports, worse = plan.ExcessRisk, m, 0
		}
	}
	return reports, least, reports > 0
}
