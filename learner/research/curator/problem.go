package curator

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// Public is all that a plan may depend on: numbers that are public.
//
// What is minimised is the mean over people of the mean of their rows' losses, each cut where its slope would be
// above Lipschitz, + (Ridge/2)||theta||^2, over Set. A person without rows loses nothing.
type Public struct {
	People     int               // n, fixed
	Items      int               // m, rows of a person; for utility alone
	Dim        int               // d, length of theta
	Lipschitz  float64           // L: the norm to which a row's gradient is clipped
	Smoothness float64           // beta of one row's loss, +Inf: none. Rows that are more curved say zero
	Ridge      float64           // mu of the objective; 0: none
	Set        convex.Set        // K, bounded: diameter at most 2 Radius()
	Budget     accounting.Budget // of the whole fit
	Spread     float64           // guess of the standard deviation of a row's gradient, in units of L; 0: 1. Utility alone
	Failure    float64           // b: that a plan may halt on well-behaved data; 0: 1e-3. Utility alone
}

// mostPeople may be planned for.
const mostPeople = 1 << 30

// Validate names the first number that has no meaning.
func (p Public) Validate() error {
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	switch {
	case p.People < 1 || p.People > mostPeople:
		return fmt.Errorf("people %d: want 1 to 2^30", p.People)
	case p.Items < 1 || p.Items > 1<<30:
		return fmt.Errorf("items %d: want 1 to 2^30", p.Items)
	case p.Dim < 1 || p.Dim > randomizer.MaxDim:
		return fmt.Errorf("dimension %d: want 1 to %d", p.Dim, randomizer.MaxDim)
	case !positive(p.Lipschitz):
		return fmt.Errorf("constant of Lipschitz %v: want a finite number above 0", p.Lipschitz)
	case !(p.Smoothness > 0):
		return fmt.Errorf("smoothness %v: want a number above 0", p.Smoothness)
	case !(p.Ridge >= 0) || math.IsInf(p.Ridge, 0):
		return fmt.Errorf("ridge %v: want a finite number of at least 0", p.Ridge)
	case p.Set == nil || !positive(p.Set.Radius()):
		return fmt.Errorf("set %T: want a bounded one", p.Set)
	case !p.fits():
		return fmt.Errorf("set %T: want one of %d dimensions", p.Set, p.Dim)
	case !(p.Budget.Epsilon > 0 && p.Budget.Epsilon <= accounting.MaxEpsilon):
		return fmt.Errorf("epsilon %v: want a number in (0, %d]", p.Budget.Epsilon, accounting.MaxEpsilon)
	case !(p.Budget.Delta >= 1e-30 && p.Budget.Delta < 1):
		return fmt.Errorf("delta %v: want 1e-30 to below 1", p.Budget.Delta)
	case !(p.Spread >= 0 && p.Spread <= 1):
		return fmt.Errorf("spread %v: want 0 to 1", p.Spread)
	case p.Failure != 0 && !(p.Failure >= 1e-100 && p.Failure < 1):
		return fmt.Errorf("failure %v: want 0, or 1e-100 to below 1", p.Failure)
	}
	return nil
}

// spread returns the guess of Spread that a plan uses.
func (p Public) spread() float64 {
	if p.Spread == 0 {
		return 1
	}
	return p.Spread
}

// failure returns the Failure that a plan uses.
func (p Public) failure() float64 {
	if p.Failure == 0 {
		return 1e-3
	}
	return p.Failure
}

// fits reports whether the set has the problem's number of dimensions: a box of another number has another
// radius.
func (p Public) fits() bool {
	b, box := p.Set.(convex.Box)
	return !box || b.Dim == p.Dim
}

// diameter returns an upper bound on the set's diameter.
func (p Public) diameter() float64 { return 2 * p.Set.Radius() }

// trivial bounds the excess risk of the set's start, which needs no data: (L + mu R) R.
func (p Public) trivial() float64 { return p.steepest() * p.Set.Radius() }

// start returns the point at which every method begins.
func (p Public) start() []float64 {
	x := make([]float64, p.Dim)
	p.Set.Start(x)
	return x
}

// A Person is one person's rows.
type Person = oneplace.Person

// A Result is published.
type Result struct {
	Model  []float64 // the last released point, in the set
	Phase  int       // whose release it is; 0: the public start
	Halted bool      // a test did not pass: public
}

// smoothable refuses public numbers for which the solver of solve.go has no certificate.
func (p Public) smoothable() error {
	switch p.Set.(type) {
	case convex.Ball, convex.Nonnegative, convex.Box:
	default:
		return fmt.Errorf("set %T: want a ball, its nonnegative part or a box, whose projections round by little", p.Set)
	}
	if math.IsInf(p.Smoothness, 1) {
		return fmt.Errorf("smoothness: none, and the method is proved for smooth losses")
	}
	return nil
}
