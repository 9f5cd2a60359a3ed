package consent

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Cost computes what taking part in a task costs one user, by the device's own accounting, and compares it with the
// limit. It is immutable except for caches of the accountant's results.
type Cost struct {
	// Guarantee is of one participation, in the costliest phase, at Delta.
	Guarantee accounting.Guarantee
	Delta     float64
	// HonestFraction is the one relied upon: the smaller of the policy's and the plan's own; 1 under trust local,
	// where nobody's noise is.
	HonestFraction accounting.Fraction

	plan     *wire.Plan
	limit    float64 // epsilon that one task may cost one event
	source   string  // of limit
	assuming string  // what an epsilon rests on, to be written after it
	sized    []Phase // with a silo's own units and trials; nil: the plan's are charged

	mu       sync.Mutex
	known    map[alike]accounting.Guarantee // guarded by mu
	releases [][]accounting.Release         // of the stints, each phase in its costliest round
	repeated []float64                      // guarded by mu: epsilon of one participation, of two, ...
}

// Epsilon returns the cost at Delta of so many participations of one event: the composition of as many rounds, or
// interactive phases, each as costly as the costliest, because the party that announces the rounds chooses which they
// are.
func (c *Cost) Epsilon(times uint32) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.repeated) == 0 {
		c.repeated = []float64{c.Guarantee.Epsilon}
	}
	for len(c.repeated) < int(times) {
		last := c.repeated[len(c.repeated)-1]
		if last > accounting.MaxEpsilon {
			return last
		}
		g, err := accounting.RepeatedWithin(len(c.repeated)+1, c.releases, c.budget())
		if err != nil {
			g.Epsilon = math.MaxFloat64
		}
		// finite, and above every limit where there is no guarantee
		c.repeated = append(c.repeated, min(max(last, g.Epsilon), math.MaxFloat64))
	}
	return c.repeated[max(times, 1)-1]
}

// Again returns nil if the cost of taking part so many times lets an event do so, else the refusal.
func (c *Cost) Again(times uint32) *RefusedError {
	epsilon := c.Epsilon(times)
	if times <= 1 || epsilon <= c.limit*(1+tolerance) {
		return nil
	}
	return &RefusedError{Field: fmt.Sprintf("participation %d of an event: epsilon", times),
		Value:    fmt.Sprintf("%v in all at delta %v%s", epsilon, c.Delta, c.assuming),
		Accepted: fmt.Sprintf("at most %v, %s", c.limit, c.source)}
}

// budget returns the limit, at Delta.
func (c *Cost) budget() accounting.Budget { return accounting.Budget{Epsilon: c.limit, Delta: c.Delta} }

// compare refuses what costs more than the limit.
func (c *Cost) compare(what string, g accounting.Guarantee) error {
	if !(g.Epsilon <= c.limit*(1+tolerance)) {
		return Refuse(what+": epsilon",
			fmt.Sprintf("%v at delta %v%s", g.Epsilon, c.Delta, c.assuming),
			"at most %v, %s", c.limit, c.source)
	}
	return nil
}

// assuming returns the assumption that an epsilon of a task rests on.
func assuming(spec *task.Spec, honest accounting.Fraction) string {
	reporters := "users"
	if spec.Silo != nil {
		reporters = "silos"
	}
	return spec.Privacy.Trust.Assuming(honest, reporters)
}

// alike are rounds that cost the same: of one phase, with noise planned for as many users.
type alike struct {
	phase  int
	cohort uint64
}

// maxKnown bounds the guarantees that are remembered; a phase has two cohorts, the last one and the others'.
const maxKnown = 2 * stream.MaxPhases

// guarantee returns the cost of a round together with the others of its stint.
func (c *Cost) guarantee(at manifest.Place) (accounting.Guarantee, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rounds := alike{at.Index, at.Planned}
	g, known := c.known[rounds]
	if known {
		return g, nil
	}
	releases, err := c.charged(at)
	if err != nil {
		return g, err
	}
	g, err = accounting.RepeatedWithin(1, [][]accounting.Release{releases}, c.budget())
	if err == nil && len(c.known) < maxKnown {
		c.known[rounds] = g
	}
	return g, err
}

// charged returns the releases of one participant in a round together with the others of its stint. A silo whose
// size is known has its own parameters in them.
func (c *Cost) charged(at manifest.Place) ([]accounting.Release, error) {
	releases, err := at.Releases(c.HonestFraction)
	if err != nil || c.sized == nil {
		return releases, err
	}
	for i := range releases {
		p := c.sized[at.Stint.Index+i].Params
		releases[i].Units, releases[i].Trials = p.Units, uint64(p.Trials)
	}
	return releases, nil
}

// cover adds a phase, of which one participation has this guarantee, to what a participation may be in.
func (c *Cost) cover(phase int, g accounting.Guarantee) error {
	if !c.plan.Phases[phase].Again { // else its stint is there
		releases, err := c.charged(manifest.Costliest(c.plan, phase))
		if err != nil {
			return refuseCost(phase, err)
		}
		c.releases = append(c.releases, releases)
	}
	if phase == 0 || g.Epsilon > c.Guarantee.Epsilon {
		c.Guarantee = g
	}
	return nil
}

func refuseCost(phase int, err error) error {
	return unaccountable(fmt.Sprintf("plan.phases[%d]", phase), err)
}

// unaccountable refuses what the accountant does not cover.
func unaccountable(what string, err error) error {
	return Refuse(what, "not accountable: "+err.Error(), "parameters that the accountant covers")
}

// Charge returns the charge of so many participations of one event in the task together, by the device's own
// accounting.
func (a *Agreement) Charge(times uint32, now time.Time) ledger.Charge {
	c := ledger.Charge{Task: a.Hash, Name: stream.Task(a.Task.Name), Epsilon: a.Epsilon(times), Delta: a.Delta,
		ByUser: a.Spec.Privacy.ByUser(), At: now}
	for _, f := range a.Phases {
		c.Most = max(c.Most, f.Rounds)
	}
	c.Most = uint32(min(uint64(c.Most)*uint64(times), math.MaxUint32))
	return c
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

// afford computes the cost to one user of a round, with the others of its stint, and compares it with the limit. The
// cost to a silo with trials of its own is compared when its size is known.
func (a *Agreement) afford(what string, at manifest.Place) (accounting.Guarantee, error) {
	g, err := a.guarantee(at)
	if err != nil {
		return g, unaccountable(what, err)
	}
	if a.own() && a.sized == nil {
		return g, nil
	}
	return g, a.compare(what, g)
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
