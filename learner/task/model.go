package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// A Label declares what is predicted: one of two classes (Positive and Negative), one of several (Classes), a number or
// a count (Min and Max). Which of them follows from the loss.
type Label struct {
	// Column is the field of csv, jsonl or parquet; libsvm and idx have a place for the label.
	Column string `json:"column,omitempty"`

	// Positive and Negative list the labels of the classes +1 and -1. Numbers are compared as numbers: "+1" is "1".
	Positive []string `json:"positive,omitempty"`
	Negative []string `json:"negative,omitempty"`

	// Classes lists the labels of softmax; the loss sees their positions, from 0. Numbers are compared as numbers.
	Classes []string `json:"classes,omitempty"`

	// Min and Max are public bounds of a numeric target; values outside are moved to the nearer one. Of a count (poisson)
	// Min is 0 and Max a whole number.
	Min   float64 `json:"min,omitempty"`
	Max   float64 `json:"max,omitempty"`
	Scale Scale   `json:"scale,omitempty"` // of numbers; default symmetric. The loss sees counts as they are
	// Unit > 0 belongs to scale log: the loss sees the logarithm sign(y) ln(1 + |y|/Unit), its bounds scaled to [-1, 1].
	Unit float64 `json:"unit,omitempty"`
	// Marks are removed before a number or a count is read, as in Column.Marks.
	Marks []string `json:"marks,omitempty"`
	// Offset declares that the model learns the number minus the offset of the public model. Min and Max bound the
	// difference.
	Offset bool `json:"offset,omitempty"`
}

// Model is the learned model: linear scores under a convex loss, in a convex set around zero. Radius, Min, Max, Ridge
// and ClipNorm are in the coordinates of the feature map's output. A key that does not apply to the loss or the set is
// refused.
type Model struct {
	// Loss is one of convex.LossNames, see convex.Declaration.
	Loss string `json:"loss"`
	// Level is the quantile that is predicted, in (0, 1), of loss quantile.
	Level float64 `json:"level,omitempty"`
	// Width is the residual at which huber turns from a parabola into a line, and the width of the rounded
	// corner of smoothed-hinge; > 0.
	Width float64 `json:"width,omitempty"`
	// ScoreBound bounds the score, the logarithm of the predicted count, of loss poisson; in (0, 300]. Predictions are
	// constant above it.
	ScoreBound float64 `json:"score_bound,omitempty"`
	// ClassWeights multiply the loss of an event by its class: negative, positive; for softmax in the order of
	// Label.Classes. Empty: all 1.
	ClassWeights []float64 `json:"class_weights,omitempty"`
	// LabelNoise is the probability, in [0, 0.5), with which a label is known to be flipped; the loss is corrected for it.
	// Loss logistic: the others would not stay convex.
	LabelNoise float64 `json:"label_noise,omitempty"`

	// Set holds the parameters, intercept included: one of convex.SetKinds; default ball.
	Set string `json:"set"`
	// Radius is R > 0, the size of every set but the box: the norm that parameters of the ball and of nonnegative stay
	// within, the sum of the parameters for the simplex, the sum of their magnitudes for l1. A practical plan needs none
	// for the ball, the default, and for nonnegative: they are then unbounded.
	Radius float64 `json:"radius,omitempty"`
	// Min <= 0 and Max >= 0 bound every parameter of the box.
	Min float64 `json:"min,omitempty"`
	Max float64 `json:"max,omitempty"`

	// Ridge is lambda >= 0 of the term (lambda/2)||theta||^2, intercept included, which the learner adds to the loss. It
	// costs no privacy. Default 0.
	Ridge float64 `json:"ridge,omitempty"`
	// ClipNorm is L, the bound on the norm of one event's gradient. Default 1. In a practical plan it is in the
	// coordinates of the frame, and the default, 0, derives it from the first cohort.
	ClipNorm float64 `json:"clip_norm,omitempty"`
	// Start is a public or released model that learning begins with; nil: the set's start, see convex.Set.
	Start *File `json:"start,omitempty"`
	// Smoothness is a public bound on the smoothness of the mean loss of the population: the largest curvature of the loss
	// in its score times the largest eigenvalue of the mean of x x^T. The proved plan's steps and its bound on the risk
	// rest on it; privacy does not. 0 (default): the largest of any one event.
	Smoothness float64 `json:"smoothness,omitempty"`
}

// traits returns the loss's row of the table of losses; for an unknown loss, a row with two classes.
func (m Model) traits() convex.Traits { return convex.TraitsOf(m.Loss) }

// Classification reports whether the label is a class, which follows from the loss.
func (m Model) Classification() bool { return m.traits().Labels.Classes() }

// Loss returns the declared loss with its parameters.
func (s *Spec) Loss() (convex.Loss, error) {
	loss, err := s.Model.declaration(s.Label).New()
	if err != nil {
		return nil, fmt.Errorf("task: model: %w", err)
	}
	return loss, nil
}

