package resque

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
)

// An Oracle answers queries about a convex function f on R^d.
type Oracle interface {
	// Query writes for each of the points, rows of d numbers, a random g into the same row of dst, with E g in the
	// subdifferential of f there and E||g||^2 <= L^2, see Problem. Answers are independent of each other; their
	// randomness is random's, which the call alone has. It is called by several goroutines at a time.
	Query(ctx context.Context, dst, points []float64, random *rand.Rand) error
}

// rows is the oracle of the mean of a loss over rows.
type rows struct {
	loss    convex.Loss
	rows    []convex.Example
	dim     int
	longest float64
}

// NewRows returns the oracle that answers each query with the gradient at a row that it draws, uniformly, of the
// loss kept from rising faster than longest, see convex.ClippedGradient: f is the mean of these convex functions
// over the rows, which is the mean of the loss where that is longest-Lipschitz for every row. The rows are valid
// for the number of features and stay as they are.
func NewRows(loss convex.Loss, of []convex.Example, features int, longest float64) (Oracle, error) {
	if len(of) == 0 {
		return nil, errors.New("rows: none, want at least one")
	}
	if !(longest > 0) || math.IsInf(longest, 0) {
		return nil, fmt.Errorf("rows: gradients up to %v, want a finite number above 0", longest)
	}
	return rows{loss, of, loss.Parameters(features), longest}, nil
}

func (o rows) Query(ctx context.Context, dst, points []float64, random *rand.Rand) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := 0; i < len(points); i += o.dim {
		convex.ClippedGradient(o.loss, dst[i:i+o.dim], points[i:i+o.dim], o.rows[random.IntN(len(o.rows))], o.longest)
	}
	return nil
}
