package main

import (
	"fmt"
	"io"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/learner/practical"
)

// A learned is what the first cohorts of a practical plan released, of the first seed: what the rounds after them are made of.
type learned struct {
	Norm     float64 `json:"norm"`          // root of the mean square of a row's norm in the frame's coordinates
	ClipNorm float64 `json:"clip_norm"`     // of gradients, in these coordinates
	Clipped  float64 `json:"clipped_share"` // of gradients, as expected: of classes at the start, of numbers at a linear fit
	Step     float64 `json:"step"`
	StepName string  `json:"step_name"` // v, of which steps are 1/v and shorter, or eta
	// Effective is how many coordinates the second-moment matrix sees above its noise; 0 without one.
	Effective float64 `json:"effective_coordinates,omitempty"`
}

func learnedOf(l *practical.Learned) *learned {
	if l == nil {
		return nil
	}
	out := &learned{Norm: l.Report.Norm, ClipNorm: l.Frame.Clip, Clipped: l.Report.Clipped, Step: l.Curvature, StepName: "v", Effective: l.Report.Effective}
	if l.Step > 0 {
		out.Step, out.StepName = l.Step, "eta"
	}
	return out
}

func (l *learned) print(w io.Writer, rounds uint64) error {
	if l == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "first cohort  rows have norm %.3g in its coordinates, gradients are clipped to %.3g: %.0f %% of them, as expected; %s = %.3g, %s\n",
		l.Norm, l.ClipNorm, 100*l.Clipped, l.StepName, l.Step, cli.Count(rounds, "round"))
	return err
}
