package state

import "fmt"

// A Composition turns the charged rounds of a ledger, one entry a round, into the cost for the user who is
// charged most. It must be an upper bound, and must not fall when an entry is added.
type Composition func(charged []Entry) (Cost, error)

// Parallel composes rounds of which every user pays for one alone: the maximum over users is the maximum over rounds. Where
// a user answers several rounds, each of them must be charged with what they cost together (Theorem A in
// docs/theorem-a.md), or another composition must be used.
func Parallel(charged []Entry) (Cost, error) {
	var worst Cost
	for _, e := range charged {
		worst = worst.over(e.Cost())
	}
	return worst, nil
}

// over is the larger of each part of two costs.
func (c Cost) over(other Cost) Cost {
	return Cost{Epsilon: max(c.Epsilon, other.Epsilon), Delta: max(c.Delta, other.Delta)}
}

func composed(compose Composition, charged []Entry) (Cost, error) {
	if len(charged) == 0 {
		return Cost{}, nil
	}
	c, err := compose(charged)
	if err != nil {
		return Cost{}, fmt.Errorf("compose %d rounds: %w", len(charged), err)
	}
	if err := c.Validate(); err != nil {
		return Cost{}, fmt.Errorf("compose %d rounds: %w", len(charged), err)
	}
	return c, nil
}

// A BudgetError refuses a round that would exceed the privacy budget. Commands exit with code 3 on it.
type BudgetError struct {
	Round     uint64 // the refused round
	Spent     Cost   // what is charged without it
	Increment Cost   // what the round costs alone
	Total     Cost   // what would be charged with it
	Budget    Cost
}

// Error names the spend so far and the refused increment separately.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("privacy budget refuses round %d: spent so far epsilon %v, delta %v; refused increment epsilon %v, delta %v; together epsilon %v, delta %v; budget epsilon %v, delta %v: the task ends here, or plan a new task",
		e.Round, e.Spent.Epsilon, e.Spent.Delta, e.Increment.Epsilon, e.Increment.Delta,
		e.Total.Epsilon, e.Total.Delta, e.Budget.Epsilon, e.Budget.Delta)
}
