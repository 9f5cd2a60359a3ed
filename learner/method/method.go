// Package method holds the first-order methods as state machines: PSGD and PAGD (Algorithms 3 and 4 of Cheu, Joseph,
// Mao, Peng, Shuffle Private Stochastic Convex Optimization, ICLR 2022), PGD (Algorithm 5, which is PSGD's recursion
// with the same users in every round), APGD (PAGD's recursion with the same users in every round), Restarts of them in
// phases (Theorem 4.8), and methods that never end: Stream, epochs of PAGD, and Bank, which follows a changing stream.
// Practical first estimates moments and runs one of the methods in the frame that follows from them. Validated wraps
// any of them to read scores. EstimateMean converts a released batch into the Estimate for Step.
//
// Promises. A method's state is a pure function of its configuration and of the estimates it has consumed: k steps,
// MarshalBinary, UnmarshalBinary and m more steps give the bytes of k+m steps. Sums run in a fixed order and no product
// is fused, so this holds across architectures. A Step that returns an error has changed nothing.
//
// Refuses. Estimates that are not finite or of another dimension, states of another method, dimension or configuration,
// totals that the declared users cannot have produced.
//
// The caller's steps: Query, then Step with the estimate at its point, or Skip if no estimate will come, until Done;
// Model at any time.
package method

import (
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Query is a request for the mean gradient of the next cohort at a point, or for moments.
type Query struct {
	Step  uint64    // number of the step that will use the answer, from 1; the round's number is larger by the void rounds
	Point []float64 // theta, in the coordinates of Frame; a copy. Nil for moments
	// Frame defines the coordinates of reports; nil for the declared coordinates and for moments. The caller must not
	// change it.
	Frame *convex.Frame
	// Cohort is the number of users at which the round is full; 0 if the plan sets it.
	Cohort uint64
}

// An Estimate is the noisy mean gradient of one cohort, with its known noise.
type Estimate struct {
	Gradient         []float64 // unbiased for the mean of the cohort's clipped gradients, or of the other vectors queried
	Users            uint64    // reports in the mean
	PrivacyVariance  float64   // variance of one coordinate due to privacy noise, exact
	RoundingVariance float64   // the same due to stochastic rounding, upper bound
	// NoiseProxy is a sub-Gaussian variance proxy of both together in one coordinate: E exp(s noise) <= exp(s^2
	// NoiseProxy/2) for all s.
	NoiseProxy float64
	// Loss is the mean loss of the users at the point, reported beside the gradient; nil if it is not reported.
	Loss *float64
	// LossNoise is the standard deviation of the noise in Loss; 0 if there is none.
	LossNoise float64
}

// A Method is a method of this package: a state machine as learner.Algorithm describes it.
type Method interface {
	Query() Query
	Step(Estimate) error
	Skip() error
	Done() bool
	Model() []float64
	MarshalBinary() ([]byte, error)
	UnmarshalBinary([]byte) error

	position() uint64               // steps taken or skipped
	fingerprint() [sha256.Size]byte // of the configuration
}

// validateEstimate refuses estimates that no released batch can give.
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
