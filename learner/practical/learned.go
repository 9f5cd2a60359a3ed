package practical

import (
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// Learned is the result of the looks: the coordinates and the steps of the next rounds. Set, Start, Curvature and Step
// are in the coordinates w of the steps; devices are asked at Point(w).
type Learned struct {
	Frame convex.Frame

	// Gain and Offset convert scores into the units of the label: Point(w) is Gain times the whitener times w, plus Offset
	// for the intercept.
	Gain, Offset float64
	// Weight converts a gradient at a point into a gradient at w, for a risk in the units of the steps.
	Weight float64

	Start     []float64             // where the steps begin; nil in a round of the matrix
	Set       convex.SetDeclaration // constraint set of w; the zero value: none
	Curvature float64               // v of Acceleration
	Step      float64               // of Descent
	// FromStart reports whether the steps of a plan that ends begin at the declared start, and use gradients only as far
	// as they exceed their noise, see Shrink.
	FromStart bool `json:",omitempty"`
	// Trust is the growth of v with the squared norm of the first gradient, less its noise; 0: v does not grow.
	Trust  float64 `json:",omitempty"`
	Stream *Stream `json:",omitempty"` // of a task without an end, which has neither Curvature nor Step

	Report Report
}

// A Report summarises for display what the looks learned about the data. It holds only released numbers.
type Report struct {
	Norm   float64   // rho: root of the mean square of the norm of u
	Shares []float64 // of the classes; nil for numbers and counts
	// standard deviation of a share, from privacy noise and sampling; 0 for numbers, and in states of older builds
	Noise     float64 `json:",omitempty"`
	Mean      float64 // of the labels as the loss sees them; 0 for classes
	Deviation float64 // of labels around Mean, with some noise; 0 for classes
	// standard deviation of the residual of a linear fit in units of the label, after the matrix; 0 before
	Residual  float64
	Effective float64 // number of coordinates that the matrix sees above its noise; 0 before
	Clipped   float64 // share of gradients expected to be clipped: of classes at the start, of numbers at a linear fit
}

// Point returns the announced point for w.
func (l *Learned) Point(w []float64) []float64 {
	out := make([]float64, len(w))
	n := l.Frame.Dim()
	for i := 0; i < len(w); i += n {
		block := out[i : i+n]
		l.Frame.Whiten(block, w[i:i+n])
		for j := range block {
			block[j] *= l.Gain
		}
		if l.Frame.Intercept != 0 {
			block[n-1] += l.Offset
		}
	}
	return out
}

// Model returns the model at w in plain coordinates; intercept is the value of the plain intercept feature.
func (l *Learned) Model(w []float64, intercept float64) []float64 {
	return l.Frame.Fold(l.Point(w), intercept)
}

// Gradient returns the gradient of loss and ridge at w, from the mean of the reports at Point(w) in units of the clip.
func (l *Learned) Gradient(estimate, w []float64, ridge, intercept float64) []float64 {
	out := slices.Clone(estimate)
	for i := range out {
		out[i] *= l.Frame.Clip
	}
	if ridge > 0 {
		pull, whitened := make([]float64, len(w)), make([]float64, len(w))
		l.Frame.Ridge(pull, l.Point(w), ridge, intercept)
		n := l.Frame.Dim()
		for i := 0; i < len(w); i += n {
			l.Frame.Whiten(whitened[i:i+n], pull[i:i+n])
		}
		for i, v := range whitened {
			out[i] += v
		}
	}
	for i := range out {
		out[i] *= l.Weight
	}
	return out
}

// ridgeCurvature bounds the largest eigenvalue of the ridge's second derivative in the coordinates of w, without a
// whitener.
func (l *Learned) ridgeCurvature(ridge, intercept float64) float64 {
	if ridge == 0 {
		return 0
	}
	var top, constant float64
	for j, s := range l.Frame.Scale {
		top = max(top, s*s)
		constant += s * s * l.Frame.Center[j] * l.Frame.Center[j]
	}
	if intercept != 0 {
		top += (constant + l.Frame.Intercept*l.Frame.Intercept) / intercept / intercept
	}
	return ridge * l.Gain * l.Weight * top
}

// begin puts the start into the set.
func (l *Learned) begin(start []float64) error {
	l.Start = start
	if l.Set == (convex.SetDeclaration{}) {
		return nil
	}
	set, err := l.Set.New(len(start))
	if err != nil {
		return err
	}
	set.Project(start, start)
	return nil
}
