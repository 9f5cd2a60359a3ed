package oneplace

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Person is one person's rows. It is private data.
type Person []convex.Example

// Format prints a placeholder under every verb, so that no log or error can carry rows.
func (Person) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("oneplace.Person{redacted}")) }

// MarshalText returns the placeholder of Format, for encoding/json.
func (p Person) MarshalText() ([]byte, error) { return fmt.Append(nil, p), nil }

// A Problem holds the public numbers of a task, on which alone a plan may depend.
type Problem struct {
	Loss     convex.Loss
	Features int     // of a row
	Norm     float64 // of a row's features, at most
	Dim      int     // length of a model
	// Lipschitz is the norm to which a row's gradient is clipped, or the loss's own constant where that is less.
	Lipschitz  float64
	Clips      bool    // a row's gradient may be longer than that
	Smoothness float64 // of one row's loss; +Inf: none
	Ridge      float64
	Set        convex.Set
	Declared   convex.SetDeclaration // Set, as the task declares it

	People int  // whose rows there are, fixed; where rows are protected, each row is a person
	Items  int  // rows of a person
	ByUser bool // people are protected, and not single rows
	Budget accounting.Budget

	// Rounds is the largest number of steps, or of rounds of queries, of methods that are schedule.Limited; 0: any
	Rounds int
	Effort Effort // of methods that are Public; others do not read it
}

// Trivial bounds the excess risk of the set's start, which needs no data.
func (p Problem) Trivial() float64 { return (p.Lipschitz + p.Ridge*p.Set.Radius()) * p.Set.Radius() }

// The solvers of an Effort.
const (
	EpochSGD = "epoch-sgd"
	ACSA     = "ac-sa"
)

// An Effort describes how well and how fast a method without noise is to minimise.
type Effort struct {
	Gap     float64 // of the result to the least value, in units of the loss; 0: the method's default
	Workers int     // goroutines; 0: one. The model does not depend on it
	Solver  string  // of the subproblems: EpochSGD, which "" means, or ACSA
	Slack   float64 // factor of the errors that subproblems may have; 0: 1. Above 1 less is proved
}

// Standing is the place of a method among others.
type Standing int

// The places of methods.
const (
	Contender    Standing = iota // compared with the baselines
	Baseline                     // takes a person as one item: all methods are compared with it
	RowsBaseline                 // of methods whose bound is on the rows at hand, one row protected
	Unranked                     // has no bound, and is asked for by its name alone
)

// A Method releases a model of rows that are all in one place.
type Method struct {
	Name     string // as schedule.algorithm
	Source   string // paper and theorem
	Public   bool   // it adds no noise: for data that need no protection
	Rows     bool   // it protects single rows alone, and not people
	Standing Standing
	// OnRecords reports whether the bound of every plan is on the mean loss of the rows at hand; if false, see the plan.
	OnRecords bool

	// Least returns the smallest number of people with which the method can run, regardless of accuracy.
	Least func(Problem) int
	// PaperLeast returns the same with the constants printed in the paper, 0 if there is no such number. Nil: there never
	// is.
	PaperLeast func(Problem) int
	// LessNoise returns the least number of rows of a person for which a release has less noise than a baseline's, 0 if
	// there is none. compared is false if the two are not compared. Nil: they never are.
	LessNoise func(Problem) (from int, compared bool)
	// Plan calibrates the method. It refuses problems outside the method's proof; the error states the required numbers.
	Plan func(Problem) (*Plan, error)
}

// A Plan is a method calibrated for a problem.
type Plan struct {
	Spent     accounting.Budget // an upper bound, at most the problem's; zero of a method that is Public
	Phases    int
	Least     int      // the smallest number of people, as is shown; 0: it is not
	NoiseStd  float64  // of one coordinate of the last release, in units of the model; 0: noise is of another form
	Bound     float64  // on the expected excess risk; +Inf: none
	OnRecords bool     // the bound is on the mean loss of the rows at hand
	Depth     int64    // steps, or rounds of queries, that wait for the answers to those before; 0: not counted
	Queries   float64  // gradients of single rows, as expected; 0: not counted
	Notes     []string // constants as they are printed, which speak of people
	Better    string   // what is expected to do better, in a sentence; empty: nothing

	// Check refuses a loss that the method is not proved for, before anything is drawn. Nil: Plan has done so.
	Check func(context.Context, []Person) error
	// Fit releases a model of as many people as were planned for, with the entropy of noise, which is not nil.
	Fit func(context.Context, []Person, rand.Source) (Release, error)
}

// A Release is published.
type Release struct {
	Model  []float64 // in the set, or by little outside
	Phase  int       // whose release it is; 0: the public start
	Halted bool      // a test did not pass: public

	// Of a method that is Public: rounds of queries, queries in all and in the largest round, and the bound on the gap,
	// +Inf where nothing is proved.
	Depth, Queries, Largest int64
	Bound                   float64
}
