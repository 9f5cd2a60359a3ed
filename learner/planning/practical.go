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

// A sourceOf is the source of noise for vectors of a dimension.
type sourceOf func(dim int) (source, error)

// laidOut makes a practical plan: cohorts for moments, then one phase of few rounds of gradients, as package
// learner/practical lays them out. No bound on its risk is known.
func (p Problem) laidOut() (Proposal, error) {
	out, err := practicalPlan(p, func(dim int) (source, error) {
		p.Dim, p.Validation = dim, nil
		return p.accountedFor()
	})
	if err != nil {
		return Proposal{}, err
	}
	return out, charge(&out, p)
}

// A practicalDraft is an unfinished practical plan.
type practicalDraft struct {
	p         Problem
	how       practical.Problem
	of        sourceOf
	gradients source // of the noise of rounds of gradients
	out       Proposal
}

// A report is the content of the reports of a phase.
type report struct {
	statistic wire.Statistic
	dim       int
	norm      float64
	scores    int // coordinates of dim
}

// practical returns the input of the frame and the steps, in which the problem's own fields take precedence.
func (p Problem) practical() practical.Problem {
	out := *p.Practical
	out.Set, out.Ridge, out.Users, out.Radius = p.Set, p.Ridge, p.Users, p.Radius
	out.Interactive, out.Continuous = p.Interactive, p.Continuous != ""
	switch {
	case p.MaxRounds > 0: // a declared limit takes precedence over the few rounds from a start
		out.Start = nil
	case p.Start != nil:
		out.Start = p.Start
	}
	return out
}

// practicalPlan makes the plan with the noise of a source. It returns the source's errors, or an error that names the
// part for which there are too few users.
func practicalPlan(p Problem, of sourceOf) (Proposal, error) {
	d := practicalDraft{p: p, how: p.practical(), of: of}
	silos := p.Silos.Count > 0
	again := p.Interactive && (silos || p.ByUser)
	if p.FirstCohort > 0 && (again || silos) {
		return Proposal{},
			fmt.Errorf(
				"first cohort: %d, want 0: looks of silos, and of people who answer all rounds, are as large as any round",
				p.FirstCohort)
	}
	var err error
	if d.out, err = p.proposal(schedule.Practical); err != nil {
		return Proposal{}, err
	}
	if d.gradients, err = of(p.encodedDim()); err != nil {
		return Proposal{}, err
	}
	switch {
	case again:
		err = d.stint()
	case silos && p.Continuous != "":
		err = d.siloStream()
	case silos:
		err = d.silos()
	default:
		err = d.users()
	}
	return d.out, err
}

// layOut writes the layout's parameters and its unit into the plan.
func (d *practicalDraft) layOut(l practical.Layout) {
	d.out.ExcessRisk, d.out.TrivialRisk, d.out.Plan.Clips = math.Inf(1), math.Inf(1), true
	d.out.Plan.Practical = manifest.WirePractical(&d.how)
	d.out.Plan.Practical.Unit = l.Unit
}

// looks returns the contents of a layout's looks.
func (d *practicalDraft) looks(l practical.Layout) []report {
	out := []report{{statistic: wire.Statistic_STATISTIC_MOMENTS, dim: d.how.MomentsDim(), norm: d.how.MomentsNorm()}}
	if l.MatrixUsers > 0 {
		out = append(out, report{statistic: wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX, dim: d.how.MatrixDim(), norm: 1})
	}
	return out
}

// gradient returns the content of the rounds after the looks.
func (d *practicalDraft) gradient() report {
	return report{wire.Statistic_STATISTIC_GRADIENT, d.p.encodedDim(), d.p.encodedNorm(), d.p.scores()}
}

// add adds a phase of reports about units units each.
func (d *practicalDraft) add(of report, f *wire.Phase, privacy accounting.Plan, units uint64) error {
	f.Statistic = of.statistic
	cost := Forecast{Privacy: privacy}
	if units > 1 {
		cost.Units = units
	}
	return d.out.add(f, cost, of.dim, of.norm, of.scores)
}

// users makes the plan of users who report for themselves: a cohort for each look, then rounds of gradients.
func (d *practicalDraft) users() error {
	p := d.p
	unit := func(users uint64) float64 {
		return float64(users) * math.Sqrt(d.gradients.model(users, 1).total()) * p.encodedNorm() / p.share()
	}
	layout, err := d.how.Layout(unit(max(1, p.Users/2))), error(nil)
	if p.Continuous != "" {
		if layout, err = d.how.StreamLayout(unit, p.local() || p.Cohort > 0); err != nil {
			return err
		}
		layout.MomentUsers = max(layout.MomentUsers, p.Minimum)
	}
	if p.FirstCohort > 0 {
		layout.MomentUsers = p.FirstCohort
	}
	d.layOut(layout)
	left := p.Users
	for i, look := range d.looks(layout) {
		users := [...]uint64{layout.MomentUsers, layout.MatrixUsers}[i]
		if users >= left || users < p.Minimum || users < 1 {
			return fmt.Errorf("%d users are too few: %d of them for a first look, of %d at least", p.Users, users,
				max(1, p.Minimum))
		}
		left -= users
		from, err := d.of(look.dim)
		if err != nil {
			return err
		}
		_, privacy, err := from.exact(users, 1)
		if err != nil {
			return fmt.Errorf("a cohort of %d for moments: %w", users, err)
		}
		f := &wire.Phase{Users: users, Rounds: 1, Cohort: users, Minimum: p.minimum(users), RoundsPerUser: 1}
		if err := d.add(look, f, privacy, 1); err != nil {
			return err
		}
	}
	var phases []*wire.Phase
	if p.Continuous != "" {
		phases = []*wire.Phase{d.adaptive(layout, left)}
	} else if phases, err = d.rounds(layout.Rounds, left); err != nil {
		return err
	}
	for _, f := range phases {
		_, privacy, err := d.gradients.exact(f.Cohort, uint64(f.RoundsPerUser))
		if err != nil {
			return fmt.Errorf("cohorts of %d: %w", f.Cohort, err)
		}
		if err := d.add(d.gradient(), f, privacy, 1); err != nil {
			return err
		}
	}
	return nil
}

// adaptive returns the phase of gradients of a task without an end. Its one mechanism is planned for the users of the
// largest round, or for more if reports carry noise: reports of the same length then carry less.
func (d *practicalDraft) adaptive(l practical.Layout, left uint64) *wire.Phase {
	p := d.p
	base, top := l.Base, l.Top
	if p.Cohort > 0 {
		base, top = p.Cohort, p.Cohort
	}
	if p.Minimum > 0 {
		base, top = p.Minimum, max(top, p.Minimum)
	}
	if base == top && p.Minimum == 0 { // otherwise a round that lacks one user would never close
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

// rounds spreads the users that the looks left over the rounds of gradients, except a share to spare, in phases with a
// mechanism each. Cohorts grow as the root of the round's number, so that the last gradients, which count most, have
// the least noise. They do not grow if the same users answer all rounds or the task sets the cohort, which takes
// precedence over a share to spare. A minimum or a limit on rounds is kept.
func (d *practicalDraft) rounds(rounds, left uint64) ([]*wire.Phase, error) {
	p := d.p
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
