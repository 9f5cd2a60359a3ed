package consent

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Whole reports whether a silo reports about all its rows in every round of the plan's one stint; other silos
// report about ranges of their rows, each in one round.
func (a *Agreement) Whole() bool { return a.Spec.Silo != nil && a.Phases[0].Rounds > 1 }

// Trials returns the trials of a report in each phase.
func (a *Agreement) Trials() []uint64 {
	trials := make([]uint64, len(a.Phases))
	for i, f := range a.Phases {
		trials[i] = uint64(f.Params.Trials)
	}
	return trials
}

// own reports whether a silo hides its rows by trials of its own, so that the plan's cost to it is known only when
// its number of units is.
func (a *Agreement) own() bool { return a.Final && a.Spec.Silo != nil }

// Own returns the agreement of a silo that reports about that many units, which are public: its parameters, and the
// cost to a unit of its own. Under trust local each stint has the fewest even trials with which it costs no more than
// the limit nor, at the plan's delta, more than the plan's own cost: so the printed cost holds for every silo. A silo
// that is larger than planned for takes fewer trials than the plan's, a smaller or stricter one more, as far as the
// window has room. A *RefusedError names the units, or the epsilon, that would do.
func (a *Agreement) Own(units uint64) (*Agreement, error) {
	s, least, planned := ownSilo{a, units}, uint64(a.Spec.Silo.Least), a.Units()
	switch {
	case !a.Final && units < planned:
		return nil, Refuse(s.noun(), units,
			"at least %d, silo.units of the task: only under trust local does a silo make up with noise of its own "+
				"for what it lacks", planned)
	case units < min(least, planned):
		return nil, Refuse(s.noun(), units, "at least %d, silo.least of the task", least)
	case !a.Final:
		return a.Kept(units, a.Trials())
	}
	trials, err := s.trials()
	if err != nil {
		return nil, err
	}
	if s.crowded(trials) {
		return nil, s.refuse()
	}
	if trials, err = s.hide(trials); err != nil {
		return nil, err
	}
	return a.Kept(units, trials)
}

// MostUnits returns the largest number of units of a silo's report: any number for gradients; for minimisers as
// many as rounding errors, which grow with the number, allow.
func (a *Agreement) MostUnits() uint64 {
	if a.Phases[0].Reports.Prox == nil {
		return math.MaxUint64
	}
	planned := int(a.Units())
	return uint64(planned + sort.Search(mostProx, func(n int) bool {
		return a.checkProx("", a.Phases[0].Reports, uint64(planned+n+1)) != nil
	}))
}

// Kept returns the agreement of a silo that took part with so many units and trials before, and goes on with them. It
// returns a *RefusedError if the limit has changed since, or if they fit no report of the task.
func (a *Agreement) Kept(units uint64, trials []uint64) (*Agreement, error) {
	s := ownSilo{a, units}
	of, err := s.with(trials)
	if err != nil {
		return nil, err
	}
	if err := s.compareWhole(trials); err != nil {
		return of, err
	}
	return of, of.compare("this silo's part", of.Guarantee)
}

// An ownSilo looks for the trials with which a silo hides by itself what it reports, about so many units, under an
// agreement, and makes its own agreement of them.
type ownSilo struct {
	*Agreement
	units uint64
}

// noun names the units of a silo's reports.
func (s ownSilo) noun() string {
	if s.Spec.Privacy.ByUser() {
		return "people of this silo"
	}
	return "rows of this silo"
}

