package learner_test

import (
	"fmt"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// The loop around an Algorithm. The cohort here is the real randomizer with everybody holding the same vector; in a
// run the totals come from the shuffle stage, and every step is committed before the next query is announced.
func ExampleAlgorithm() {
	loss := convex.Squared{}
	everybody := convex.Example{Value: []float64{0.6, -0.8}, Label: 0.5}
	proposal, err := planning.MakePlan(planning.Problem{
		Users: 20000, Dim: 2, ClipNorm: 2, Set: convex.SetDeclaration{Radius: 1.5}, Epsilon: 1, Delta: 1e-6,
		HonestFraction: accounting.One,
	}.ForLoss(loss, 1, 0.5))
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := proposal.Plan
	params, _ := manifest.Params(plan.Phases[0].Mechanism)
	device, _ := randomizer.NewVectorSum(params, nil)
	alg, _ := learner.New(plan)
	gradient := make([]float64, manifest.Dim(plan))
	for !alg.Done() {
		query := alg.Query()
		users, totals := manifest.Cohort(plan, query.Step), make([]uint64, manifest.Dim(plan))
		for range users {
			loss.Gradient(gradient, query.Point, everybody)
			convex.Clip(gradient, plan.ClipNorm)
			counts, _ := device.Encode(nil, gradient)
			for j, c := range counts {
				totals[j] += uint64(c)
			}
		}
		estimate, err := method.EstimateMean(params, totals, users, users*uint64(params.Trials))
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := alg.Step(estimate); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("loss below 0.01:", loss.Value(alg.Model(), everybody) < 0.01)
	// Output: loss below 0.01: true
}
