package private

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// Data are the records.
type Data struct {
	Loss     convex.Loss
	Features int // the dimension of Rows
	// one record each; a row that is no example of the loss, or too large (newRecords), contributes zero
	Rows []convex.Example
}

// records are Data in the form in which they are asked.
type records struct {
	data  Data
	sound []bool // the row contributes
	clip  float64
	zero  convex.Example
}

// largest bounds a record's norm and label. Beyond it a gradient may overflow and become zero, which no
// convex function's gradient does (Public.Convex).
const largest = 1e100

// largestScores bounds, in clip norms, the norm of a record of a loss of several scores, whose clipped gradient is
// found by iteration: rounding makes it fall along a line by about 1e-15 of this many clip norms, which is all of
// the gradient at 1e16.
const largestScores = 1e7

func newRecords(d Data, p Public) (*records, error) {
	switch {
	case d.Loss == nil || d.Features < 1 || d.Loss.Parameters(d.Features) != p.Dim:
		return nil, fmt.Errorf("data: want a loss with %d parameters", p.Dim)
	case len(d.Rows) > p.N:
		return nil, fmt.Errorf("data: more rows than n = %d", p.N)
	}
	most := largest
	if d.Loss.Parameters(d.Features) != d.Features {
		most = min(most, largestScores*p.Lipschitz)
	}
	r := &records{data: d, sound: make([]bool, len(d.Rows)), clip: p.Lipschitz,
		zero: convex.Example{Value: make([]float64, d.Features)}}
	for i, e := range d.Rows {
		r.sound[i] = e.Validate(d.Features) == nil && d.Loss.CheckLabel(e.Label) == nil && e.Norm() <= most &&
			math.Abs(e.Label) <= largest
	}
	return r, nil
}

// gradient overwrites dst with record i's clipped gradient at theta, a function of both alone; zero where there is
// no such record.
func (r *records) gradient(dst, theta []float64, i int) {
	if i < len(r.sound) && r.sound[i] {
		convex.ClippedGradient(r.data.Loss, dst, theta, r.data.Rows[i], r.clip)
		return
	}
	convex.ClippedGradient(r.data.Loss, dst, theta, r.zero, r.clip) // as much work
	clear(dst)
}
