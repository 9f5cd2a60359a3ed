package sim

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// ExcessRisk returns the objective of theta, population risk and ridge, less its minimum. theta has Dim
// weights, and may have an intercept, of feature 1, after them; other lengths panic. For the squared loss the
// value is exact, as features have mean 0 and covariance 1/3. For the other losses the risk is the mean, over
// a fixed sample of features, of the exact conditional risk given the features, and the minimum is over the
// same sample.
func (s *Synthetic) ExcessRisk(theta []float64) float64 {
	if n := len(theta); n != s.cfg.Dim && n != s.cfg.Dim+1 {
		panic(fmt.Sprintf("sim: excess risk of %d parameters, want %d or one more", n, s.cfg.Dim))
	}
	if s.cfg.Loss != "squared" {
		return s.objective(theta) - s.least
	}
	// A quadratic: its excess is half the curvature times the square of the way from the optimum.
	var sum float64
	for i, t := range s.optimum {
		sum += (1.0/3 + s.cfg.Ridge) / 2 * (theta[i] - t) * (theta[i] - t)
	}
	for _, c := range theta[s.cfg.Dim:] {
		sum += (1 + s.cfg.Ridge) / 2 * c * c
	}
	return sum
}

// objective returns the mean conditional risk over the evaluation points, minus the risk of theta*, plus the ridge.
func (s *Synthetic) objective(theta []float64) float64 {
	var sum float64
	for _, e := range s.eval {
		at, best := s.scores(theta, e)
		value, _ := s.conditional(at, best)
		least, _ := s.conditional(best, best)
		sum += value - least
	}
	n := convex.Norm(theta)
	return sum/float64(max(1, len(s.eval))) + s.cfg.Ridge/2*n*n
}

// scores returns the scores of theta and of theta* at an evaluation point.
func (s *Synthetic) scores(theta []float64, e convex.Example) (at, best float64) {
	return convex.Example{Value: e.Value[:len(theta)]}.Dot(theta), convex.Example{Value: e.Value[:s.cfg.Dim]}.Dot(s.truth)
}

// conditional returns the expected loss at a score given the score of theta*, and its slope in the former.
// For the absolute loss with noise uniform in [-N, N] it is (r^2+N^2)/(2N) at a residual r within the noise
// and |r| outside.
func (s *Synthetic) conditional(at, best float64) (value, slope float64) {
	if s.cfg.Loss == "logistic" {
		p := 1 / (1 + math.Exp(-best)) // of label +1
		one := convex.Example{Value: []float64{1}}
		for _, label := range [...]float64{1, -1} {
			one.Label = label
			value += p * s.loss.Value([]float64{at}, one)
			p = 1 - p
		}
		return value, 1/(1+math.Exp(-at)) - p
	}
	r, n := at-best, s.cfg.Noise
	if math.Abs(r) < n {
		return (r*r + n*n) / (2 * n), r / n
	}
	return math.Abs(r), math.Copysign(1, r)
}

// minimise returns the optimum: theta* without a ridge, a multiple of it for the squared loss, and else what
// Nesterov's method for strongly convex functions converges to, where the gradient g vanishes up to rounding; the
// value is then within ||g||^2/(2 lambda) of the least.
func (s *Synthetic) minimise() []float64 {
	out := append([]float64(nil), s.truth...)
	lambda := s.cfg.Ridge
	if lambda == 0 {
		return out
	}
	if s.cfg.Loss == "squared" {
		for i := range out {
			out[i] /= 1 + 3*lambda
		}
		return out
	}
	curvature := 0.25
	if s.cfg.Loss == "absolute" {
		curvature = 1 / s.cfg.Noise
	}
	beta := 0.6*curvature + lambda // the covariance of the features is 1/3, a sample's is less than 0.6
	q := math.Sqrt(lambda / beta)
	momentum := (1 - q) / (1 + q)
	last, at, g := append([]float64(nil), out...), append([]float64(nil), out...), make([]float64, s.cfg.Dim)
	for range int(60/q) + 1 { // (1-q)^(60/q) < 1e-26
		s.gradient(g, at)
		if convex.Norm(g) < 1e-14*(1+beta) {
			break
		}
		for i := range out {
			out[i] = at[i] - g[i]/beta
			at[i] = out[i] + momentum*(out[i]-last[i])
			last[i] = out[i]
		}
	}
	return out
}

// gradient writes the objective's gradient.
func (s *Synthetic) gradient(dst, theta []float64) {
	clear(dst)
	for _, e := range s.eval {
		at, best := s.scores(theta, e)
		_, slope := s.conditional(at, best)
		for i := range dst {
			dst[i] += slope * e.Value[i] / float64(len(s.eval))
		}
	}
	for i, t := range theta {
		dst[i] += s.cfg.Ridge * t
	}
}
