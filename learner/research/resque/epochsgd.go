package resque

import (
	"context"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// epochSGD is Algorithm 1: projected stochastic proximal steps in epochs, each twice as long as the one before with
// half its steps' size, that return the mean of their points.
type epochSGD struct{}

// firstEpoch is the length T_1, with steps of 1/(4 lambda): lambda eta_k T_k = 4 in every epoch k.
const firstEpoch = 16

// epochs returns the least number of epochs that guarantees a gap of at most phi, and the gap that it does. L
// bounds the slopes, square E||w g||^2. From L^2/(2 lambda) at the centre, epoch k brings the gap down to a quarter
// and adds square/(8 lambda) 2^(1-k), see docs/proofs/resque.md. These are no more than the epochs with T_1 + ... +
// T_k <= ceil(16 square/(lambda phi)), which Algorithm 1 has.
func epochs(longest, square, lambda, phi float64) (k int, gap float64) {
	gap = longest * longest / lambda / 2
	for noise := square / lambda / 8; gap > phi && k < maxEpochs; noise /= 2 {
		k++
		gap = gap/4 + noise
	}
	return k, gap
}

// maxEpochs have more queries than any call may.
const maxEpochs = 45

func (epochSGD) cost(b ball, lambda, phi float64) (queries int64, gap float64) {
	k, gap := epochs(b.longest, b.variance(), lambda, phi)
	return epochQueries(k), gap
}

// epochQueries returns the sum of T_j - 1: an epoch's first step needs no gradient.
func epochQueries(k int) int64 {
	return firstEpoch*(int64(1)<<k-1) - int64(k)
}

func (epochSGD) solve(ctx context.Context, p *pool, b ball, centre []float64, lambda, phi float64) ([]float64, error) {
	k, _ := epochs(b.longest, b.variance(), lambda, phi)
	out := make([]float64, len(centre))
	if k == 0 {
		return out, nil
	}
	c, err := p.open(ctx, centre, b.rho, epochQueries(k))
	if err != nil {
		return nil, err
	}
	defer c.close()
	v, total := make([]float64, len(out)), make([]float64, len(out))
	eta, length := 1/(4*lambda), firstEpoch
	for range k {
		shrink := 1 / (1 + eta*lambda)
		for i, u := range out {
			v[i] = u * shrink
			total[i] = v[i]
		}
		for range length - 1 {
			xi, g, err := c.next()
			if err != nil {
				return nil, err
			}
			step := eta * math.Exp(LogWeight(v, xi, b.rho))
			for i, u := range v {
				v[i] = (u - float64(step*g[i])) * shrink
			}
			convex.Clip(v, b.r)
			for i, u := range v {
				total[i] += u
			}
		}
		for i, u := range total {
			out[i] = u / float64(length)
		}
		eta, length = eta/2, 2*length
	}
	return out, nil
}
