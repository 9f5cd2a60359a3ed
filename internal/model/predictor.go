package model

import (
	"fmt"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// A Predictor is a model made ready to score raw events.
type Predictor struct {
	Features *task.FeatureMap
	Loss     convex.Loss
	Theta    []float64 // in the coordinates of the map

	spec *task.Spec
}

// NewPredictor reads a snapshot back. The format of the data may be another than the one the task learned from; empty
// is the task's own.
func NewPredictor(s Snapshot, format task.Format) (Predictor, error) {
	spec, err := task.ParseDeclaration(s.Declaration)
	if err != nil {
		return Predictor{}, fmt.Errorf("model: declaration: %w", err)
	}
	if format != "" {
		if spec, err = spec.ReadAs(format); err != nil {
			return Predictor{}, fmt.Errorf("--format: %w", err)
		}
	}
	features, err := spec.Compile()
	if err != nil {
		return Predictor{}, fmt.Errorf("model: %w", err)
	}
	if s.Loss != spec.Model.Loss {
		return Predictor{}, fmt.Errorf("model: loss %q, its declaration says %q", s.Loss, spec.Model.Loss)
	}
	loss, err := spec.Loss()
	if err != nil {
		return Predictor{}, fmt.Errorf("model: %w", err)
	}
	scores := features.Outputs()
	if len(s.Weights) != scores || len(s.Intercept) != scores {
		return Predictor{}, fmt.Errorf("model: %d rows of weights and %d intercepts, want %d", len(s.Weights), len(s.Intercept), scores)
	}
	var theta []float64
	for i, row := range s.Weights {
		part, err := features.Redo(row, s.Intercept[i])
		if err != nil {
			return Predictor{}, fmt.Errorf("model: %w", err)
		}
		theta = append(theta, part...)
	}
	return Predictor{Features: features, Loss: loss, Theta: theta, spec: spec}, nil
}
