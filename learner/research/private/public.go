package private

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// The methods.
const (
	NoisySGD = "noisy-sgd" // projected noisy stochastic gradient descent: recommended
	ReSQue   = "resque"    // ball acceleration at a fixed lambda with reweighted stochastic queries
	// ReSQueSCO is ReSQue on disjoint blocks one after another; its bound is about the population of which the
	// records are independent draws.
	ReSQueSCO = "resque-sco"
	// ReSQueBall is ball acceleration as Theorem 3 of Carmon et al. 2023 has it, with a line search and multilevel
	// proximal estimates. It has no bound.
	ReSQueBall = "resque-ball"
)

// Public are the numbers that decide a plan. All are known before any record is read.
type Public struct {
	Method string `json:"method"`
	// N is the number of records, which is public: of two neighbours one has at most N, the other one less.
	N int `json:"n"`
	// Dim is d, the length of the point that is learned.
	Dim int `json:"dim"`
	// Lipschitz is L: gradients are clipped to this norm, and the bounds are for losses that it never clips, or for
	// the clipped ones.
	Lipschitz float64 `json:"lipschitz"`
	// Radius is R: the bounds compare with the best point of the ball of this radius around the origin.
	Radius float64 `json:"radius"`
	// Epsilon and Delta are the target.
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
	// Replace selects the target for one record replaced by another; by default it is for one record more or
	// less.
	Replace bool `json:"replace"`
	// Passes bounds the expected number of gradients by Passes N; 0 means 10 for noisy SGD and 100 for the others.
	Passes float64 `json:"passes"`
	// Rounds bounds the query depth; 0 is no bound.
	Rounds int `json:"max_rounds"`
	// Convex promises that the clipped gradients belong to a convex function for every possible record,
	// hostile ones included, as convex.ClippedGradient's are of every loss of package convex. ReSQue then
	// needs less noise; where it is false, ReSQue is charged for gradients that are not.
	Convex bool `json:"convex"`
}

// Validate names the first field that is out of range.
func (p Public) Validate() error {
	positive := func(x float64) bool { return x > 0 && x <= 1e30 }
	switch {
	case p.Method != NoisySGD && p.Method != ReSQue && p.Method != ReSQueSCO && p.Method != ReSQueBall:
		return fmt.Errorf("method %q: want %s, %s, %s or %s", p.Method, NoisySGD, ReSQue, ReSQueSCO, ReSQueBall)
	case p.N < 2 || p.N > 1<<24:
		return fmt.Errorf("n = %d: want 2 to %d records", p.N, 1<<24)
	case p.Dim < 1 || p.Dim > randomizer.MaxDim:
		return fmt.Errorf("dimension %d: want 1 to %d", p.Dim, randomizer.MaxDim)
	case !positive(p.Lipschitz) || p.Lipschitz < 1e-30:
		return fmt.Errorf("lipschitz %v: want a number above 0", p.Lipschitz)
	case !positive(p.Radius) || p.Radius < 1e-30:
		return fmt.Errorf("radius %v: want a number above 0", p.Radius)
	case !(p.Epsilon > 0 && p.Epsilon <= accounting.MaxEpsilon):
		return fmt.Errorf("epsilon %v: want a number in (0, %d]", p.Epsilon, accounting.MaxEpsilon)
	case !(p.Delta >= 1e-15 && p.Delta <= 0.1):
		return fmt.Errorf("delta %v: want 1e-15 to 0.1", p.Delta)
	case !(p.Passes >= 0 && p.Passes <= 1e4):
		return fmt.Errorf("passes %v: want 0 to 1e4", p.Passes)
	case p.Rounds < 0:
		return fmt.Errorf("rounds %d: want at least 0", p.Rounds)
	}
	return nil
}

func (p Public) maxRounds() float64 {
	if p.Rounds > 0 {
		return float64(p.Rounds)
	}
	return math.Inf(1)
}

// target returns the budget for one record more or less.
func (p Public) target() accounting.Budget {
	if !p.Replace {
		return accounting.Budget{Epsilon: p.Epsilon, Delta: p.Delta}
	}
	// newCost rounds up
	return accounting.Budget{Epsilon: p.Epsilon / 2, Delta: p.Delta / (1 + math.Exp(p.Epsilon/2)) * (1 - 1e-11)}
}

func (p Public) passes() float64 {
	switch {
	case p.Passes > 0:
		return p.Passes
	case p.Method != NoisySGD:
		return 100
	}
	return 10
}

// A cost bounds the privacy cost of a plan.
type cost struct {
	// Epsilon and Delta hold for neighbours of which one has one record more (add/remove).
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
	// ReplaceEpsilon and ReplaceDelta hold for neighbours of which one has another record instead of one (replace-one):
	// the record is taken away and the other one added.
	ReplaceEpsilon float64 `json:"replace_epsilon"`
	ReplaceDelta   float64 `json:"replace_delta"`
}

func newCost(eps, delta float64) cost {
	return cost{Epsilon: eps, Delta: delta, ReplaceEpsilon: 2 * eps,
		ReplaceDelta: min(1, delta*(1+math.Exp(eps))*(1+1e-12))}
}
