package curated

import (
	"context"
	"fmt"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/resque/private"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// sources are where the methods of package private are from.
var sources = map[string]string{
	schedule.NoisySGD:   "projected noisy stochastic gradient descent on Poisson samples (docs/resque.md, Private)",
	schedule.Resque:     "Carmon et al. 2023, Theorem 3, at a fixed lambda and one slot a record (docs/resque.md, Private)",
	schedule.ResqueSCO:  "Carmon et al. 2023, Theorem 4, by regularised phases on disjoint blocks (docs/resque.md, Localisation)",
	schedule.ResqueBall: "Carmon et al. 2023, Theorem 3, with its Algorithms 5 to 7 and one slot a record (docs/resque.md, Private)",
}

// private plans a method of package private, whose units are single rows.
func (p problem) private() (Plan, error) {
	method, set := p.spec.Schedule.Algorithm, p.spec.SetDeclaration()
	switch {
	case p.spec.ByUser():
		return Plan{}, fmt.Errorf("%s: its guarantee is for one row, and privacy.unit is user: output-phases is for people", method)
	case set.Kind != "ball":
		return Plan{}, fmt.Errorf("%s: model.set %s: its bound is for models in a ball", method, set.Kind)
	case p.public.Ridge > 0:
		return Plan{}, fmt.Errorf("%s: model.ridge %v: its bound is for losses without one; model.radius bounds the model", method, p.public.Ridge)
	}
	plan, err := private.NewPlan(private.Public{Method: method, N: p.public.People, Dim: p.public.Dim, Lipschitz: p.public.Lipschitz, Radius: set.Radius,
		Epsilon: p.public.Budget.Epsilon, Delta: p.public.Budget.Delta, Replace: true, Convex: true})
	if err != nil {
		return Plan{}, p.named(method, err)
	}
	about := statedir.Release{Method: method, Source: sources[method], Phases: 1, Bound: &plan.Bound, OnRecords: method != schedule.ResqueSCO, Depth: int64(plan.Rounds), Queries: plan.Queries,
		Notes: []string{
			fmt.Sprintf("a row is in a step with probability %.4g; noise of a coordinate of a step's sum %.4g clip norms", plan.Rate, plan.Noise),
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
	return p.plan(about, accounting.Budget{Epsilon: plan.Cost.ReplaceEpsilon, Delta: plan.Cost.ReplaceDelta}, func(ctx context.Context) (statedir.Release, error) {
		out := about
		r, err := plan.Fit(ctx, data, randomizer.NewEntropy())
		out.Model, out.Phase = r.Theta, 1
		return out, err
	}), nil
}
