package planning

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream/wire"
)

// AtMinimum bounds the expected excess risk of a plan of the problem, with its constants, if every round is released
// with its least number of reports, from a random part of those who would answer. ExcessRisk assumes that every report
// comes. AtMinimum returns false for plans without such a bound: practical ones, those without an end, and plans of
// minimisers.
//
// All bounds grow with the variance of a round's estimate, and on the population are affine in it. Under trust local
// that variance is a constant plus another times 1/M_r, where M_r is the number of reports of round r, so that only the
// mean of 1/M_r counts (Lowy, Razaviyayn, ICLR 2023, Section 2).
func (p Problem) AtMinimum(plan Proposal) (risk float64, ok bool) {
	return p.with(plan, func(f *wire.Phase) turnout { return turnout{f.Minimum: 1} })
}

// Present works like AtMinimum, but each report of a round comes with probability share, independently of the others
// and of earlier rounds. A round with fewer reports than its minimum waits for that many.
//
// M_r is then random, and a round's variance is the mean over it: the bounds hold with 1/M the mean of 1/M_r. The
// second result is this M for the first phase.
func (p Problem) Present(plan Proposal, share float64) (risk, reports float64, ok bool) {
	if !(share > 0 && share <= 1) || len(plan.Plan.GetPhases()) == 0 {
		return 0, 0, false
	}
	of := func(f *wire.Phase) turnout { return turnoutOf(f.Minimum, f.Cohort, share) }
	var inverse float64
	for m, chance := range of(plan.Plan.Phases[0]) {
		inverse += chance / float64(m)
	}
	risk, ok = p.with(plan, of)
	return risk, 1 / inverse, ok
}

// A turnout holds the probability of each number of reports of a round.
type turnout map[uint64]float64

// turnoutOf returns the turnout if each of all reports comes with probability share, independently, and the round waits
// for fewest. Numbers of reports with a probability below 1e-18 are counted as fewest, which has the largest variance.
func turnoutOf(fewest, all uint64, share float64) turnout {
	if share == 1 {
		return turnout{all: 1}
	}
	law, out, sum := distuv.Binomial{N: float64(all), P: share}, turnout{}, 0.0
	for m := all; m > fewest; m-- {
		chance := law.Prob(float64(m))
		if chance > 1e-18 {
			out[m] = chance
			sum += chance
		} else if float64(m) < share*float64(all) {
			break
		}
	}
	out[fewest] = max(0, 1-sum)
	return out
}

// with returns the bound of AtMinimum for the given turnout of each phase, with at most the planned reports.
func (p Problem) with(plan Proposal, reports func(*wire.Phase) turnout) (risk float64, ok bool) {
	if p.Practical != nil || p.Continuous != "" || traitsOf(plan.Plan.Algorithm).Minimizers {
		return 0, false
	}
	d, err := newDraft(p, plan.Plan.Algorithm, nil)
	if err != nil {
		return 0, false
	}
	prior, reach := d.trivial, d.distance
	for i, f := range plan.Plan.Phases {
		come, of := reports(f), plan.Forecasts[i]
		fewest, most := slices.Min(slices.Collect(maps.Keys(come))), slices.Max(slices.Collect(maps.Keys(come)))
		if fewest < 1 || most > f.Cohort {
			return 0, false
		}
		s := search{p: p, t: d.t, objective: d.objective, users: p.Users, distance: reach, prior: prior}
		if p.Ridge > 0 {
			s.distance = min(reach, restartDistance(prior, p.Ridge))
		}
		at := s.missing(f, of, fewest) // the worst case, for its units and whether they are drawn
		at.variance, at.rounding = 0, 0
		for _, m := range slices.Sorted(maps.Keys(come)) {
			one := s.missing(f, of, m)
			at.variance += come[m] * one.variance
			at.rounding += come[m] * one.rounding
		}
		risk = d.objective.kept(d.t, at, f)
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
	if !s.p.local() { // those present, or the stage, add noise for the missing, at most the planned noise of all
		n.privacy *= less
	}
	if s.p.Silos.Count > 0 {
		s.p.Silos.Reports = m
	}
	units := m
	if s.t.Interactive && s.p.Silos.Count == 0 {
		units = f.Cohort // the mean loss is over all who would answer; those present are a sample, one unit each
	}
	out := s.situation(units, of.units(), f.Rounds, n)
	if s.t.Interactive && s.p.Silos.Count == 0 && m < f.Cohort {
		out.variance += float64(f.Cohort-m) / float64(f.Cohort-1) * s.objective.lipschitz * s.objective.lipschitz / float64(m)
		out.drawn = true
	}
	return out
}

// kept returns the bound of a phase with its planned constants; +Inf if the bound's proof needs others.
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

// A siloBound is the bound of the method's best plan for a number of silos in a round. Unknown is the bound without
// Silos.Spread, the declared bound on how far silos differ. Both are +Inf if there is no plan.
type siloBound struct {
	Reports        uint64
	Bound, Unknown float64
}

// BySilos returns the method's bounds for M = N, N/2, N/4, ..., 1 of the N silos in a round, and for the problem's own
// M. It is empty unless the trust is local: under other trusts the honest share depends on M.
func (p Problem) BySilos(of Proposal) (out []siloBound) {
	if !p.local() || p.Silos.Count == 0 || p.Practical != nil {
		return nil
	}
	sizes := []uint64{p.Silos.Reports}
	for m := p.Silos.Count; m >= 1; m /= 2 {
		sizes = append(sizes, m)
	}
	slices.Sort(sizes)
	for _, m := range slices.Backward(slices.Compact(sizes)) {
		bound := func(spread float64) float64 {
			q := p
			q.Silos.Reports, q.Silos.Spread = m, spread
			q.Minimum = min(p.Minimum, m)
			plan, err := q.single(of.Plan.Algorithm)
			if err != nil || plan.OnRecords != of.OnRecords {
				return math.Inf(1)
			}
			return plan.ExcessRisk
		}
		out = append(out, siloBound{m, bound(p.Silos.Spread), bound(0)})
	}
	return out
}

// FewerReports searches for a smaller number of silos in a round for which the method's bound is at least a hundredth
// smaller: the mean of fewer reports has more noise, but in one pass each report is about more records. It returns that
// number with its bound, or false if there is none. It searches only under trust local, where a report's guarantee does
// not depend on others.
func (p Problem) FewerReports(of Proposal) (reports uint64, risk float64, ok bool) {
	if !p.local() || p.Silos.Count == 0 || p.Practical != nil {
		return 0, 0, false
	}
	least, worse := of.ExcessRisk, 0
	for m := p.Silos.Reports * 4 / 5; m >= 1 && worse < 2; m = m * 4 / 5 {
		q := p
		q.Silos.Reports, q.Minimum = m, (m+1)/2
		plan, err := q.single(of.Plan.Algorithm)
		if worse++; err == nil && plan.OnRecords == of.OnRecords && plan.ExcessRisk < 0.99*least {
			least, reports, worse = plan.ExcessRisk, m, 0
		}
	}
	return reports, least, reports > 0
}
