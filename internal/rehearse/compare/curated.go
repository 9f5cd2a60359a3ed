package compare

import (
	"math"

	"github.com/panlearn/panlearn/internal/run/curated"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/curator"
	"github.com/panlearn/panlearn/learner/research/private"
	"github.com/panlearn/panlearn/learner/task"
)

// A Curated describes a method of one process that has all rows, by facts that need no rows: it is neither
// simulated nor recommended.
type Curated struct {
	Method string `json:"method"` // as schedule.algorithm
	Unit   string `json:"unit"`   // what it protects: event or user, as privacy.unit
	Least  int    `json:"least"`  // from how many units on it can run
	// PaperLeast is the same with the constants that the paper prints; 0: it has none.
	PaperLeast int `json:"paper_least"`
	// LessNoiseFrom is the number of rows of a person from which on a release has less noise than that of the
	// baseline, a person as one item, of as many people whose rows are as different as the clip norm allows; null:
	// no number is enough, or the comparison is not made. For losses no more curved than the objective.
	LessNoiseFrom *int `json:"less_noise_from"`
	Compared      bool `json:"compared"` // whether LessNoiseFrom was looked for
	Bound
	// Better is the baseline with the smaller bound, and BetterProved its bound; empty: none has.
	Better       string  `json:"better"`
	BetterProved float64 `json:"better_proved"`
	// Refused is the reason why the method has no plan for this task; empty: it has one.
	Refused string `json:"refused"`
}

// baselines take a person as one item.
var baselines = map[string]bool{"output": true, "output-phases": true, "output-sgd": true, private.NoisySGD: true}

// baseline reports whether others are compared with it.
func (c Curated) baseline() bool { return baselines[c.Method] }

// radiusMissing is the text about the bounds of a task without model.radius.
const radiusMissing = "model.radius is not given"

// people returns the units that a task protects, in all.
func people(spec *task.Spec) int {
	if spec.Silo != nil {
		return spec.Silo.Count * spec.Silo.Units
	}
	return spec.Schedule.Users
}

// bounded reports whether the task declares how far from 0 a model may be.
func bounded(spec *task.Spec) bool {
	m := spec.Model
	return m.Radius > 0 || m.Min != 0 || m.Max != 0
}

// onePlace returns every method of one process that there is for the task.
func onePlace(spec *task.Spec) (out []Curated, err error) {
	p, err := curated.PublicOf(spec, people(spec))
	if err != nil {
		return nil, err
	}
	if !bounded(spec) {
		p.Set = convex.Ball{R: 1} // nothing that is said without a plan depends on it
	}
	unit := spec.Privacy.Unit
	for _, m := range curator.Methods() {
		one := Curated{Method: m.Name, Unit: unit, Least: m.Least(p), PaperLeast: paperLeast(m.Name, p)}
		one.contest(p)
		if !bounded(spec) {
			one.Refused = radiusMissing
		} else if plan, err := m.Plan(p); err != nil {
			one.Refused = err.Error()
		} else {
			one.proves(plan.Bound, p)
			one.OnRecords = plan.OnRecords
		}
		out = append(out, one)
	}
	if unit == task.UnitUser {
		judge(out)
		return out, nil
	}
	for _, name := range []string{private.NoisySGD, private.ReSQue, private.ReSQueSCO} {
		one := Curated{Method: name, Unit: unit, Least: 2, Bound: Bound{OnRecords: name != private.ReSQueSCO}}
		if !bounded(spec) {
			one.Refused = radiusMissing
		} else if err := one.sampled(p, spec); err != nil {
			one.Refused = err.Error()
		}
		out = append(out, one)
	}
	judge(out)
	return out, nil
}

// paperLeast returns the smallest number of people with the paper's constants of any variant.
func paperLeast(method string, p curator.Public) (least int) {
	for _, s := range curator.Sizes(p.Budget, p.Items, p.Dim, 1e-3) {
		if s.Method == method && s.Paper && (least == 0 || s.Least < least) {
			least = s.Least
		}
	}
	return least
}

// contest looks for the crossover of the method.
func (c *Curated) contest(p curator.Public) {
	for _, one := range curator.Contests() {
		if one.Method == c.Method && !one.Paper {
			c.Compared = true
			if from := one.From(p); from > 0 {
				c.LessNoiseFrom = &from
			}
		}
	}
}

// sampled plans a method of package private, for one row replaced by another.
func (c *Curated) sampled(p curator.Public, spec *task.Spec) error {
	public, err := curated.SampledOf(spec, p, c.Method)
	if err != nil {
		return err
	}
	plan, err := private.NewPlan(public)
	if err != nil {
		return err
	}
	c.proves(plan.Bound, p)
	return nil
}

// proves notes a bound.
func (c *Curated) proves(bound float64, p curator.Public) {
	if !math.IsInf(bound, 0) && !math.IsNaN(bound) {
		c.Proved, c.ProvedVacuous = &bound, bound >= p.Trivial()
	}
}

// judge sets for every method the baseline with the smaller bound. A bound on the rows at hand is compared
// with a baseline's on new ones, where there is more to lose; noisy SGD, whose bound is on the rows at hand,
// is the baseline of resque alone.
func judge(methods []Curated) {
	best := func(fit func(m Curated) bool) (at *Curated) {
		for i := range methods {
			if m := &methods[i]; m.baseline() && m.Proved != nil && fit(*m) && (at == nil || *m.Proved < *at.Proved) {
				at = m
			}
		}
		return at
	}
	whole := best(func(m Curated) bool { return m.Method != private.NoisySGD })
	all := best(func(Curated) bool { return true })
	for i := range methods {
		m, against := &methods[i], whole
		if m.Method == private.ReSQue {
			against = all
		}
		if against != nil && m != against && (m.Proved == nil || *against.Proved < *m.Proved) {
			m.Better, m.BetterProved = against.Method, *against.Proved
		}
	}
}
