package convex_test

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// Deadzone is the loss max(0, |<theta, x> - y| - w) of support vector regression: errors up to w, for example
// by rounding, cost nothing.
type Deadzone struct{ W float64 }

// A loss needs these methods. What they return has to hold for every theta and every label that CheckLabel accepts: the
// noise is calibrated and the steps are planned with them.

func (Deadzone) Name() string { return "deadzone" }

func (Deadzone) Parameters(features int) int { return features }

func (l Deadzone) Value(theta []float64, e convex.Example) float64 {
	return max(0, math.Abs(e.Dot(theta)-e.Label)-l.W)
}

func (l Deadzone) Gradient(dst, theta []float64, e convex.Example) {
	clear(dst)
	switch r := e.Dot(theta) - e.Label; {
	case r > l.W:
		e.AddTo(dst, 1)
	case r < -l.W:
		e.AddTo(dst, -1)
	}
}

func (Deadzone) Lipschitz(x float64) float64 { return x }

func (Deadzone) Smoothness(x float64) float64 {
	if x == 0 {
		return 0
	}
	return math.Inf(1) // the slope jumps
}

func (Deadzone) CheckLabel(y float64) error {
	if math.IsNaN(y) || math.IsInf(y, 0) {
		return fmt.Errorf("label: not finite, want a finite number")
	}
	return nil
}

// Prox serves methods that smooth the loss, and may be left out where none is used. In the score s = <u, x> it
// minimizes h(s) + (s - z)^2/(2c) with c = ||x||^2/b: the residual moves towards the zone by c, and stops at
// its edge.
func (l Deadzone) Prox(dst, theta []float64, e convex.Example, b float64) {
	copy(dst, theta)
	n, r := e.Norm(), e.Dot(theta)-e.Label
	if out := math.Abs(r) - l.W; out > 0 {
		slope := math.Copysign(min(1, out*b/(n*n)), r)
		e.AddTo(dst, -slope/b)
	}
}

// A loss of one's own has the methods of convex.Loss, and Prox where its envelope is wanted.
func ExampleLoss() {
	var loss convex.Proximal = Deadzone{W: 0.5}
	e := convex.Example{Value: []float64{1}, Label: 2}

	smooth, err := convex.NewEnvelope(loss, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: smoothness %v, Lipschitz constant %v\n", smooth.Name(), smooth.Smoothness(1), smooth.Lipschitz(1))
	gradient := make([]float64, 1)
	for _, theta := range []float64{2.4, 2.56, 3} {
		smooth.Gradient(gradient, []float64{theta}, e)
		fmt.Printf("theta %v: loss %.3f, envelope %.3f, its gradient %.2f\n",
			theta, loss.Value([]float64{theta}, e), smooth.Value([]float64{theta}, e), gradient[0])
	}
	// Output:
	// deadzone: smoothness 10, Lipschitz constant 1
	// theta 2.4: loss 0.000, envelope 0.000, its gradient 0.00
	// theta 2.56: loss 0.060, envelope 0.018, its gradient 0.60
	// theta 3: loss 0.500, envelope 0.450, its gradient 1.00
}

// A task file's keys become a Declaration, and that a loss.
func ExampleDeclaration() {
	loss, err := convex.Declaration{Name: "quantile", Level: 0.9}.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(loss.Name(), loss.Lipschitz(2), loss.Smoothness(2))
	_, err = convex.Declaration{Name: "hinge", LabelNoise: 0.1}.New()
	fmt.Println(err)
	// Output:
	// quantile 1.8 +Inf
	// loss: label_noise: 0.1, want nothing for loss hinge: corrected for noise it is not convex
}

// The parameters of a mixture: at least 0, and summing to 1.
func ExampleSetDeclaration() {
	set, err := convex.SetDeclaration{Kind: "simplex", Radius: 1}.New(4)
	if err != nil {
		fmt.Println(err)
		return
	}
	theta := make([]float64, 4)
	set.Start(theta)
	fmt.Println(theta)
	set.Project(theta, []float64{1, 0.5, 0.25, -3})
	fmt.Println(theta, set.Contains(theta))
	// Output:
	// [0.25 0.25 0.25 0.25]
	// [0.75 0.25 0 0] true
}
