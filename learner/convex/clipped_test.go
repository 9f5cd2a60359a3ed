package convex_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

// clipped returns the gradient of a loss that rises no faster than l.
func clipped(f convex.Loss, theta []float64, e convex.Example, l float64) []float64 {
	g := make([]float64, len(theta))
	for i := range g {
		g[i] = math.NaN() // ClippedGradient must overwrite
	}
	convex.ClippedGradient(f, g, theta, e, l)
	return g
}

// cut returns the clipped gradient by its definition alone: the loss's gradient at the prox with the b that
// gives it the norm l.
func cut(f convex.Proximal, theta []float64, e convex.Example, l float64) []float64 {
	low, high := math.Log(1e-40), math.Log(1e12)
	g := gradient(f, theta, e)
	for convex.Norm(g) > l && high-low > 1e-13 {
		mid := low + (high-low)/2
		if g := gradient(f, prox(f, theta, e, math.Exp(mid)), e); convex.Norm(g) > l {
			high = mid
		} else {
			low = mid
		}
	}
	if convex.Norm(g) > l {
		g = gradient(f, prox(f, theta, e, math.Exp(low)), e)
	}
	return g
}

// TestClippedGradient: the clipped gradient is no longer than the limit, the gradient itself where that is no
// longer, and the derivative of a convex function that is as smooth as the loss.
func TestClippedGradient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, s := drawLoss(t)
		g := gradient(f, s.a, s.e)
		limit := convex.Norm(g) * math.Pow(10, rapid.Float64Range(-2, 0.5).Draw(t, "log10 of the limit"))
		a, b := clipped(f, s.a, s.e, limit), clipped(f, s.b, s.e, limit)
		if convex.Norm(a) > limit {
			t.Fatalf("%s: norm %v above %v", f.Name(), convex.Norm(a), limit)
		}
		most := 1e-11
		if convex.Norm(g) > limit*(1-0x1p-38) { // it is cut a little below the limit, and turns more than its norm shows
			most = 1e-8
		}
		if d := convex.Norm(minus(a, g)); convex.Norm(g) <= limit && d > most*(1+convex.Norm(g)) {
			t.Fatalf("%s: gradient changed by %v, though its norm %v is within %v", f.Name(), d, convex.Norm(g), limit)
		}
		beta, change := f.Smoothness(s.e.Norm()), minus(a, b)
		rounding := 1e-9 + 0x1p-45*s.smoothing*size(convex.Norm(s.a))
		if n := convex.Norm(change); dot(change, minus(s.a, s.b)) < n*n/beta-rounding {
			t.Fatalf("%s: rises by %v over a way on which gradients change by %v: not %v-smooth and convex", f.Name(),
				dot(change, minus(s.a, s.b)), n, beta)
		}
	})
}

// TestClippedSoftmaxIsAsDefined: every history is of a softmax loss, with weights or without.
func TestClippedSoftmaxIsAsDefined(t *testing.T) {
	var losses []labelled
	for _, d := range declared {
		if d.Name == "softmax" {
			losses = append(losses, d)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := drawOf(t, losses)
		limit := convex.Norm(gradient(s.loss, s.a, s.e)) * math.Pow(10, rapid.Float64Range(-2, 0.5).Draw(t,
			"log10 of the limit"))
		if limit == 0 {
			return
		}
		got, want := clipped(s.loss, s.a, s.e, limit), cut(s.loss, s.a, s.e, limit)
		if !(convex.Norm(minus(got, want)) <= 1e-8*(1+convex.Norm(want))) {
			t.Fatalf("clipped to %v, want %v", got, want)
		}
	})
}

// work returns the line integral of a field along a closed square of side 4 in a plane of theta, by the
// midpoint rule.
func work(field func(theta []float64) []float64, plane [2][]float64, dim int) (sum float64) {
	const parts = 400
	corners := [...][2]float64{{0, 0}, {4, 0}, {4, 4}, {0, 4}, {0, 0}}
	for k := range 4 {
		from, to := corners[k], corners[k+1]
		for i := range parts {
			at, step := make([]float64, dim), make([]float64, dim)
			for c, direction := range plane {
				way := to[c] - from[c]
				at = along(at, direction, from[c]+way*(float64(i)+0.5)/parts)
				step = along(step, direction, way/parts)
			}
			sum += dot(field(at), step)
		}
	}
	return sum
}

// TestClippedGradientDoesNoWorkAroundALoop: a loss that is clipped is a loss: its gradient does no work around
// a loop. The softmax gradient scaled down does.
func TestClippedGradientDoesNoWorkAroundALoop(t *testing.T) {
	plain, heavy := convex.Softmax{Classes: 3}, given(convex.Declaration{Name: "softmax", Classes: 3,
		ClassWeights: []float64{2, 1, 0.5}})
	e := convex.Example{Value: []float64{1}, Label: 0}
	plane := [2][]float64{{-0.2, 1, -0.5}, {-0.5, 0.3, 1}}
	for name, f := range map[string]convex.Loss{"softmax": plain, "weighted": heavy, "envelope": envelope(t, plain, 2),
		"weighted envelope": envelope(t, heavy.(convex.Proximal), 2)} {
		around := work(func(theta []float64) []float64 { return clipped(f, theta, e, 0.5) }, plane, 3)
		scaled := work(func(theta []float64) []float64 {
			g := gradient(f, theta, e)
			convex.Clip(g, 0.5)
			return g
		}, plane, 3)
		t.Logf("%s: work %.1e; of the gradient scaled down %.4f", name, around, scaled)
		if math.Abs(around) > 1e-4 {
			t.Errorf("%s: work %v around a closed loop", name, around)
		}
		if math.Abs(scaled) < 5e-3 {
			t.Errorf("%s: the gradient scaled down does work %v: the loop tests nothing", name, scaled)
		}
	}
}

// TestClippedGradientAtExtremes: scores of any size, and features that are none.
func TestClippedGradientAtExtremes(t *testing.T) {
	f := convex.Softmax{Classes: 4}
	for _, far := range []float64{0, 1e-300, 1, 700, 1e5, 1e300, math.Inf(1), math.NaN()} {
		for _, x := range []float64{0, 1e-200, 1, 1e6, 1e200} {
			for y := range 4 {
				g := clipped(f, []float64{-far, 0, far, far / 2}, convex.Example{Value: []float64{x}, Label: float64(y)}, 0.3)
				if n := convex.Norm(g); !(n <= 0.3) {
					t.Errorf("theta %v, x = %v, y = %d: norm %v", far, x, y, n)
				}
				if want := 0.3; far == 1 && x == 1e6 && y < 2 && math.Abs(convex.Norm(g)-want) > 1e-9 {
					t.Errorf("theta %v, x = %v, y = %d: norm %v, want %v", far, x, y, convex.Norm(g), want)
				}
			}
		}
	}
}

// BenchmarkClippedGradient clips a gradient of ten classes, or scales it down.
func BenchmarkClippedGradient(b *testing.B) {
	f := convex.Softmax{Classes: 10}
	e, theta, g := convex.Example{Value: make([]float64, 784), Label: 3}, make([]float64, 7840), make([]float64, 7840)
	for i := range theta {
		e.Value[i%784], theta[i] = 0.03, math.Sin(float64(i))
	}
	for name, limit := range map[string]float64{"clipped": 0.3, "kept": 3} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				convex.ClippedGradient(f, g, theta, e, limit)
			}
		})
	}
}
