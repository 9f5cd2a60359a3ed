// Package curated makes a task and its rows ready for a method of one process that has all rows (packages curator,
// resque and resque/private): what the task's plan is for the folder and for people, and the release to compute. It
// reads and writes nothing.
//
// The caller's steps: Plan; show Plan.Start; charge Plan.Wire, durably; Fit, and commit its release in one write
// (package fit does so).
package curated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/curator"
	"github.com/panlearn/panlearn/learner/schedule"
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
	// Fit computes the release, with the system's entropy. Nothing leaves the process before it returns.
	Fit func(ctx context.Context) (statedir.Release, error)
}

// A problem is a task in the numbers of its method.
type problem struct {
	spec   *task.Spec
	loss   convex.Loss
	public curator.Public
	people []curator.Person

	features int
	clips    bool // the loss may be steeper than its cut
}

// NewPlan plans the task's method for the people, each with the rows that are theirs; where rows are protected a person
// has one row. A refusal is of public numbers alone, and comes before anything is drawn: too few people
// (*curator.TooFewError), a set or a loss that the method is not proved for.
func NewPlan(ctx context.Context, spec *task.Spec, people []curator.Person) (Plan, error) {
	m, known := schedule.CuratedOf(spec.Schedule.Algorithm)
	switch {
	case !known:
		return Plan{}, fmt.Errorf("schedule.algorithm %s: no method of one process", spec.Schedule.Algorithm)
	case m.Public:
		return Plan{}, fmt.Errorf("%s adds no noise: it is for data that need no protection, with --public", m.Name)
	}
	p, err := newProblem(spec, people)
	if err != nil {
		return Plan{}, err
	}
	if m.Sampled {
		return p.private(m)
	}
	return p.curator(ctx)
}

// PublicOf returns the public numbers of a task all of whose rows are in one place, of so many people; if single rows
// are protected, each is a person.
func PublicOf(spec *task.Spec, people int) (curator.Public, error) {
	p, err := newProblem(spec, nil)
	p.public.People = people
	return p.public, err
}

func newProblem(spec *task.Spec, people []curator.Person) (problem, error) {
	features, err := spec.Compile()
	if err != nil {
		return problem{}, err
	}
	loss, err := spec.Loss()
	if err != nil {
		return problem{}, err
	}
	x := features.Bound()
	steepest, most := loss.Lipschitz(x), cmp.Or(spec.Model.ClipNorm, 1)
	p := problem{spec: spec, loss: loss, people: people, features: features.Dim(), clips: steepest > most}
	p.public = curator.Public{People: len(people), Items: 1, Dim: loss.Parameters(features.Dim()),
		Lipschitz: min(most, steepest), Smoothness: loss.Smoothness(x),
		Ridge: spec.Model.Ridge, Budget: accounting.Budget{Epsilon: spec.Privacy.Epsilon, Delta: spec.Privacy.Delta}}
	if spec.ByUser() {
		p.public.Items = spec.User.Items
	}
	p.public.Set, err = spec.Set(p.public.Dim)
	return p, err
}

// curator plans a method of package curator.
func (p problem) curator(ctx context.Context) (Plan, error) {
	m, known := curator.Of(p.spec.Schedule.Algorithm)
	if !known {
		return Plan{}, fmt.Errorf("schedule.algorithm %s: not in this version", p.spec.Schedule.Algorithm)
	}
	plan, err := m.Plan(p.public)
	if err != nil {
		return Plan{}, p.named(m.Name, err)
	}
	if err := p.suits(ctx, plan); err != nil {
		return Plan{}, err
	}
	about := statedir.Release{Method: m.Name, Source: m.Source, Least: m.Least(p.public), Phases: plan.Phases,
		NoiseStd: plan.NoiseStd, OnRecords: plan.OnRecords,
		Baseline: p.better(plan)}
	notes := slices.Clone(plan.Notes)
	for i, note := range notes {
		notes[i] = p.words().OfPeople(note)
	}
	about.Bound, about.Notes = p.bound(plan.Bound, notes)
	return p.plan(about, plan.Spent, func(ctx context.Context) (statedir.Release, error) {
		out := about
		r, err := plan.Fit(ctx, p.loss, p.people, randomizer.NewEntropy())
		out.Model, out.Phase, out.Halted = r.Model, r.Phase, r.Halted
		return out, err
	}), nil
}

