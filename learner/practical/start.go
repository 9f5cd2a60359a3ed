package practical

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/panlearn/panlearn/learner/convex"
)

// unscaled converts a model in plain coordinates to the coordinates of the frame, without its whitener.
func (l *Learned) unscaled(model []float64, intercept float64) []float64 {
	w := l.Frame.Unfold(model, intercept)
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
	w := l.unscaled(model, p.Intercept)
	block := make([]float64, l.Frame.Dim())
	for part := range slices.Chunk(w, len(block)) {
		if err := l.Frame.Unwhiten(block, part); err != nil {
			return nil, err
		}
		copy(part, block)
	}
	return w, nil
}

// matrixNoise holds the noise of a released matrix: of for a number in H, and of/rho for one in b.
type matrixNoise struct{ of, rho float64 }

// beyond reports whether the released mean square of a start's residual, c - 2 b'x + x'H x, exceeds c, the mean square
// for zero, by more than twice its noise: the start is then no better than none.
func (s *spectrum) beyond(b, x *mat.VecDense, noise matrixNoise) bool {
	length := mat.Dot(x, x)
	sd := noise.of * math.Sqrt(4*length/noise.rho/noise.rho+length*length)
	return s.form(x)-2*mat.Dot(b, x) > 2*sd
}

// toward returns the b for which (H + damping)^-1 b lies between the start x and the least squares fit, nearer to the
// fit the more the release exceeds its noise:
//
//	x + max(0, 1 - noise/e'(H + damping)^-1 e) (H + damping)^-1 e,   e = b - H x
//
// which is James and Stein's estimate in the metric of the damped matrix. The noise of a number in H x has the variance
// sd^2 |x|^2 (d + 1)/(2 d).
func (s *spectrum) toward(b, x *mat.VecDense, damping float64, noise matrixNoise) *mat.VecDense {
	var e, out mat.VecDense
	out.MulVec(s.matrix(func(l float64) float64 { return l }), x)
	e.SubVec(b, &out)
	d, inverse := float64(len(s.values)), 0.0
	for _, l := range s.values {
		inverse += 1 / (l + damping)
	}
	expected := noise.of * noise.of * (1/noise.rho/noise.rho + mat.Dot(x, x)*(d+1)/(2*d)) * inverse
	keep := 0.0
	if square := mat.Dot(&e, s.solve(&e, damping)); square > expected {
		keep = 1 - expected/square
	}
	out.AddScaledVec(&out, damping, x)
	out.AddScaledVec(&out, keep, &e)
	return &out
}

// Shrink moves an estimated gradient toward zero by James and Stein's estimate, if steps begin at a declared start.
// variance is the noise variance of one coordinate.
func (l *Learned) Shrink(gradient []float64, variance float64) {
	if !l.FromStart {
		return
	}
	square := 0.0
	for _, g := range gradient {
		square += float64(g * g)
	}
	keep := 0.0
	if noise := variance * float64(max(1, len(gradient)-2)); square > noise {
		keep = 1 - noise/square
	}
	for i := range gradient {
		gradient[i] *= keep
	}
}
