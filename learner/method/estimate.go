package method

import (
	"fmt"

	"github.com/panlearn/panlearn/randomizer"
)

// EstimateMean turns a cohort's released totals into the noisy mean of its clipped vectors, with the known variance of
// one coordinate (Cheu, Joseph, Mao, Peng, Shuffle Private Stochastic Convex Optimization, ICLR 2022, Algorithm 2 and
// Theorem 3.2): the mean over reports of the mean over the units of each. users counts reports; noiseTrials counts
// every binomial trial in a total: the users' own, the top-up and both floors. The result has params.Dim coordinates;
// Validated splits off the scores that follow the gradient.
//
// It returns an error for totals that users reports and noiseTrials trials cannot produce, and for fewer trials than
// the reports carry.
func EstimateMean(params randomizer.Params, totals []uint64, users, noiseTrials uint64) (Estimate, error) {
	if err := params.Validate(); err != nil {
		return Estimate{}, fmt.Errorf("estimate: %w", err)
	}
	if err := params.HeadRoom(users); err != nil {
		return Estimate{}, fmt.Errorf("estimate: %w", err)
	}
	if least := params.NoiseTrials(users, 0); noiseTrials < least {
		return Estimate{}, fmt.Errorf("estimate: noise trials %d, want at least the %d of %d users", noiseTrials, least,
			users)
	}
	mean, err := params.Decode(nil, totals, users, noiseTrials)
	if err != nil {
		return Estimate{}, fmt.Errorf("estimate: %w", err)
	}
	m := float64(users)
	for i := range mean {
		mean[i] /= m
	}
	v := params.Variance(users, noiseTrials)
	return Estimate{Gradient: mean, Users: users,
		PrivacyVariance: v.Privacy / m / m, RoundingVariance: v.RoundingMax / m / m, NoiseProxy: v.Proxy / m / m}, nil
}