// words returns the words for the task's unit.
func (p problem) words() wording.Kind {
	if p.spec.ByUser() {
		return wording.Kind{Protects: "user", Silos: 1, Once: true}
	}
	return wording.Kind{Protects: "event", Silos: 1, Once: true}
}

// suits returns an error for a loss that the method is not proved for: a fit that may not take a step is refused
// before its first.
func (p problem) suits(ctx context.Context, plan *curator.Plan) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := plan.Fit(ctx, p.loss, p.people, randomizer.NewEntropy()); err != nil &&
		!errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// plan returns the Plan of a method that spends so much: the release that the folder starts with, the fit, and the
// plan as the folder keeps it.
func (p problem) plan(about statedir.Release, spent accounting.Budget, fit func(context.Context) (statedir.Release,
	error)) Plan {
	about.Model = make([]float64, p.public.Dim)
	p.public.Set.Start(about.Model)
	unit := wire.Unit_UNIT_EVENT
	if p.spec.ByUser() {
		unit = wire.Unit_UNIT_USER
	}
	one := &wire.Phase{Users: 1, Rounds: 1, Cohort: 1, Minimum: 1, RoundsPerUser: 1,
		Mechanism: &wire.Mechanism{Dim: uint32(p.public.Dim), ClipNorm: p.public.Lipschitz, Units: uint64(p.public.People)}}
	return Plan{Start: about, Fit: fit, Wire: &wire.Plan{Algorithm: about.Method, Phases: []*wire.Phase{one},
		Trust:          wire.Trust_TRUST_LOCAL,
		HonestFraction: accounting.One.String(), Epsilon: spent.Epsilon, Delta: max(spent.Delta, p.public.Budget.Delta),
		EpsilonBudget: p.public.Budget.Epsilon, ClipNorm: p.public.Lipschitz,
		Clips: p.clips, Ridge: p.public.Ridge, Set: manifest.WireSet(p.spec.SetDeclaration()), Unit: unit, Silos: 1}}
}

// better names, in a sentence, a baseline of package curator that has the smaller bound or less noise; empty if there
// is none.
func (p problem) better(plan *curator.Plan) string {
	baselines := []string{"output", "output-phases"}
	if slices.Contains(baselines, plan.Method) {
		return ""
	}
	text, best, least := "", "output-phases", plan.Bound
	for _, name := range baselines {
		m, _ := curator.Of(name)
		if b, err := m.Plan(p.public); err == nil && b.Bound < least {
			best, least = name, b.Bound
			text = fmt.Sprintf("%s has a bound of %.3g on its excess risk for the same people and budget, %s %s", name, b.Bound,
				plan.Method, boundOf(plan.Bound))
		}
	}
	for _, c := range curator.Contests() {
		ratio := c.Ratio(p.public)
		if c.Method != plan.Method || c.Paper || !(ratio > 1) {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("a person as one item (output-phases) needs %.2g times less noise, ", ratio)
		if from := c.From(p.public); from > 0 {
			text += fmt.Sprintf("%s no more from %d rows a person on", plan.Method, from)
		} else {
			text += "however many rows a person has"
		}
	}
	if text != "" {
		text += ": " + best + " is expected to do better"
	}
	return text
}

func boundOf(b float64) string {
	if math.IsInf(b, 1) {
		return "none"
	}
	return fmt.Sprintf("%.3g", b)
}

// bound returns the bound b if it is below the trivial risk; otherwise nil, with a note added.
func (p problem) bound(b float64, notes []string) (*float64, []string) {
	trivial := p.public.Trivial()
	if b < trivial {
		return &b, notes
	}
	return nil, append(slices.Clone(notes),
		fmt.Sprintf("its bound of %.3g says nothing: the start, which needs no data, is within %.3g", b, trivial))
}

// named puts the method's name before an error that does not have it, and explains, if rows are protected, that each
// row is a person.
func (p problem) named(name string, err error) error {
	if !strings.HasPrefix(err.Error(), name+": ") {
		err = fmt.Errorf("%s: %w", name, err)
	}
	if !p.spec.ByUser() && strings.Contains(err.Error(), " people") {
		err = fmt.Errorf("%w (each row is a person here: privacy.unit is event)", err)
	}
	return err
}