// declaration returns the declaration of the loss, to which the label contributes.
func (m Model) declaration(label Label) convex.Declaration {
	d := convex.Declaration{Name: m.Loss, Level: m.Level, Width: m.Width, ScoreBound: m.ScoreBound,
		ClassWeights: m.ClassWeights, LabelNoise: m.LabelNoise}
	switch m.traits().Labels {
	case convex.ManyClasses:
		d.Classes = len(label.Classes)
	case convex.Counts:
		d.MaxCount = label.Max
	}
	return d
}

// SetDeclaration returns the declared constraint set, for any number of parameters. A practical plan needs no radius
// of a ball: it is then one of radius convex.MaxScale.
func (s *Spec) SetDeclaration() convex.SetDeclaration { return s.Model.set(s.Schedule.practical()) }

func (m Model) set(practical bool) convex.SetDeclaration {
	if practical && m.Radius == 0 && m.Min == 0 && m.Max == 0 && (m.Set == "ball" || m.Set == "nonnegative") {
		return convex.SetDeclaration{Kind: m.Set, Radius: convex.MaxScale}
	}
	return convex.SetDeclaration{Kind: m.Set, Radius: m.Radius, Min: m.Min, Max: m.Max}
}

// Set returns the declared constraint set for that many parameters, as convex.Loss.Parameters counts them.
func (s *Spec) Set(parameters int) (convex.Set, error) {
	set, err := s.SetDeclaration().New(parameters)
	if err != nil {
		return nil, fmt.Errorf("task: model.set: %w", err)
	}
	return set, nil
}

// ClipNorm bounds the gradient in a report: 1, the unit of the clip that rounds announce, in a practical plan.
func (s *Spec) ClipNorm() float64 {
	if s.Schedule.practical() {
		return 1
	}
	return s.Model.ClipNorm
}

// Practical returns the problem from which the frame and the steps of a practical plan are made; nil for a
// proved plan. features is the compiled declaration.
func (s *Spec) Practical(features *FeatureMap) *practical.Problem {
	if !s.Schedule.practical() {
		return nil
	}
	out := &practical.Problem{Loss: s.Model.declaration(s.Label), Features: s.Features.width(),
		Indicators: features.indicators(), Bound: s.Features.bound(s.NormBound), Intercept: s.Intercept,
		Clip: s.Model.ClipNorm, Ridge: s.Model.Ridge, Set: s.SetDeclaration(), Users: uint64(s.Schedule.Users),
		Interactive: s.Schedule.Interactive, Continuous: s.Schedule.Continuous != ""}
	if !s.Model.Classification() {
		out.LabelLow, out.LabelHigh = slices.Min(features.Labels()), slices.Max(features.Labels())
	}
	if out.Start = features.Origin(); out.Continuous {
		out.Start = nil // the bank begins there anyway
	}
	return out
}

// validate refuses a model that is contradictory or out of range; practical reports whether the plan is a practical
// one.
func (m Model) validate(label Label, practical bool) error {
	if err := oneOf("model.loss", m.Loss, convex.LossNames()...); err != nil {
		return err
	}
	d := m.declaration(label)
	if d.Classes > 0 {
		d.ClassWeights = nil // validateLoss counts them, once the label is known to be sound
	}
	if err := refuseParameter(d.Check()); err != nil && !strings.HasPrefix(err.Path, "label.") {
		return err
	}
	if err := oneOf("model.set", m.Set, convex.SetKinds()...); err != nil {
		return err
	}
	if _, err := m.set(practical).New(1); err != nil {
		return refuseParameter(err)
	}
	if m.Ridge < 0 {
		return refuse("model.ridge", m.Ridge, "a number >= 0")
	}
	if m.Smoothness < 0 {
		return refuse("model.smoothness", m.Smoothness, "a number > 0, or 0 for that of one event")
	}
	if m.Smoothness > 0 && !m.traits().Smooth {
		return refuse("model.smoothness", m.Smoothness, "nothing for loss %s, which is not smooth", m.Loss)
	}
	if m.ClipNorm < 0 || m.ClipNorm == 0 && !practical {
		return refuse("model.clip_norm", m.ClipNorm, "a number > 0")
	}
	return nil
}

// validateLoss applies the loss's own checks to a model and a label that are valid by themselves. d is the length of a
// feature vector, intercept included.
func (m Model) validateLoss(label Label, d int) error {
	if _, err := m.declaration(label).New(); err != nil {
		return refuseParameter(err)
	}
	if classes := len(label.Classes); classes > 2 && d > maxDimension/classes {
		return refuse("label.classes", fmt.Sprintf("%d labels", classes), "at most %d parameters in all, with %d features",
			maxDimension, d)
	}
	return nil
}

// refuseParameter turns the refusal of a parameter of a loss or a set into a refusal of the key that declares
// it; nil for nil.
func refuseParameter(err error) *FieldError {
	if err == nil {
		return nil
	}
	var p *convex.ParameterError
	if !errors.As(err, &p) {
		return &FieldError{Path: "model", Want: "what the loss and the set accept: " + err.Error()}
	}
	path := "model." + p.Parameter
	switch p.Parameter {
	case "classes":
		path = "label.classes"
	case "max_count":
		path = "label.max"
	}
	return &FieldError{Path: path, Value: shorten(fmt.Sprint(p.Value)), Want: p.Want}
}
