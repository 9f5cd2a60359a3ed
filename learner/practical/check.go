package practical

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// CheckFrame refuses a frame that no honest learner announces to the users of the task, in a round of the matrix or of
// gradients.
func (p Problem) CheckFrame(f *convex.Frame, matrix bool) error {
	if err := f.Check(p.Features, p.Intercept != 0); err != nil {
		return err
	}
	s := p.shape()
	switch {
	case matrix != (f.LabelScale != 0):
		return fmt.Errorf("frame: label scale %v: want one in a round of the matrix alone", f.LabelScale)
	case f.Whitener != nil && (matrix || !s.matrixable && !s.deflated):
		return fmt.Errorf("frame: whitener: want none for %s", p.Loss.Name)
	// For a loss that needs no smoothing, it would only make a row's time depend on its contents.
	case f.Smoothing > 0 && (matrix || !s.traits.Rounded && s.traits.Smooth):
		return fmt.Errorf("frame: smoothing %v: want 0 for %s", f.Smoothing, p.Loss.Name)
	}
	return nil
}

// CheckLearned refuses values that First and Second cannot return: for gradients if l has a start, else for the matrix.
func (p Problem) CheckLearned(l *Learned) error {
	if err := p.CheckFrame(&l.Frame, l.Start == nil); err != nil {
		return err
	}
	if l.Start != nil && len(l.Start) != p.Parameters() {
		return fmt.Errorf("start: %d numbers, want %d", len(l.Start), p.Parameters())
	}
	for _, x := range append([]float64{l.Gain, l.Offset, l.Weight, l.Curvature, l.Step}, l.Start...) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("a number of the start or the steps is not finite")
		}
	}
	return nil
}
