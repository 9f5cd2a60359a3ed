package consent

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Cost returns the charge of so many participations of one event in the task together, by the device's own
// accounting.
func (a *Agreement) Cost(times uint32, now time.Time) ledger.Charge {
	c := ledger.Charge{Task: a.Hash, Name: stream.Task(a.Task.Name), Epsilon: a.Epsilon(times), Delta: a.Delta,
		ByUser: a.Spec.Privacy.ByUser(), At: now}
	for _, f := range a.Phases {
		c.Most = max(c.Most, f.Rounds)
	}
	c.Most = uint32(min(uint64(c.Most)*uint64(times), math.MaxUint32))
	return c
}

// Epsilon returns the cost at Delta of so many participations of one event: the composition of as many rounds, or
// interactive phases, each as costly as the costliest, because the party that announces the rounds chooses which they
// are.
func (a *Agreement) Epsilon(times uint32) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.repeated) == 0 {
		a.repeated = []float64{a.Guarantee.Epsilon}
	}
	limit, _ := a.limit()
	for len(a.repeated) < int(times) {
		last := a.repeated[len(a.repeated)-1]
		if last > accounting.MaxEpsilon {
			return last
		}
		g, err := a.accountant.RepeatedWithin(len(a.repeated)+1, a.releases, accounting.Budget{Epsilon: limit,
			Delta: a.Delta})
		if err != nil {
			g.Epsilon = math.MaxFloat64
		}
		// finite, and above every limit where there is no guarantee
		a.repeated = append(a.repeated, min(max(last, g.Epsilon), math.MaxFloat64))
	}
	return a.repeated[max(times, 1)-1]
}

// Again returns nil if the cost of taking part so many times lets an event do so, else the refusal.
func (a *Agreement) Again(times uint32) *RefusedError {
	limit, source := a.limit()
	epsilon := a.Epsilon(times)
	if times <= 1 || epsilon <= limit*(1+tolerance) {
		return nil
	}
	return &RefusedError{Field: fmt.Sprintf("participation %d of an event: epsilon", times),
		Value:    fmt.Sprintf("%v in all at delta %v%s", epsilon, a.Delta, a.assuming()),
		Accepted: fmt.Sprintf("at most %v, %s", limit, source)}
}

// Most returns the number of participations of one event that the policy allows: 1 and its refunds, as far as
// their cost is within its limit. It is 1 where reports are final.
func (a *Agreement) Most() uint32 {
	times := uint32(1)
	for !a.Final && times <= a.policy.Refunds() && a.Again(times+1) == nil {
		times++
	}
	return times
}

// limit returns the epsilon that one task may cost one event, and names the source of that limit.
func (a *Agreement) limit() (epsilon float64, source string) {
	if a.policy.MaxEpsilon > 0 {
		return a.policy.MaxEpsilon, "the policy's max_epsilon"
	}
	return a.Task.Plan.EpsilonBudget, "the task's budget"
}

// AffordTotal returns nil if the policy's totals allow a task's charge beside the charges of other tasks in the period,
// and otherwise the refusal. If the task has charged more before, that higher charge is checked.
func (p Policy) AffordTotal(charges []ledger.Charge, c ledger.Charge, now time.Time) error {
	if i := ledger.Index(charges, c.Task); i >= 0 {
		c.Epsilon, c.Delta = max(c.Epsilon, charges[i].Epsilon), max(c.Delta, charges[i].Delta)
	}
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
	return Refuse("total "+what, fmt.Sprintf("%v with this task, %v without", total, spent),
		"at most %v %s, the policy's %s", limit, window, key)
}

// afford computes the cost to one user of a round, with the others of its stint, and compares it with the limit. The
// cost to a silo with trials of its own is compared when its size is known.
func (a *Agreement) afford(what string, at manifest.Place) (accounting.Guarantee, error) {
	limit, _ := a.limit()
	g, err := a.guarantee(at, limit)
	if err != nil {
		return g, Refuse(what, "not accountable: "+err.Error(), "parameters that the accountant covers")
	}
	if a.own() && !a.isSized {
		return g, nil
	}
	return g, a.compare(what, g)
}

// compare refuses what costs more than the limit.
func (a *Agreement) compare(what string, g accounting.Guarantee) error {
	limit, source := a.limit()
	if !(g.Epsilon <= limit*(1+tolerance)) {
		return Refuse(what+": epsilon",
			fmt.Sprintf("%v at delta %v%s", g.Epsilon, a.Delta, a.assuming()),
			"at most %v, %s", limit, source)
	}
	return nil
}

// assuming returns the assumption that an epsilon rests on, to be written after it.
func (a *Agreement) assuming() string {
	reporters := "users"
	if a.Spec.Silo != nil {
		reporters = "silos"
	}
	return a.Spec.Privacy.Trust.Assuming(a.HonestFraction, reporters)
}

// alike are rounds that cost the same: of one phase, with noise planned for as many users.
type alike struct {
	phase  int
	cohort uint64
}

// maxKnown bounds the guarantees that are remembered; a phase has two cohorts, the last one and the others'.
const maxKnown = 2 * stream.MaxPhases

// guarantee returns the cost of a round together with the others of its stint, by this device's accountant.
// Results are kept, so limit has to be the same in every call.
func (a *Agreement) guarantee(at manifest.Place, limit float64) (accounting.Guarantee, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rounds := alike{at.Index, at.Planned}
	g, known := a.known[rounds]
	if known {
		return g, nil
	}
	releases, err := a.charged(at)
	if err != nil {
		return g, err
	}
	g, err = a.accountant.RepeatedWithin(1, [][]accounting.Release{releases}, accounting.Budget{Epsilon: limit,
		Delta: a.Delta})
	if err == nil && len(a.known) < maxKnown {
		a.known[rounds] = g
	}
	return g, err
}
