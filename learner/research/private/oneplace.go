package private

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// OnePlace returns all methods of this package as oneplace methods, noisy SGD first.
func OnePlace() []oneplace.Method {
	out := []oneplace.Method{
		{Name: NoisySGD, Standing: oneplace.RowsBaseline, OnRecords: true,
			Source: "projected noisy stochastic gradient descent on Poisson samples (docs/proofs/resque.md, Private)"},
		{Name: ReSQue, OnRecords: true,
			Source: "Carmon et al. 2023, Theorem 3, at a fixed lambda and one slot a record (docs/proofs/resque.md, Private)"},
		{Name: ReSQueSCO,
			Source: "Carmon et al. 2023, Theorem 4, by regularised phases on disjoint blocks (docs/proofs/resque.md, Localisation)"},
		{Name: ReSQueBall, Standing: oneplace.Unranked, OnRecords: true,
			Source: "Carmon et al. 2023, Theorem 3, with its Algorithms 5 to 7 and one slot a record (docs/proofs/resque.md, Private)"},
	}
	for i := range out {
		name, onRecords := out[i].Name, out[i].OnRecords
		out[i].Rows = true
		out[i].Least = func(oneplace.Problem) int { return 2 }
		out[i].Plan = func(p oneplace.Problem) (*oneplace.Plan, error) {
			plan, err := onePlace(name, p)
			if plan != nil {
				plan.OnRecords = onRecords
			}
			return plan, err
		}
	}
	return out
}

// onePlace plans a method, whose units are single rows, for one row replaced by another.
func onePlace(method string, p oneplace.Problem) (*oneplace.Plan, error) {
	switch {
	case p.ByUser:
		return nil, errors.New("its guarantee is for one row, and privacy.unit is user: output-phases is for people")
	case p.Declared.Kind != "ball":
		return nil, fmt.Errorf("model.set %s: its bound is for models in a ball", p.Declared.Kind)
	case p.Ridge > 0:
		return nil, fmt.Errorf("model.ridge %v: its bound is for losses without one; model.radius bounds the model", p.Ridge)
	}
	plan, err := NewPlan(Public{Method: method, N: p.People, Dim: p.Dim, Lipschitz: p.Lipschitz, Radius: p.Set.Radius(),
		Epsilon: p.Budget.Epsilon, Delta: p.Budget.Delta, Replace: true, Convex: true, Rounds: p.Rounds})
	if err != nil {
		return nil, err
	}
	out := &oneplace.Plan{Phases: 1, Bound: plan.Bound, Depth: int64(plan.Rounds), Queries: plan.Queries,
		Spent: accounting.Budget{Epsilon: plan.Cost.ReplaceEpsilon, Delta: plan.Cost.ReplaceDelta},
		Notes: []string{
			fmt.Sprintf("a row is in a step with probability %.4g; noise of a coordinate of a step's sum %.4g clip norms",
				plan.Rate, plan.Noise),
		}}
	switch {
	case method == ReSQueBall || method == ReSQueSCO:
		out.Better = plan.advice()
	case method == ReSQue && plan.Baseline < plan.Bound:
		out.Better = plan.advice() + ": it is expected to do better"
	}
	out.Fit = func(ctx context.Context, people []oneplace.Person, entropy rand.Source) (oneplace.Release, error) {
		rows := make([]convex.Example, 0, len(people))
		for _, one := range people {
			rows = append(rows, one...)
		}
		r, err := plan.Fit(ctx, Data{Loss: p.Loss, Features: p.Features, Rows: rows}, entropy)
		return oneplace.Release{Model: r.Theta, Phase: 1}, err
	}
	return out, nil
}
