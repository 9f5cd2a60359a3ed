package learner

import (
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
)

// An Algorithm is a single-pass first-order method as a state machine: Query returns the point at which the
// next cohort's mean gradient is needed, Step consumes the estimate. It is not safe for concurrent use.
type Algorithm interface {
	// Query returns the next query; after Done it repeats the last point and must not be announced.
	Query() method.Query
	// Step consumes the estimate of the mean gradient at Query().Point. On error the state is unchanged.
	Step(method.Estimate) error
	// Skip uses up one step without an estimate. Where the same users answer every round of a phase, a void round has cost
	// them its share and cannot be repeated with others, so it counts against the phase's planned rounds. Query().Step and
	// Done advance; the point stays the same unless this ends the phase. In a phase of new users a void round is no step,
	// and Skip must not be called. On error the state is unchanged.
	Skip() error
	// Done reports whether all planned steps were taken.
	Done() bool
	// Model returns a copy of the model that a snapshot releases now: the output if Done, before that the
	// output so far.
	Model() []float64
	// MarshalBinary returns the whole state; equal states have equal bytes.
	MarshalBinary() ([]byte, error)
	// UnmarshalBinary replaces the state. It refuses bytes of another method, dimension or configuration than the
	// receiver's, and anything that MarshalBinary could not have written; on error the state is unchanged.
	UnmarshalBinary([]byte) error
}

// practicalOf returns the method of a practical plan, also of one with scores; nil for the method of a proved plan.
func practicalOf(a Algorithm) *method.Practical {
	if v, scored := a.(*method.Validated); scored {
		a = v.Inner()
	}
	p, _ := a.(*method.Practical)
	return p
}

// LearnedOf returns the result of the first cohorts of a practical plan; nil in a proved plan, or before there
// is a result.
func LearnedOf(a Algorithm) *practical.Learned {
	if p := practicalOf(a); p != nil {
		return p.Learned()
	}
	return nil
}

// BaselineOf returns the baseline that the first cohort of a practical plan released; nil in a proved plan, or
// before the release.
func BaselineOf(a Algorithm) *practical.Baseline {
	if p := practicalOf(a); p != nil {
		return p.Baseline()
	}
	return nil
}

// ValidationOf returns the result of progressive validation so far, nil where there is none or before the first
// round with scores.
func ValidationOf(a Algorithm) *method.Validation {
	if v, ok := a.(*method.Validated); ok {
		return v.Validation()
	}
	return nil
}

// Announce sets the cohort of the next round for a method that follows a stream and whose caller chooses the cohort.
// Query and the state then describe that round. It does nothing for other methods.
func Announce(a Algorithm, cohort uint64) {
	if p := practicalOf(a); p != nil {
		p.Announce(cohort)
	}
}

// RollBack continues a method from one of its earlier models, see method.Practical.RollBack. Other methods return an
// error that wraps method.ErrNoRollback.
func RollBack(a Algorithm, model []float64) error {
	if p := practicalOf(a); p != nil {
		return p.RollBack(model)
	}
	return method.ErrNoRollback
}

// TrackingOf returns how a method follows a stream that never ends; nil for methods that do not, and before
// their first round of gradients.
func TrackingOf(a Algorithm) *method.Tracking {
	if p := practicalOf(a); p != nil {
		return p.Tracking()
	}
	return nil
}
