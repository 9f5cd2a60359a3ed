package resque

import (
	"context"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/acsa"
)

// restarted is Algorithm 2, accelerated stochastic approximation (Ghadimi, Lan 2012) with restarts and batches, as
// that source has it: the coefficients of the query point sum to 1, and every step has a fresh batch. It has far
// fewer steps that follow one another than epochSGD, for about as many queries.
type restarted struct{}

// restart is the schedule of a solve.
type restart struct {
	smooth   float64 // L/rho
	restarts int     // Kc
	steps    int     // T, of each
	batches  []int64 // N_k of restart k
}

func (s restart) queries() int64 {
	var sum float64
	for _, n := range s.batches {
		sum += float64(n) * float64(s.steps)
	}
	if sum > maxCall {
		return math.MaxInt64
	}
	return int64(sum)
}

// schedule returns the schedule for accuracy phi: Kc = max(1, ceil(log2(lambda r^2/phi))), T = ceil(4
// sqrt(L/(rho lambda) + 1)), N_k = ceil(16 G^2 2^k/(lambda^2 r^2 T)).
func schedule(b ball, square, lambda, phi float64) restart {
	out := restart{smooth: b.longest / b.rho}
	out.restarts = max(1, int(math.Ceil(math.Log2(lambda*b.r*b.r/phi))))
	out.steps = int(math.Ceil(4 * math.Sqrt(out.smooth/lambda+1)))
	for k := 1; k <= out.restarts; k++ {
		n := math.Ceil(math.Ldexp(16*square, k) / (lambda * b.r * lambda * b.r * float64(out.steps)))
		out.batches = append(out.batches, int64(min(n, maxCall)))
	}
	return out
}

func (restarted) cost(b ball, lambda, phi float64) (queries int64, gap float64) {
	s := schedule(b, b.variance(), lambda, phi)
	return s.queries(), math.Ldexp(lambda*b.r*b.r, -s.restarts)
}

func (restarted) solve(ctx context.Context, p *pool, b ball, centre []float64, lambda, phi float64) ([]float64, error) {
	s := schedule(b, b.variance(), lambda, phi)
	c, err := p.open(ctx, centre, b.rho, s.queries())
	if err != nil {
		return nil, err
	}
	defer c.close()
	d := len(centre)
	descent := acsa.New(lambda, s.smooth+lambda, convex.Ball{R: b.r}, make([]float64, d)) // of displacements
	gradient, total := make([]float64, d), newSum(d)
	for _, batch := range s.batches {
		for range s.steps {
			at := descent.Query()
			if err := c.meanGradient(gradient, at, batch, total); err != nil {
				return nil, err
			}
			for i, u := range at {
				gradient[i] += float64(lambda * u)
			}
			descent.Step(gradient)
		}
		descent.Restart()
	}
	return descent.Aggregate(), nil
}

// meanGradient writes the mean of the estimates of the next n queries at the displacement v.
func (c *call) meanGradient(dst, v []float64, n int64, total sum) error {
	total.reset()
	for range n {
		xi, g, err := c.next()
		if err != nil {
			return err
		}
		total.add(math.Exp(LogWeight(v, xi, c.rho)), g)
	}
	total.mean(dst, int(n))
	return nil
}
