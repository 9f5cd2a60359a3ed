package compare

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/internal/run/curated"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/oneplace"
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
	// LessNoiseFrom is the smallest number of rows a person from which on a release has less noise than the baseline's,
	// which takes a person as one item. It assumes as many people, with rows as different as the clip norm allows, and a
	// loss no more curved than the objective. null: no number is enough, or the comparison is not made.
	LessNoiseFrom *int `json:"less_noise_from"`
	Compared      bool `json:"compared"` // whether LessNoiseFrom was looked for
	Bound
	// Better is the baseline with the smaller bound, and BetterProved its bound; empty: none has.
	Better       string  `json:"better"`
	BetterProved float64 `json:"better_proved"`
	// Refused is the reason why the method has no plan for this task; empty: it has one.
	Refused string `json:"refused"`

	method oneplace.Method
}

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
	p, err := curated.ProblemOf(spec, people(spec))
	if err != nil {
		return nil, err
	}
	if !bounded(spec) {
		p.Set = convex.Ball{R: 1} // nothing that is said without a plan depends on it
	}
	for _, m := range curated.Methods() {
		if m.Public || m.Rows && spec.Privacy.Unit == task.UnitUser {
			continue
		}
		one := Curated{Method: m.Name, Unit: spec.Privacy.Unit, Least: m.Least(p), method: m,
			Bound: Bound{OnRecords: m.OnRecords}}
		if m.PaperLeast != nil {
			one.PaperLeast = m.PaperLeast(p)
		}
		if m.LessNoise != nil {
			from, compared := m.LessNoise(p)
			if one.Compared = compared; from > 0 {
				one.LessNoiseFrom = &from
			}
		}
		if !bounded(spec) {
			one.Refused = radiusMissing
		} else if m.Standing == oneplace.Unranked {
			one.Refused = m.Name + ": it has no bound: it is for comparison, and runs where it is asked for by its name"
		} else if plan, err := m.Plan(p); err != nil {
			one.Refused = err.Error()
		} else {
			one.proves(plan.Bound, p)
			one.OnRecords = plan.OnRecords
		}
		out = append(out, one)
	}
	judge(out)
	return out, nil
}

// proves notes a bound.
func (c *Curated) proves(bound float64, p oneplace.Problem) {
	if !math.IsInf(bound, 0) && !math.IsNaN(bound) {
		c.Proved, c.ProvedVacuous = &bound, bound >= p.Trivial()
	}
}

// judge sets for every method the baseline with the smaller bound. A bound on the rows at hand is compared with a
// baseline's bound on new rows, where more can be lost. Noisy SGD has a bound on the rows at hand, so it is a baseline
// only for methods with such a bound, for one row.
func judge(methods []Curated) {
	best := func(of ...oneplace.Standing) (at *Curated) {
		for i := range methods {
			m := &methods[i]
			if slices.Contains(of, m.method.Standing) && m.Proved != nil && (at == nil || *m.Proved < *at.Proved) {
				at = m
			}
		}
		return at
	}
	whole, all := best(oneplace.Baseline), best(oneplace.Baseline, oneplace.RowsBaseline)
	for i := range methods {
		m, against := &methods[i], whole
		if m.method.Rows && m.method.OnRecords {
			against = all
		}
		if against != nil && m != against && (m.Proved == nil || *against.Proved < *m.Proved) {
			m.Better, m.BetterProved = against.Method, *against.Proved
		}
	}
}
