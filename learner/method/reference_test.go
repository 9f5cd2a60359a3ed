package method_test

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// This file holds each method once more, as plain loops straight from the formulas of the papers, sharing no code with
// the package, and compares every point that is asked for and every model over whole runs.

// A noisy is a deterministic stand-in for the private estimates: the gradient of a convex function of theta plus a
// perturbation that differs from step to step.
type noisy func(step int, theta []float64) []float64

// tilted returns the estimate of the mean of |theta_j - a_j| b_j + c_j theta_j^2, as the devices of a phase
// would send it: for a smoothing B above 0 the absolute values are replaced by their Moreau envelopes, whose
// gradient is B (theta - prox).
func tilted(dim int, smoothing float64) noisy {
	return func(step int, theta []float64) []float64 {
		g := make([]float64, dim)
		for j := range g {
			a, b, c := 0.7*math.Sin(float64(j+1)), 1+float64(j)/3, 0.2
			r := theta[j] - a
			if smoothing > 0 {
				// prox of b|.| with parameter B: shrink towards 0 by b/B.
				shrunk := math.Copysign(math.Max(0, math.Abs(r)-b/smoothing), r)
				g[j] = smoothing * (r - shrunk)
			} else {
				g[j] = math.Copysign(b, r)
			}
			g[j] += 2*c*theta[j] + 0.8*math.Sin(float64(7*step+3*j))
		}
		return g
	}
}

// A trace holds the queries of a method and the models that it would have released, step by step.
type trace struct{ queries, models [][]float64 }

func (t *trace) add(query, model []float64) {
	t.queries = append(t.queries, append([]float64(nil), query...))
	t.models = append(t.models, append([]float64(nil), model...))
}

func (t trace) last() []float64 { return t.models[len(t.models)-1] }

// projectBall returns the projection on the ball of radius r.
func projectBall(r float64) func([]float64) []float64 {
	return func(x []float64) []float64 {
		var s float64
		for _, v := range x {
			s += v * v
		}
		out := append([]float64(nil), x...)
		if s = math.Sqrt(s); s > r {
			for j := range out {
				out[j] *= r / s
			}
		}
		return out
	}
}

// projectBox returns the projection on the cube from lo to hi.
func projectBox(lo, hi float64) func([]float64) []float64 {
	return func(x []float64) []float64 {
		out := append([]float64(nil), x...)
		for j := range out {
			out[j] = math.Min(hi, math.Max(lo, out[j]))
		}
		return out
	}
}

// plainSGD runs Algorithm 3 and Algorithm 5: theta_t = Pi(theta_{t-1} - eta_t (g + lambda theta_{t-1})); the
// model is the average with weights w_t of theta_0 .. theta_{t-1}, computed from all of them again at every
// step.
func plainSGD(out *trace, first int, theta []float64, steps int, eta, weight func(t int) float64, lambda float64,
	g noisy, project func([]float64) []float64) {
	var points [][]float64
	var weights []float64
	for t := 1; t <= steps; t++ {
		points = append(points, theta)
		// A later point's share w_t takes the rest away from those before it.
		for k := range weights {
			weights[k] *= 1 - weight(t)
		}
		weights = append(weights, weight(t))
		mean := make([]float64, len(theta))
		for k, p := range points {
			for j := range mean {
				mean[j] += weights[k] * p[j]
			}
		}
		out.add(theta, mean)
		gradient := g(first+t, theta)
		next := make([]float64, len(theta))
		for j := range next {
			next[j] = theta[j] - eta(t)*(gradient[j]+lambda*theta[j])
		}
		theta = project(next)
	}
}

// plainACSA runs Algorithm 4 with the policy of Ghadimi and Lan for a modulus mu: alpha_t = 2/(t+1), eta_t =
// 4v/(t(t+1)).
func plainACSA(out *trace, first int, start []float64, steps int, v, mu, lambda float64, g noisy,
	project func([]float64) []float64) {
	d := len(start)
	w, ag := append([]float64(nil), start...), append([]float64(nil), start...)
	for t := 1; t <= steps; t++ {
		alpha := 2 / (float64(t) + 1)
		eta := 4 * v / (float64(t) * (float64(t) + 1))
		md := make([]float64, d)
		for j := range md {
			md[j] = ((1-alpha)*(mu+eta)*ag[j] + alpha*((1-alpha)*mu+eta)*w[j]) / (eta + (1-alpha*alpha)*mu)
		}
		gradient := g(first+t, md)
		next := make([]float64, d)
		for j := range next {
			next[j] = (alpha*mu*md[j] + ((1-alpha)*mu+eta)*w[j] - alpha*(gradient[j]+lambda*md[j])) / (mu + eta)
		}
		w = project(next)
		for j := range ag {
			ag[j] = alpha*w[j] + (1-alpha)*ag[j]
		}
		out.add(md, ag)
	}
}

