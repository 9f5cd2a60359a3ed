package sim

import (
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/shuffle"
)

// gaussian is the oracle of another trust model: the exact mean and Gaussian noise. It stands for mechanisms whose mean over a
// cohort is close to normal, which that of many users' messages is.
type gaussian struct {
	exact
	std   func(phase int, users uint64) float64
	phase int
	seed  uint64
}

func (o gaussian) mean(q method.Query, cohort []int32) (method.Estimate, *shuffle.Release, error) {
	out, _, err := o.exact.mean(q, cohort)
	if err != nil {
		return method.Estimate{}, nil, err
	}
	std := o.std(o.phase, out.Users)
	normal := rand.New(Entropy(o.seed, "gaussian", q.Step))
	for j := range out.Gradient {
		out.Gradient[j] += std * normal.NormFloat64()
	}
	out.PrivacyVariance, out.NoiseProxy = std*std, std*std
	return out, nil, nil
}
