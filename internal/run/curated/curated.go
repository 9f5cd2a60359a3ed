// Package curated makes a task and its rows ready for a method of one process that has all rows (package oneplace):
// what the task's plan is for the folder and for people, and the release to compute. It reads and writes nothing.
//
// The caller's steps: NewPlan; show Plan.Start; charge Plan.Wire, durably; Fit, and commit its release in one write
// (package fit does so). Minimize is for rows that need no protection: there is nothing to charge.
package curated

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Plan is a planned fit of rows that are at hand.
type Plan struct {
	Wire  *wire.Plan
	Start statedir.Release // what is known before the release; Model is the public start
	// Fit computes the release, with the system's entropy. Nothing it computes may leave the process before it returns: if
	// interrupted, it is run again, with other noise.
	Fit func(ctx context.Context) (statedir.Release, error)
}

// NewPlan plans the task's method for the people, each with the rows that are theirs; where rows are protected a person
// has one row. A refusal is of public numbers alone, and comes before anything is drawn: too few people, a set or a
// loss that the method is not proved for.
func NewPlan(ctx context.Context, spec *task.Spec, people []oneplace.Person) (Plan, error) {
	m, known := Of(spec.Schedule.Algorithm)
	switch {
	case !known:
		return Plan{}, fmt.Errorf("schedule.algorithm %s: no method of one process", spec.Schedule.Algorithm)
	case m.Public:
		return Plan{}, fmt.Errorf("%s adds no noise: it is for data that need no protection, with --public", m.Name)
	}
	p, err := ProblemOf(spec, len(people))
	if err != nil {
		return Plan{}, err
	}
	plan, err := m.Plan(p)
	if err != nil {
		return Plan{}, named(m.Name, p, err)
	}
	if plan.Check != nil {
		if err := plan.Check(ctx, people); err != nil {
			return Plan{}, err
		}
	}
	about := statedir.Release{Method: m.Name, Source: m.Source, Least: plan.Least, Phases: plan.Phases,
		NoiseStd: plan.NoiseStd, OnRecords: plan.OnRecords, Baseline: plan.Better, Depth: plan.Depth, Queries: plan.Queries,
		Notes: slices.Clone(plan.Notes), Model: make([]float64, p.Dim)}
	for i, note := range about.Notes {
		about.Notes[i] = wordsOf(p).OfPeople(note)
	}
	if about.Baseline != "" {
		about.Baseline += "; the practical plan, which runs without --algorithm, has no bound, " +
			"and did better than output-phases and noisy-sgd on two public tables (docs/reference/fit.md)"
	}
	if plan.Bound < p.Trivial() {
		about.Bound = &plan.Bound
	}
	p.Set.Start(about.Model)
	return Plan{Start: about, Wire: wirePlan(p, m.Name, plan.Spent),
		Fit: func(ctx context.Context) (statedir.Release, error) {
			out := about
			r, err := plan.Fit(ctx, people, randomizer.NewEntropy())
			out.Model, out.Phase, out.Halted = r.Model, r.Phase, r.Halted
			return out, err
		}}, nil
}

// Minimize runs the task's method, which is Public, on rows that need no protection.
func Minimize(ctx context.Context, spec *task.Spec, rows []convex.Example, effort oneplace.Effort) (oneplace.Release,
	error) {
	m, known := Of(spec.Schedule.Algorithm)
	if !known || !m.Public {
		return oneplace.Release{}, fmt.Errorf("%s: no method for data that need no protection", spec.Schedule.Algorithm)
	}
	p, err := ProblemOf(spec, len(rows))
	if err != nil {
		return oneplace.Release{}, err
	}
	p.Effort = effort
	plan, err := m.Plan(p)
	if err != nil {
		return oneplace.Release{}, err
	}
	return plan.Fit(ctx, []oneplace.Person{rows}, randomizer.NewEntropy())
}

// ProblemOf returns the public numbers of a task with all rows in one place, of so many people; if single rows are
// protected, each row counts as a person.
func ProblemOf(spec *task.Spec, people int) (oneplace.Problem, error) {
	features, err := spec.Compile()
	if err != nil {
		return oneplace.Problem{}, err
	}
	loss, err := spec.Loss()
	if err != nil {
		return oneplace.Problem{}, err
	}
	x := features.Bound()
	steepest, most := loss.Lipschitz(x), cmp.Or(spec.Model.ClipNorm, 1)
	p := oneplace.Problem{Loss: loss, Features: features.Dim(), Norm: x,
		Dim: loss.Parameters(features.Dim()), People: people, Items: 1, ByUser: spec.Privacy.ByUser(), Lipschitz: min(most, steepest),
		Clips: steepest > most, Smoothness: loss.Smoothness(x), Ridge: spec.Model.Ridge, Rounds: spec.Schedule.Rounds.Max,
		Declared: spec.SetDeclaration(), Budget: accounting.Budget{Epsilon: spec.Privacy.Epsilon, Delta: spec.Privacy.Delta}}
	if p.ByUser {
		p.Items = spec.User.Items
	}
	p.Set, err = spec.Set(p.Dim)
	return p, err
}

// wordsOf returns the words for the problem's unit.
func wordsOf(p oneplace.Problem) wording.Kind {
	if p.ByUser {
		return wording.Kind{Protects: "user", Silos: 1, Once: true}
	}
	return wording.Kind{Protects: "event", Silos: 1, Once: true}
}

// wirePlan returns the plan, of a method that spends so much, as the folder keeps it.
func wirePlan(p oneplace.Problem, method string, spent accounting.Budget) *wire.Plan {
	unit := wire.Unit_UNIT_EVENT
	if p.ByUser {
		unit = wire.Unit_UNIT_USER
	}
	one := &wire.Phase{Users: 1, Rounds: 1, Cohort: 1, Minimum: 1, RoundsPerUser: 1,
		Mechanism: &wire.Mechanism{Dim: uint32(p.Dim), ClipNorm: p.Lipschitz, Units: uint64(p.People)}}
	return &wire.Plan{Algorithm: method, Phases: []*wire.Phase{one}, Trust: wire.Trust_TRUST_LOCAL,
		HonestFraction: accounting.One.String(), Epsilon: spent.Epsilon, Delta: max(spent.Delta, p.Budget.Delta),
		EpsilonBudget: p.Budget.Epsilon, ClipNorm: p.Lipschitz,
		Clips: p.Clips, Ridge: p.Ridge, Set: manifest.WireSet(p.Declared), Unit: unit, Silos: 1}
}

// named puts the method's name before an error that does not have it, and explains, if rows are protected, that each
// row is a person.
func named(name string, p oneplace.Problem, err error) error {
	if !strings.HasPrefix(err.Error(), name+": ") {
		err = fmt.Errorf("%s: %w", name, err)
	}
	if !p.ByUser && strings.Contains(err.Error(), " people") {
		err = fmt.Errorf("%w (each row is a person here: privacy.unit is event)", err)
	}
	return err
}
