package learner

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Query says where the next cohort's mean gradient is wanted.
type Query struct {
	Step  uint64    // number of the step that the answer will be used for, from 1; rounds run ahead of it by the void ones
	Point []float64 // theta, inside the constraint set; a copy. Nil where moments are asked for
	// Moments asks for the mean of the clipped squares of the features in place of a gradient, see Precondition.
	Moments bool
	// Scales are the coordinates that Point lives in: devices multiply their features by them, see convex.Preconditioner. A copy;
	// nil for features as they are.
	Scales []float64
}

// An Estimate is the noisy mean gradient of one cohort, with its known noise.
type Estimate struct {
	Gradient         []float64 // unbiased for the mean of the cohort's clipped gradients, or of what else was asked for
	Users            uint64    // reports in the mean
	PrivacyVariance  float64   // variance of one coordinate due to privacy noise, exact
	RoundingVariance float64   // the same due to stochastic rounding, upper bound
	// NoiseProxy is a sub-Gaussian variance proxy of both together in one coordinate: E exp(s noise) <= exp(s^2 NoiseProxy/2) for all s.
	NoiseProxy float64
}

// An Algorithm is a single-pass first-order method as a state machine: Query says at which point the next cohort's mean
// gradient is wanted, Step consumes the estimate. It is not safe for concurrent use.
type Algorithm interface {
	// Query returns the next query; after Done it repeats the last point and must not be announced.
	Query() Query
	// Step consumes the estimate of the mean gradient at Query().Point. On error the state is unchanged.
	Step(Estimate) error
	// Done reports whether all planned steps were taken.
	Done() bool
	// Model returns what a snapshot releases now: the output if Done, before that the output so far. A copy.
	Model() []float64
	// MarshalBinary returns the whole state; equal states have equal bytes.
	MarshalBinary() ([]byte, error)
	// UnmarshalBinary replaces the state. It refuses bytes of another method, dimension or configuration than the
	// receiver's, and anything that MarshalBinary could not have written; on error the state is unchanged.
	UnmarshalBinary([]byte) error
}

// A Skipper is an Algorithm that can pass over a round. Where the same users answer every round of a phase, a void round has
// cost them its share and cannot be asked again of others: it counts against the phase's planned rounds. In a phase of new
// users a void round is no step, and nobody calls Skip.
type Skipper interface {
	// Skip uses up one step without an estimate: Query().Step and Done run on, the point stays as it was, unless the phase is
	// over with it. On error the state is unchanged.
	Skip() error
}

// ScalesOf returns the scales of the coordinates that an algorithm's model lives in, nil for the features as they are or where they are
// not estimated yet.
func ScalesOf(a Algorithm) []float64 {
	switch a := a.(type) {
	case *Precondition:
		return a.Scales()
	case *Validated:
		return ScalesOf(a.inner)
	}
	return nil
}

// ValidationOf returns what progressive validation says so far, nil where there is none or before the first round with scores.
func ValidationOf(a Algorithm) *Validation {
	if v, ok := a.(*Validated); ok {
		return v.Validation()
	}
	return nil
}

// checkEstimate refuses what no released batch can give.
func checkEstimate(e Estimate, dim int) error {
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
