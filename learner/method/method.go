// Package method holds the first-order methods as state machines: PSGD and PAGD (Algorithms 3 and 4 of Cheu, Joseph,
// Mao, Peng, Shuffle Private Stochastic Convex Optimization, ICLR 2022), PGD (Algorithm 5, which is PSGD's recursion
// with the same users in every round), APGD (PAGD's recursion with the same users in every round), Restarts of them in
// phases (Theorem 4.8), and those that never end: Stream, epochs of PAGD, and Bank, which follows what it learns from.
// Practical looks at moments first and puts one of them into the frame that they give. Validated goes around any of
// them. EstimateMean makes of a released batch what they step with.
//
// Promises. A method's state is a pure function of its configuration and of the estimates it has consumed: k steps,
// MarshalBinary, UnmarshalBinary and m more steps give the bytes of k+m steps. Sums run in a fixed order and no product
// is fused, so this holds across architectures. A Step that returns an error has changed nothing.
//
// Refuses. Estimates that are not finite or of another dimension, states of another method, dimension or configuration,
// totals that the declared users cannot have produced.
//
// The caller's steps: Query, Step with the estimate at its point, or Skip where no estimate will come, until Done;
// Model at any time.
package method

import (
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Query asks for the mean gradient of the next cohort at a point.
type Query struct {
	Step  uint64    // number of the step that the answer will be used for, from 1; rounds run ahead of it by the void ones
	Point []float64 // theta, in the coordinates of Frame; a copy. Nil where moments are asked for
	// Frame is the coordinates that devices report in, not to be changed; nil for the declared ones, and where moments are
	// asked for.
	Frame *convex.Frame
	// Cohort is the number of users at which the round is full; 0 where the plan sets it.
	Cohort uint64
}

// An Estimate is the noisy mean gradient of one cohort, with its known noise.
type Estimate struct {
	Gradient         []float64 // unbiased for the mean of the cohort's clipped gradients, or of what else was asked for
	Users            uint64    // reports in the mean
	PrivacyVariance  float64   // variance of one coordinate due to privacy noise, exact
	RoundingVariance float64   // the same due to stochastic rounding, upper bound
	// NoiseProxy is a sub-Gaussian variance proxy of both together in one coordinate: E exp(s noise) <= exp(s^2
	// NoiseProxy/2) for all s.
	NoiseProxy float64
	// Loss is the mean loss of the users at the point, as they report it beside the gradient; nil where they do not.
	Loss *float64
	// LossNoise is the standard deviation of what noise adds to Loss; 0 where there is none.
	LossNoise float64
}

// A Method is one of this package's: the state machine that learner.Algorithm describes.
type Method interface {
	Query() Query
	Step(Estimate) error
	Skip() error
	Done() bool
	Model() []float64
	MarshalBinary() ([]byte, error)
	UnmarshalBinary([]byte) error

	position() uint64               // steps taken or passed over
	fingerprint() [sha256.Size]byte // of the configuration
}

// validateEstimate refuses what no released batch can give.
func validateEstimate(e Estimate, dim int) error {
	if len(e.Gradient) != dim {
		return fmt.Errorf("step: gradient of dimension %d, want %d", len(e.Gradient), dim)
	}
	if e.Users == 0 {
		return fmt.Errorf("step: estimate of 0 users, want at least 1")
	}
	if n := convex.Norm(e.Gradient); math.IsNaN(n) || math.IsInf(n, 0) {
		return fmt.Errorf("step: the gradient estimate is not finite")
	}
	for _, v := range [...]float64{e.PrivacyVariance, e.RoundingVariance, e.NoiseProxy} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("step: variance %v, want a finite number of at least 0", v)
		}
	}
	return nil
}
