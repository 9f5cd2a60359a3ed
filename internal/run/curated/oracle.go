package curated

import (
	"context"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/resque"
	"github.com/panlearn/panlearn/learner/task"
)

// An Oracle is a fit of rows that need no protection, by queries in parallel.
type Oracle struct {
	Spec    *task.Spec
	Rows    []convex.Example // those that do not fit are left out
	Gap     float64          // see resque.Config; 0: clip norm times radius over Kappa
	Workers int              // goroutines; the model does not depend on how many there are
	Watch   func(depth, queries int64)
}

// kappa is L R, the clip norm times the radius, divided by the default gap.
const kappa = 20

// Minimize runs the task's method. Its draws are the same in each run: nothing here is secret.
func (o Oracle) Minimize(ctx context.Context) (resque.Result, error) {
	method, set := o.Spec.Schedule.Algorithm, o.Spec.SetDeclaration()
	p, err := newProblem(o.Spec, nil)
	switch {
	case err != nil:
		return resque.Result{}, err
	case set.Kind != "ball":
		return resque.Result{}, fmt.Errorf("%s: model.set %s: it is for models in a ball", method, set.Kind)
	case o.Spec.Model.Ridge > 0:
		return resque.Result{}, fmt.Errorf("%s: model.ridge %v: it is for losses without one; model.radius bounds the model",
			method, o.Spec.Model.Ridge)
	case !(o.Gap >= 0) || math.IsInf(o.Gap, 1):
		return resque.Result{}, fmt.Errorf("--gap %v: want a finite number > 0", o.Gap)
	}
	var rows []convex.Example
	for _, e := range o.Rows {
		if e.Validate(p.features) == nil && p.loss.CheckLabel(e.Label) == nil {
			rows = append(rows, e)
		}
	}
	oracle, err := resque.NewRows(p.loss, rows, p.features, p.public.Lipschitz)
	if err != nil {
		return resque.Result{}, err
	}
	gap := o.Gap
	if gap == 0 {
		gap = p.public.Lipschitz * set.Radius / kappa
	}
	return resque.Minimize(ctx, resque.Problem{Oracle: oracle, Dim: p.public.Dim, L: p.public.Lipschitz, R: set.Radius},
		resque.Config{Algorithm: method, Gap: gap, Workers: o.Workers, Watch: o.Watch})
}