func constant(x float64) func(int) float64 { return func(int) float64 { return x } }

func uniform(t int) float64 { return 1 / float64(t) }

// growing returns the share of the t-th of t points that weigh (1-a)^-1, (1-a)^-2 .. (1-a)^-t.
func growing(a float64) func(int) float64 {
	return func(t int) float64 {
		var sum float64
		for s := 1; s <= t; s++ {
			sum += math.Pow(1-a, float64(t-s))
		}
		return 1 / sum
	}
}

// quarter returns the weight 4/(t+3) of the polynomial-decay average, which stops falling after horizon points.
func quarter(horizon int) func(int) float64 {
	return func(t int) float64 { return 4 / (float64(min(t, horizon)) + 3) }
}

// TestTracesOfPlainReferences: golden traces of every algorithm over all its phases: points and models agree
// with the plain loops to 1e-12.
func TestTracesOfPlainReferences(t *testing.T) {
	const dim = 3
	ball, box := convex.SetDeclaration{Radius: 1.2}, convex.SetDeclaration{Kind: "box", Min: 0.1, Max: 0.9}
	inBall, inBox := projectBall(1.2), projectBox(0.1, 0.9)
	origin, corner := []float64{0, 0, 0}, []float64{0.1, 0.1, 0.1}
	const never = 1 << 30
	cases := []struct {
		name  string
		plan  *wire.Plan
		steps int // beyond the plan's rounds where it goes on
		want  func() trace
	}{
		{"psgd", series(dim, ball, 0, descent(40, 0.17)), 40,
			func() (out trace) {
				plainSGD(&out, 0, origin, 40, constant(0.17), uniform, 0, tilted(dim, 0), inBall)
				return out
			}},
		{"psgd with ridge in a box", series(dim, box, 0.4, descent(40, 0.17)), 40,
			func() (out trace) {
				plainSGD(&out, 0, corner, 40, constant(0.17), uniform, 0.4, tilted(dim, 0), inBox)
				return out
			}},
		{"psgd with ridge and weights", series(dim, ball, 0.4, weighted(descent(40, 0.17), 0.4)), 40,
			func() (out trace) {
				plainSGD(&out, 0, origin, 40, constant(0.17), growing(0.4*0.17), 0.4, tilted(dim, 0), inBall)
				return out
			}},
		{"pgd-restarts with weights", series(dim, box, 0.4, weighted(interactive(12, 0.09), 0.3), weighted(interactive(15, 2),
			0.4)), 27,
			func() (out trace) {
				plainSGD(&out, 0, corner, 12, constant(0.09), growing(0.3*0.09), 0.4, tilted(dim, 0), inBox)
				plainSGD(&out, 12, out.last(), 15, constant(2), growing(0.4*2), 0.4, tilted(dim, 0), inBox)
				return out
			}},
		{"pagd", series(dim, ball, 0, accelerated(40, 31, 0, 0)), 40,
			func() (out trace) {
				plainACSA(&out, 0, origin, 40, 31, 0, 0, tilted(dim, 0), inBall)
				return out
			}},
		{"pagd with ridge and mu", series(dim, box, 0.4, accelerated(40, 31, 0.4, 0)), 40,
			func() (out trace) {
				plainACSA(&out, 0, corner, 40, 31, 0.4, 0.4, tilted(dim, 0), inBox)
				return out
			}},
		{"pagd-envelope", series(dim, ball, 0, smoothed(accelerated(40, 40, 0, 0), 9)), 40,
			func() (out trace) {
				plainACSA(&out, 0, origin, 40, 40, 0, 0, tilted(dim, 9), inBall)
				return out
			}},
		{"pagd-restarts with ridge", series(dim, ball, 0.4, accelerated(7, 8, 0, 0), accelerated(1, 9, 0, 0),
			accelerated(25, 80, 0, 0)), 33,
			func() (out trace) {
				plainACSA(&out, 0, origin, 7, 8, 0, 0.4, tilted(dim, 0), inBall)
				plainACSA(&out, 7, out.last(), 1, 9, 0, 0.4, tilted(dim, 0), inBall)
				plainACSA(&out, 8, out.last(), 25, 80, 0, 0.4, tilted(dim, 0), inBall)
				return out
			}},
		{"pagd-envelope-restarts", series(dim, ball, 0.4, smoothed(accelerated(9, 20, 0, 0), 4),
			smoothed(accelerated(20, 60, 0, 0), 11)), 29,
			func() (out trace) {
				plainACSA(&out, 0, origin, 9, 20, 0, 0.4, tilted(dim, 4), inBall)
				plainACSA(&out, 9, out.last(), 20, 60, 0, 0.4, tilted(dim, 11), inBall)
				return out
			}},
		{"pgd", series(dim, ball, 0, interactive(30, 0.09)), 30,
			func() (out trace) {
				plainSGD(&out, 0, origin, 30, constant(0.09), uniform, 0, tilted(dim, 0), inBall)
				return out
			}},
		{"pgd-envelope-restarts", series(dim, box, 0.4, smoothed(interactive(12, 0.09), 5), smoothed(interactive(15, 0.03),
			8)), 27,
			func() (out trace) {
				plainSGD(&out, 0, corner, 12, constant(0.09), uniform, 0.4, tilted(dim, 5), inBox)
				plainSGD(&out, 12, out.last(), 15, constant(0.03), uniform, 0.4, tilted(dim, 8), inBox)
				return out
			}},
		{"constant", forever(wire.Continuous_CONTINUOUS_CONSTANT, series(dim, ball, 0.1, descent(16, 0.1))), 60,
			func() (out trace) {
				plainSGD(&out, 0, origin, 60, constant(0.1), quarter(16), 0.1, tilted(dim, 0), inBall)
				return out
			}},
		{"decaying", forever(wire.Continuous_CONTINUOUS_DECAYING, series(dim, ball, 0, descent(16, 0.1))), 60,
			func() (out trace) {
				plainSGD(&out, 0, origin, 60, func(t int) float64 { return 0.4 / math.Sqrt(float64(t)) }, quarter(never), 0,
					tilted(dim, 0), inBall)
				return out
			}},
		{"epochs", forever(wire.Continuous_CONTINUOUS_EPOCHS, series(dim, ball, 0.1, accelerated(11, 40, 0, 1.5))), 60,
			func() (out trace) {
				// Lengths 1, 2, 4, 8, then 11; v = max(2 beta, 40 sqrt(n(n+1)(n+2)/(11 12 13))).
				start, first := origin, 0
				for _, n := range []int{1, 2, 4, 8, 11, 11, 11, 11, 11} {
					v := max(3, 40*math.Sqrt(float64(n*(n+1)*(n+2))/(11*12*13)))
					plainACSA(&out, first, start, min(n, 60-first), v, 0, 0.1, tilted(dim, 0), inBall)
					first, start = first+n, out.last()
				}
				return out
			}},
	}
	for _, c := range cases {
		a, err := learner.New(c.plan)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		want := c.want()
		if len(want.models) != c.steps {
			t.Fatalf("%s: the reference took %d steps, want %d", c.name, len(want.models), c.steps)
		}
		for k := range c.steps {
			q := a.Query()
			compare(t, c.name, "query", k+1, q.Point, want.queries[k])
			at, found := manifest.PhaseOf(c.plan, q.Step)
			if !found {
				t.Fatalf("%s: step %d is not in the plan", c.name, q.Step)
			}
			if err := a.Step(method.Estimate{Gradient: tilted(dim, at.Phase.Smoothing)(k+1, q.Point), Users: 1}); err != nil {
				t.Fatal(err)
			}
			compare(t, c.name, "model", k+1, a.Model(), want.models[k])
		}
	}
}

func compare(t *testing.T, name, what string, step int, got, want []float64) {
	t.Helper()
	for j := range want {
		if math.Abs(got[j]-want[j]) > 1e-12 {
			t.Fatalf("%s, step %d, %s: %v, want %v", name, step, what, got, want)
		}
	}
}
