package wording

import (
	"fmt"
	"io"

	"github.com/panlearn/panlearn/learner/practical"
)

// PrintLearned prints what the first cohorts of a practical plan released. It prints nothing if l is nil.
func PrintLearned(w io.Writer, l *practical.Summary) error {
	if l == nil {
		return nil
	}
	if l.StepName == "" {
		_, err := fmt.Fprintf(w,
			"first cohort  rows have norm %.3g in its coordinates; gradients are now clipped to %.3g, and clips and steps follow the stream\n", l.Norm, l.ClipNorm)
		return err
	}
	_, err := fmt.Fprintf(w,
		"first cohort  rows have norm %.3g in its coordinates, gradients are clipped to %.3g: expected for %.0f %% of them at the %s; steps %s = %.3g\n",
		l.Norm, l.ClipNorm, 100*l.Clipped, l.ClippedAt, l.StepName, l.Step)
	return err
}