// with returns the agreement with reports of the silo's units and so many trials, whatever they cost.
func (s ownSilo) with(trials []uint64) (*Agreement, error) {
	a := s.Agreement
	if s.units == 0 || len(trials) != len(a.Phases) || slices.Max(trials) > math.MaxUint32 {
		return nil, Refuse("this silo", fmt.Sprintf("one of %d units with %v trials, as stored", s.units, trials),
			"one of the task")
	}
	phases := slices.Clone(a.Phases)
	of := &Agreement{Announcement: a.Announcement, Spec: a.Spec, Features: a.Features, Loss: a.Loss, Set: a.Set,
		Practical: a.Practical, Phases: phases, Final: a.Final, card: a.card, policy: a.policy,
		Cost: Cost{Delta: a.Delta, HonestFraction: a.HonestFraction, plan: a.plan, limit: a.limit, source: a.source,
			assuming: a.assuming, sized: phases, known: make(map[alike]accounting.Guarantee)}}
	for i := range phases {
		p := &phases[i].Params
		p.Units, p.Trials = s.units, uint32(trials[i])
		if err := p.Validate(); err != nil {
			return nil, Refuse(s.noun(), s.units, "what a report of the task can be about: %v", err)
		}
		if err := a.checkProx(fmt.Sprintf("plan.phases[%d]", i), phases[i].Reports, s.units); err != nil {
			return nil, err
		}
	}
	for i := range phases {
		g, err := of.guarantee(manifest.Costliest(a.plan, i))
		if err != nil {
			return nil, refuseCost(i, err)
		}
		phases[i].Guarantee = g
		if err := of.cover(i, g); err != nil {
			return nil, err
		}
	}
	return of, nil
}

// trials returns, for each phase, trials with which reports about so many units stay within both budgets: this
// device's limit and the plan's own.
func (s ownSilo) trials() ([]uint64, error) {
	trials, plan := s.Trials(), s.plan
	for i, f := range plan.Phases {
		if f.Again {
			continue
		}
		of, said, err := manifest.Costliest(plan, i).OwnBudget()
		if err != nil {
			return nil, refuseCost(i, err)
		}
		for k, b := range []accounting.Budget{s.budget(), said} {
			own, err := s.within(of, b)
			if err != nil {
				return nil, Refuse(s.noun(), s.units, "more, or a larger max_epsilon: %v", err)
			}
			for j, n := range own {
				if trials[i+j] = max(n, trials[i+j]); k == 0 {
					trials[i+j] = n
				}
			}
		}
	}
	return trials, nil
}

// within returns the fewest even trials of the releases of a stint that keep within a budget. For as many units
// as planned these are the planned trials, if they suffice.
func (s ownSilo) within(of []accounting.Release, b accounting.Budget) ([]uint64, error) {
	if s.units == max(1, of[0].Units) {
		g, err := accounting.RepeatedWithin(1, [][]accounting.Release{of}, b)
		if err == nil && g.Epsilon <= b.Epsilon*(1+tolerance) {
			trials := make([]uint64, len(of))
			for i, r := range of {
				trials[i] = r.Trials
			}
			return trials, nil
		}
	}
	return accounting.OwnTrials(of, s.units, b)
}

// room returns the largest even number of trials that a report in the phase has room for: the plan's, or as many as
// fit its window.
func (s ownSilo) room(phase int) uint64 {
	p := s.Phases[phase].Params
	return max(uint64(p.Trials), p.Room())
}

// crowded reports whether the trials of some phase do not fit its window.
func (s ownSilo) crowded(trials []uint64) bool {
	for i, b := range trials {
		if b > s.room(i) {
			return true
		}
	}
	return false
}

// mostProx bounds how many units more than planned for a minimiser is about.
const mostProx = 1 << 30

// mostUnits bounds the units that are looked for.
const mostUnits = 1 << 40

// refuse refuses a silo with more trials than any window has room for. The error names the units, or the epsilon, that
// would be accepted.
func (s ownSilo) refuse() error {
	if s.Whole() {
		fits := func(units uint64) bool {
			trials, err := ownSilo{s.Agreement, units}.trials()
			return err == nil && !s.crowded(trials)
		}
		most := s.units
		for most < mostUnits && !fits(most) {
			most *= 2
		}
		rows := s.units + uint64(sort.Search(int(most-s.units), func(n int) bool { return fits(s.units + uint64(n)) }))
		if most < mostUnits {
			return Refuse(s.noun(), s.units,
				"at least %d for epsilon %v, %s: the reports of the task have no room for the noise that fewer need",
				rows, s.limit, s.source)
		}
	}
	full := s.Trials()
	for i := range full {
		full[i] = s.room(i)
	}
	of, err := s.with(full)
	if err != nil {
		return err
	}
	return Refuse("max_epsilon", s.limit,
		"at least %v, for which the reports of the task have room for a silo's own noise", of.Guarantee.Epsilon)
}
