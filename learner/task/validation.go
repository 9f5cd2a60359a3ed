package task

import (
	"cmp"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/schedule"
)

// defaultValidationWeight makes the noise of the gradient sqrt(1 + 1/16), 3.1 %, larger.
const defaultValidationWeight = 0.25

// validation declares the scores that a report carries beside the gradient: the loss, and for labels that are
// classes whether the class was predicted, of the announced point on the device's own event. Every task has it
// unless it is switched off.
type validation struct {
	Off bool `json:"off,omitempty"` // nothing beside the gradient
	// Weight is w/L, the norm of the reported scores over clip_norm, or over the clip of a person's mean gradient. A
	// larger weight makes the scores more accurate, and all noise sqrt(1 + weight^2) times as large. Default 0.25.
	Weight float64 `json:"weight,omitempty"`
	// LossBound is the largest loss that is reported; a larger one is reported as this. 0, the default, takes three times
	// the largest loss of a model of zeros for labels that are classes, and once for numbers and counts, rounded up to two
	// digits.
	LossBound float64 `json:"loss_bound,omitempty"`
}

// withDefaults returns a validation with defaults. If the file omits it, it is on, unless silos report minimisers,
// which carry no scores.
func (v *validation) withDefaults(algorithm string) *validation {
	if v == nil {
		m, _ := schedule.Of(algorithm)
		v = &validation{Off: m.Minimizers}
	}
	if !v.Off {
		or(&v.Weight, defaultValidationWeight)
	}
	return v
}

func (v *validation) validate() error {
	switch {
	case v == nil:
		return nil
	case v.Off && v.Weight != 0:
		return refuse("validation.weight", v.Weight, "nothing with validation.off")
	case v.Off && v.LossBound != 0:
		return refuse("validation.loss_bound", v.LossBound, "nothing with validation.off")
	case v.Off:
		return nil
	case v.Weight < 0.001 || v.Weight > 10:
		return refuse("validation.weight", v.Weight, "a number from 0.001 to 10")
	case v.LossBound < 0:
		return refuse("validation.loss_bound", v.LossBound, "a number > 0, or 0 for one that goes by the loss")
	}
	return nil
}

// Scorecard returns the encoding of an event's scores as coordinates; nil where there are none. features is the
// compiled declaration.
func (s *Spec) Scorecard(features *FeatureMap) (*convex.Scorecard, error) {
	v := s.Validation
	if v == nil || v.Off {
		return nil, nil
	}
	loss, err := s.Loss()
	if err != nil {
		return nil, err
	}
	out := &convex.Scorecard{Norm: v.Weight * cmp.Or(s.UserRadius(), 1) * s.ClipNorm(), High: v.LossBound,
		Correctness: features.Classification(), LabelNoise: s.Model.LabelNoise}
	if out.High == 0 {
		out.High = defaultLossBound(loss, features)
	}
	if s.Model.LabelNoise > 0 { // the corrected loss can be negative
		out.Low = -out.High
	}
	if err := out.Validate(); err != nil {
		return nil, fmt.Errorf("task: validation: %w", err)
	}
	return out, nil
}

func defaultLossBound(loss convex.Loss, features *FeatureMap) float64 {
	zero, most := make([]float64, loss.Parameters(1)), 0.0
	for _, label := range features.Labels() { // convex in the label where it is a number, so largest at an end
		most = max(most, loss.Value(zero, convex.Example{Value: []float64{0}, Label: label}))
	}
	if features.Classification() {
		most *= 3
	}
	return roundUp(most)
}

// roundUp returns the smallest number of two decimal digits that is at least x: the same on machines whose logarithms
// differ in the last bits.
func roundUp(x float64) float64 {
	if !(x > 1e-100) {
		return 1 // a model of zeros has no loss
	}
	digit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return math.Ceil(x/digit-1e-6) * digit
}
