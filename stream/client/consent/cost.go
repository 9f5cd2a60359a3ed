package consent

import (
	"fmt"
	"slices"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/ledger"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Cost is what one participation in the task costs, by the device's own accounting.
func (a *Agreement) Cost(now time.Time) ledger.Charge {
	c := ledger.Charge{Task: a.Hash, Name: stream.Task(a.Task.Name), Epsilon: a.Guarantee.Epsilon, Delta: a.Delta, At: now}
	for _, f := range a.Phases {
		c.Most = max(c.Most, f.Rounds)
	}
	return c
}

// AffordTotal says whether the totals of the policy allow a task's charge beside those of other tasks in the period.
func (p Policy) AffordTotal(charges []ledger.Charge, c ledger.Charge, now time.Time) error {
	others := slices.DeleteFunc(slices.Clone(charges), func(o ledger.Charge) bool { return o.Task == c.Task })
	epsilon, delta := ledger.Spent(others, now, p.Period)
	c.Standing, c.Open = 1, 1
	withEpsilon, withDelta := ledger.Spent(append(others, c), now, p.Period)
	window := "for ever"
	if p.Period > 0 {
		window = "within " + p.Period.String()
	}
	if p.MaxTotalEpsilon > 0 && !(withEpsilon <= p.MaxTotalEpsilon*(1+tolerance)) {
		return refuseTotal("epsilon", withEpsilon, epsilon, p.MaxTotalEpsilon, "max_total_epsilon", window)
	}
	if p.MaxTotalDelta > 0 && !(withDelta <= p.MaxTotalDelta*(1+tolerance)) {
		return refuseTotal("delta", withDelta, delta, p.MaxTotalDelta, "max_total_delta", window)
	}
	return nil
}

func refuseTotal(what string, total, spent, limit float64, key, window string) error {
	return Refuse("total "+what, fmt.Sprintf("%v with this task, %v without", total, spent), "at most %v %s, the policy's %s", limit, window, key)
}

// afford computes what a round costs one user, with the others of its phase that he answers, and compares it with the limit.
func (a *Agreement) afford(what string, at manifest.Place) (accounting.Guarantee, error) {
	plan := a.Task.Plan
	limit, source := plan.EpsilonBudget, "the task's budget"
	if a.policy.MaxEpsilon > 0 {
		limit, source = a.policy.MaxEpsilon, "the policy's max_epsilon"
	}
	var g accounting.Guarantee
	release, err := at.Release(a.HonestFraction)
	if err == nil {
		g, err = a.guarantee(release, limit)
	}
	if err != nil {
		return g, Refuse(what, "not accountable: "+err.Error(), "parameters that the accountant covers")
	}
	if !(g.Epsilon <= limit*(1+tolerance)) {
		return g, Refuse(what+": epsilon",
			fmt.Sprintf("%v at delta %v, if a share %v of users is honest", g.Epsilon, a.Delta, a.HonestFraction),
			"at most %v, %s", limit, source)
	}
	return g, nil
}

// maxKnown bounds what is remembered; a phase has two cohorts, the last one and the others'.
const maxKnown = 2 * stream.MaxPhases

// guarantee is what a release costs, by the accountant of this device. limit is always the same.
func (a *Agreement) guarantee(release accounting.Release, limit float64) (accounting.Guarantee, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g, known := a.known[release]
	if known {
		return g, nil
	}
	g, err := a.accountant.ReleaseWithin(release, accounting.Budget{Epsilon: limit, Delta: a.Delta})
	if err == nil && len(a.known) < maxKnown {
		a.known[release] = g
	}
	return g, err
}
