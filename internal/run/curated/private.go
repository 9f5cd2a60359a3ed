package curated

import (
	"context"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/curator"
	"github.com/panlearn/panlearn/learner/research/private"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// SampledOf returns the public numbers of a method of package private, whose units are single rows, for a task of
// which PublicOf has p.
func SampledOf(spec *task.Spec, p curator.Public, method string) (private.Public, error) {
	switch set := spec.SetDeclaration(); {
	case spec.ByUser():
		return private.Public{},
			errors.New("its guarantee is for one row, and privacy.unit is user: output-phases is for people")
	case set.Kind != "ball":
		return private.Public{}, fmt.Errorf("model.set %s: its bound is for models in a ball", set.Kind)
	case p.Ridge > 0:
		return private.Public{},
			fmt.Errorf("model.ridge %v: its bound is for losses without one; model.radius bounds the model", p.Ridge)
	}
	return private.Public{Method: method, N: p.People, Dim: p.Dim, Lipschitz: p.Lipschitz, Radius: p.Set.Radius(),
		Epsilon: p.Budget.Epsilon, Delta: p.Budget.Delta,
		Replace: true, Convex: true}, nil
}

// private plans a method of package private.
func (p problem) private(m schedule.Curated) (Plan, error) {
	method := m.Name
	public, err := SampledOf(p.spec, p.public, method)
	if err != nil {
		return Plan{}, p.named(method, err)
	}
	plan, err := private.NewPlan(public)
	if err != nil {
		return Plan{}, p.named(method, err)
	}
	about := statedir.Release{Method: method, Source: m.Source, Phases: 1, Bound: &plan.Bound,
		OnRecords: method != schedule.ResqueSCO, Depth: int64(plan.Rounds), Queries: plan.Queries,
		Notes: []string{
			fmt.Sprintf("a row is in a step with probability %.4g; noise of a coordinate of a step's sum %.4g clip norms",
				plan.Rate, plan.Noise),
		}}
	if method == schedule.Resque && plan.Baseline < plan.Bound {
		about.Baseline = plan.Advice() + ": it is expected to do better"
	}
	if method == schedule.ResqueBall {
		about.Bound, about.Baseline = nil, plan.Advice()
	}
	if method == schedule.ResqueSCO {
		about.Baseline = plan.Advice()
	}
	rows := make([]convex.Example, 0, len(p.people))
	for _, one := range p.people {
		rows = append(rows, one...)
	}
	data := private.Data{Loss: p.loss, Features: p.features, Rows: rows}
	return p.plan(about, accounting.Budget{Epsilon: plan.Cost.ReplaceEpsilon, Delta: plan.Cost.ReplaceDelta},
		func(ctx context.Context) (statedir.Release, error) {
			out := about
			r, err := plan.Fit(ctx, data, randomizer.NewEntropy())
			out.Model, out.Phase = r.Theta, 1
			return out, err
		}), nil
}
