package task

import (
	"fmt"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// setDefaults fills in what follows from the silos: reports, least, users, the honest fraction, and under trust local the
// minimum cohort. It needs the trust, and leaves what it cannot compute to Validate.
func (o *Silo) setDefaults(p *Privacy, c *Schedule) {
	if o == nil || o.Count < 1 || o.Units < 1 || o.Count > maxUsers || o.Units > maxUsers/o.Count {
		return
	}
	or(&o.Reports, o.Count)
	or(&c.Users, o.Count*o.Units)
	if p.Trust == accounting.Local {
		or(&o.Least, (2*o.Units+2)/3)
		or(&c.MinimumCohort, max(1, (o.Reports+1)/2))
		return
	}
	or(&o.Least, o.Units)
	if p.Trust != accounting.Pan && o.Reports > 1 {
		if f, err := accounting.ParseFraction(fmt.Sprintf("%d/%d", o.Reports-1, o.Reports)); err == nil {
			or(&p.HonestFraction.Fraction, f)
		}
	}
}

// validate refuses silos that are contradictory or out of range, or that do not go with the trust and the schedule.
func (o *Silo) validate(trust accounting.Trust, c Schedule) error {
	if o == nil {
		return nil
	}
	if o.Count < 1 || o.Count > maxUsers {
		return refuse("silo.count", o.Count, "a whole number from 1 to %d", maxUsers)
	}
	if o.Units < 1 || o.Units > maxUsers/o.Count {
		return refuse("silo.units", o.Units, "a whole number from 1 to %d, so that all silos have at most %d",
			maxUsers/o.Count, maxUsers)
	}
	if o.Reports < 1 || o.Reports > o.Count {
		return refuse("silo.reports", o.Reports, "a whole number from 1 to silo.count (%d)", o.Count)
	}
	if trust != accounting.Local && trust.HasReportNoise() && o.Reports < 2 {
		return refuse("silo.reports", o.Reports,
			"at least 2 under trust %s, where a silo relies on the noise of others; trust local needs nobody's",
			trust)
	}
	switch {
	case trust == accounting.Local && (o.Least < 1 || o.Least > o.Units):
		return refuse("silo.least", o.Least, "a whole number from 1 to silo.units (%d)", o.Units)
	case trust != accounting.Local && o.Least != o.Units:
		return refuse("silo.least", o.Least,
			"silo.units (%d) under trust %s: only under local does a silo make up with noise of its own for units that it lacks",
			o.Units, trust)
	}
	if o.Sample != 0 {
		return refuse("silo.sample", o.Sample, "nothing: not yet, blocks are disjoint or of all that a silo has")
	}
	if o.Spread < 0 {
		return refuse("silo.spread", o.Spread, "a number > 0, or 0 for the clip norm")
	}
	return o.validateSchedule(c)
}

// validateSchedule refuses keys of a schedule that do not go with silos.
func (o *Silo) validateSchedule(c Schedule) error {
	switch {
	case c.Users != o.Count*o.Units:
		return refuse("schedule.users", c.Users, "nothing: %d, silo.count x silo.units", o.Count*o.Units)
	case c.Cohort != 0:
		return refuse("schedule.cohort", c.Cohort, "nothing: silo.reports (%d) are the cohort", o.Reports)
	case c.FirstCohort != 0:
		return refuse("schedule.first_cohort", c.FirstCohort, "nothing: silo.reports (%d) are every cohort", o.Reports)
	case c.MinimumCohort > o.Reports:
		return refuse("schedule.minimum_cohort", c.MinimumCohort,
			"a whole number from 1 to silo.reports (%d), or 0 to have it planned", o.Reports)
	case c.Continuous != "" && !c.practical():
		return refuse("schedule.continuous", c.Continuous,
			"nothing with silo in a proved plan; schedule.plan practical has adaptive")
	}
	return nil
}

// validateLocal refuses what means nothing where every report hides what it is about by itself.
func (p Privacy) validateLocal(many bool) error {
	switch {
	case p.Trust != accounting.Local:
		return nil
	case p.HonestFraction.Fraction != accounting.One:
		return refuse("privacy.honest_fraction", p.HonestFraction,
			"1 under trust local: nobody's noise but the report's own is relied upon")
	case p.Coin != accounting.CoinFair:
		return refuse("privacy.coin", p.Coin,
			"fair under trust local: reports of silos with noise of different size are centred alike")
	case p.Profile != accounting.Numeric && !many:
		return refuse("privacy.profile", p.Profile,
			"numeric under trust local without silo and schedule.interactive: the paper's constants are of trust shuffle")
	}
	return nil
}
