package resque

import (
	"context"
	"math"
	"math/bits"
)

// multilevel returns the accuracy phi0 of the first level and the number of levels of a proximal estimate
// with a bias of at most bias/lambda and a mean squared distance of at most variance/lambda^2: level j has
// phi0 2^-j, phi0 = variance/(lambda (24 levels + 4)), and sqrt(2 phi0 lambda 2^-levels) <= bias.
func multilevel(lambda, bias, variance float64) (phi0 float64, levels int) {
	for {
		phi0 = variance / lambda / float64(24*levels+4)
		if math.Sqrt(math.Ldexp(2*phi0*lambda, -levels)) <= bias {
			return phi0, levels
		}
		levels++
	}
}

// level draws J, which is j with probability 2^-j.
func (p *pool) level() int {
	random := p.generator(p.calls, -1)
	p.calls++
	return Level(random.Uint64())
}

// Level returns J of a uniform draw: j with probability 2^-j.
func Level(uniform uint64) int { return bits.TrailingZeros64(uniform) + 1 }

// Proximal estimates a minimizer with little bias: x_0 + 2^J (x_J - x_(J-1)) for a J that is drawn before
// anything is asked, where solve returns independent points of accuracy phi0 2^-j. Its mean is the mean of
// x_levels: the sum telescopes. The estimate may lie outside of the ball: a projection would be a bias.
func Proximal(j, levels int, solve func(level int) ([]float64, error)) ([]float64, error) {
	out, err := solve(0)
	if err != nil || j > levels {
		return out, err
	}
	fine, err := solve(j)
	if err != nil {
		return nil, err
	}
	coarse, err := solve(j - 1)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i] += math.Ldexp(fine[i]-coarse[i], j)
	}
	return out, nil
}

// sampled solves subproblems by queries: every method is one round.
type sampled struct {
	p      *pool
	b      ball
	s      solver
	copies int     // of a distance
	slack  float64 // see Config
}

// Distance returns the median of the distances of several points, each within r/17 of the minimizer with
// probability 0.9: strong convexity and Markov's inequality want E||v - vhat||^2 <= 2 phi/lambda = 0.1
// (r/17)^2.
func (o sampled) Distance(ctx context.Context, y []float64, lambda float64) (float64, error) {
	o.p.round()
	ways := make([]float64, o.copies)
	for i := range ways {
		v, err := o.s.solve(ctx, o.p, o.b, y, lambda, lambda*o.b.r*o.b.r/5780*o.slack)
		if err != nil {
			return 0, err
		}
		ways[i] = math.Sqrt(dot(v, v))
	}
	return median(ways), nil
}

// Solve makes one solve and one proximal estimate around the same centre.
func (o sampled) Solve(ctx context.Context, y []float64, lambda, phi, bias, variance float64) (x, prox []float64,
	err error) {
	phi0, levels := multilevel(lambda, bias*math.Sqrt(o.slack), variance*o.slack)
	o.p.round()
	j := o.p.level()
	way, err := o.s.solve(ctx, o.p, o.b, y, lambda, phi*o.slack)
	if err != nil {
		return nil, nil, err
	}
	toProx, err := Proximal(j, levels, func(level int) ([]float64, error) {
		return o.s.solve(ctx, o.p, o.b, y, lambda, math.Ldexp(phi0, -level))
	})
	if err != nil {
		return nil, nil, err
	}
	return plus(y, way), plus(y, toProx), nil
}
