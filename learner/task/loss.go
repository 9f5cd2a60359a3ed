package task

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// labelKind is what the label of a loss is.
type labelKind int

const (
	twoClasses  labelKind = iota // -1 or +1
	manyClasses                  // 0 to k-1
	number                       // scaled as declared
	count                        // a whole number from 0
)

// lossTraits says which keys of a declaration a loss gives a meaning to.
type lossTraits struct {
	label                    labelKind
	smooth                   bool
	level, width, scoreBound bool
	denoised                 bool // takes label_noise
}

// lossNames lists the losses in the order in which people meet them.
var lossNames = [...]string{"logistic", "softmax", "squared", "huber", "absolute", "quantile", "hinge", "smoothed-hinge", "poisson"}

// traitsOf returns the traits of a loss; of an unknown one, those of two classes.
func traitsOf(loss string) lossTraits {
	switch loss {
	case "softmax":
		return lossTraits{label: manyClasses, smooth: true}
	case "squared":
		return lossTraits{label: number, smooth: true}
	case "huber":
		return lossTraits{label: number, smooth: true, width: true}
	case "absolute":
		return lossTraits{label: number}
	case "quantile":
		return lossTraits{label: number, level: true}
	case "hinge":
		return lossTraits{label: twoClasses}
	case "smoothed-hinge":
		return lossTraits{label: twoClasses, smooth: true, width: true}
	case "poisson":
		return lossTraits{label: count, smooth: true, scoreBound: true}
	}
	return lossTraits{label: twoClasses, smooth: true, denoised: true} // logistic
}

func (k labelKind) classes() bool { return k == twoClasses || k == manyClasses }

// String says what labels of this kind are, for refusals.
func (k labelKind) String() string {
	return [...]string{"one of two classes, in positive and negative", "one of several classes, in classes", "numbers, from min to max", "counts, up to max"}[k]
}

// Classification reports whether the label is a class, which follows from the loss.
func (s *Spec) Classification() bool { return traitsOf(s.Model.Loss).label.classes() }

// Loss returns the declared loss with its parameters.
func (s *Spec) Loss() (convex.Loss, error) {
	loss, err := s.lossDeclaration().New()
	if err != nil {
		return nil, fmt.Errorf("task: model: %w", err)
	}
	return loss, nil
}

func (s *Spec) lossDeclaration() convex.Declaration {
	m := s.Model
	d := convex.Declaration{Name: m.Loss, Classes: len(s.Label.Classes), Level: m.Level, Width: m.Width, ScoreBound: m.ScoreBound,
		ClassWeights: m.ClassWeights, LabelNoise: m.LabelNoise}
	if traitsOf(m.Loss).label == count {
		d.MaxCount = s.Label.Max
	}
	return d
}

// SetDeclaration returns the declared constraint set, for any number of parameters.
func (s *Spec) SetDeclaration() convex.SetDeclaration {
	return convex.SetDeclaration{Kind: s.Model.Set, Radius: s.Model.Radius, Min: s.Model.Min, Max: s.Model.Max}
}

// Set returns the declared constraint set for that many parameters, as convex.Loss.Parameters counts them.
func (s *Spec) Set(parameters int) (convex.Set, error) {
	set, err := s.SetDeclaration().New(parameters)
	if err != nil {
		return nil, fmt.Errorf("task: model.set: %w", err)
	}
	return set, nil
}

func (s *Spec) checkModel() error {
	m := s.Model
	if err := oneOf("model.loss", m.Loss, lossNames[:]...); err != nil {
		return err
	}
	traits := traitsOf(m.Loss)
	for _, key := range [...]struct {
		path    string
		value   float64
		belongs bool
		most    float64 // 0: no limit
		want    string
	}{
		{"model.level", m.Level, traits.level, math.Nextafter(1, 0), "a number in (0, 1)"},
		{"model.width", m.Width, traits.width, 0, "a number > 0"},
		{"model.score_bound", m.ScoreBound, traits.scoreBound, maxScore, fmt.Sprintf("a number > 0 and at most %d", maxScore)},
	} {
		switch {
		case !key.belongs && key.value != 0:
			return refuse(key.path, key.value, "nothing for loss %s", m.Loss)
		case key.belongs && (key.value <= 0 || key.most > 0 && key.value > key.most):
			return refuse(key.path, key.value, "%s", key.want)
		}
	}
	if m.LabelNoise != 0 && !traits.denoised {
		return refuse("model.label_noise", m.LabelNoise, "nothing for loss %s: corrected for noise it is not convex", m.Loss)
	}
	if m.LabelNoise < 0 || m.LabelNoise >= 0.5 {
		return refuse("model.label_noise", m.LabelNoise, "a number in [0, 0.5)")
	}
	if err := m.checkSet(); err != nil {
		return err
	}
	if m.Ridge < 0 {
		return refuse("model.ridge", m.Ridge, "a number >= 0")
	}
	if m.ClipNorm <= 0 {
		return refuse("model.clip_norm", m.ClipNorm, "a number > 0")
	}
	return nil
}

func (m *Model) checkSet() error {
	if err := oneOf("model.set", m.Set, Ball, Box, Nonnegative, Simplex, L1); err != nil {
		return err
	}
	if m.Set == Box {
		if m.Radius != 0 {
			return refuse("model.radius", m.Radius, "nothing for set box: min and max are its size")
		}
		return checkRange("model", m.Min, m.Max)
	}
	switch {
	case m.Min != 0:
		return refuse("model.min", m.Min, "nothing for set %s", m.Set)
	case m.Max != 0:
		return refuse("model.max", m.Max, "nothing for set %s", m.Set)
	case m.Radius <= 0:
		return refuse("model.radius", m.Radius, "a number > 0")
	}
	return nil
}

// checkLoss refuses what is left to the loss itself, once model and label are known to be sound one by one.
func (s *Spec) checkLoss() error {
	classes := 2
	if s.Model.Loss == "softmax" {
		classes = len(s.Label.Classes)
	}
	if w := s.Model.ClassWeights; len(w) > 0 {
		if !s.Classification() {
			return refuse("model.class_weights", w, "nothing for loss %s: its labels are %s", s.Model.Loss, traitsOf(s.Model.Loss).label)
		}
		if len(w) != classes {
			return refuse("model.class_weights", w, "%d numbers, one a class", classes)
		}
		for i, v := range w {
			if v <= 0 {
				return refuse(fmt.Sprintf("model.class_weights.%d", i), v, "a number > 0")
			}
		}
	}
	d := s.lossDeclaration()
	if _, err := d.New(); err != nil {
		path, value := "model.loss", any(s.Model.Loss)
		if d.LabelNoise = 0; s.Model.LabelNoise > 0 {
			if _, clean := d.New(); clean == nil {
				path, value = "model.label_noise", s.Model.LabelNoise
			}
		}
		return refuse(path, value, "what the loss accepts: %v", err)
	}
	if d := s.dimension(); classes > 2 && d > maxDimension/classes {
		return refuse("label.classes", fmt.Sprintf("%d labels", classes), "at most %d parameters in all, with %d features", maxDimension, d)
	}
	return nil
}
