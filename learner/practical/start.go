package practical

import "github.com/panlearn/panlearn/learner/convex"

// from returns the declared start in coordinates w, without a whitener; what the looks say where none is declared.
func (p Problem) from(l *Learned, looks []float64) []float64 {
	if p.Start == nil {
		return looks
	}
	return p.Within(l, p.Start)
}

// Within returns a model in plain coordinates in those of steps, where no whitener is: the inverse of Learned.Model.
func (p Problem) Within(l *Learned, model []float64) []float64 {
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
