package convex

import (
	"fmt"
	"slices"
	"strings"
)

// A Declaration is a loss as a task file and a plan name it. All of it is public. A parameter that the loss does not take is 0.
type Declaration struct {
	Name         string    `json:"name"`                    // logistic, softmax, squared, huber, absolute, quantile, hinge, smoothed-hinge or poisson
	Classes      int       `json:"classes,omitempty"`       // softmax: number of classes, at least 2
	Level        float64   `json:"level,omitempty"`         // quantile: level in (0, 1)
	Width        float64   `json:"width,omitempty"`         // huber, in units of the label, and smoothed-hinge, in units of the margin; above 0
	ScoreBound   float64   `json:"score_bound,omitempty"`   // poisson: largest score at which exp is kept, in (0, 300]
	MaxCount     float64   `json:"max_count,omitempty"`     // poisson: largest count; 0 accepts any, and then there is no Lipschitz constant
	ClassWeights []float64 `json:"class_weights,omitempty"` // losses of classes, see NewWeighted; nil means 1 for all
	LabelNoise   float64   `json:"label_noise,omitempty"`   // logistic and squared: probability of a flipped label, in [0, 0.5), see NewDenoised
}

// lossNames are in the order of the documentation.
var lossNames = []string{"logistic", "softmax", "squared", "huber", "absolute", "quantile", "hinge", "smoothed-hinge", "poisson"}

// NewLoss returns the loss of the given name, for losses without parameters: logistic, squared, absolute and hinge.
func NewLoss(name string) (Loss, error) { return Declaration{Name: name}.New() }

// New returns the declared loss. The error names the parameter that does not fit, and what would be accepted.
func (d Declaration) New() (Loss, error) {
	if !slices.Contains(lossNames, d.Name) {
		return nil, fmt.Errorf("loss: unknown name %q, want one of %s", d.Name, strings.Join(lossNames, ", "))
	}
	for _, p := range [...]struct {
		name  string
		set   bool
		taken []string
	}{
		{"classes", d.Classes != 0, []string{"softmax"}},
		{"level", d.Level != 0, []string{"quantile"}},
		{"width", d.Width != 0, []string{"huber", "smoothed-hinge"}},
		{"score bound", d.ScoreBound != 0, []string{"poisson"}},
		{"max count", d.MaxCount != 0, []string{"poisson"}},
		{"class weights", d.ClassWeights != nil, []string{"logistic", "softmax", "squared", "hinge", "smoothed-hinge"}},
	} {
		if p.set && !slices.Contains(p.taken, d.Name) {
			return nil, fmt.Errorf("%s: not a parameter of the loss %s, only of %s", p.name, d.Name, strings.Join(p.taken, ", "))
		}
	}
	l, err := d.plain()
	switch {
	case err != nil:
		return nil, fmt.Errorf("loss %s: %w", d.Name, err)
	case d.LabelNoise != 0:
		l, err = NewDenoised(l, d.LabelNoise, d.ClassWeights)
	case d.ClassWeights != nil:
		l, err = NewWeighted(l, d.ClassWeights)
	}
	if err != nil {
		return nil, fmt.Errorf("loss %s: %w", d.Name, err)
	}
	return l, nil
}

func (d Declaration) plain() (Loss, error) {
	switch d.Name {
	case "softmax":
		return NewSoftmax(d.Classes)
	case "squared":
		return Squared{}, nil
	case "huber":
		return NewHuber(d.Width)
	case "absolute":
		return Absolute{}, nil
	case "quantile":
		return NewQuantile(d.Level)
	case "hinge":
		return Hinge{}, nil
	case "smoothed-hinge":
		return NewSmoothedHinge(d.Width)
	case "poisson":
		return NewPoisson(d.ScoreBound, d.MaxCount)
	}
	return Logistic{}, nil
}
