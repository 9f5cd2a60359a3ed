package practical

import (
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// from returns the declared start in coordinates w, without a whitener; where none is declared, the looks'
// start.
func (p Problem) from(l *Learned, looks []float64) []float64 {
	if p.Start == nil {
		return looks
	}
	return p.unscaled(l, p.Start)
}

// unscaled converts a model in plain coordinates to the coordinates of the frame, without its whitener.
func (p Problem) unscaled(l *Learned, model []float64) []float64 {
	w := l.Frame.Unfold(model, p.Intercept)
	n := l.Frame.Dim()
	for i := range w {
		if l.Frame.Intercept != 0 && i%n == n-1 {
			w[i] -= l.Offset
		}
		w[i] = min(max(w[i]/l.Gain, -convex.MaxScale), convex.MaxScale)
	}
	return w
}

// Within converts a model in plain coordinates to the coordinates of steps: the inverse of Learned.Model.
func (p Problem) Within(l *Learned, model []float64) ([]float64, error) {
	w := p.unscaled(l, model)
	block := make([]float64, l.Frame.Dim())
	for part := range slices.Chunk(w, len(block)) {
		if err := l.Frame.Unwhiten(block, part); err != nil {
			return nil, err
		}
		copy(part, block)
	}
	return w, nil
}
