package private

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// Data are the records.
type Data struct {
	Loss     convex.Loss
	Features int              // the dimension of Rows
	Rows     []convex.Example // one record each; a row that is no example of the loss, or larger than 1e100, says zero
}

// records are Data in the form in which they are asked.
type records struct {
	data  Data
	sound []bool // the row says something
	clip  float64
	zero  convex.Example
}

// largest bounds a record's norm and label: beyond it a gradient may overflow and become zero, which is that of no convex function (Public.Convex).
const largest = 1e100

func newRecords(d Data, p Public) (*records, error) {
	switch {
	case d.Loss == nil || d.Features < 1 || d.Loss.Parameters(d.Features) != p.Dim:
		return nil, fmt.Errorf("data: want a loss with %d parameters", p.Dim)
	case len(d.Rows) > p.N:
		return nil, fmt.Errorf("data: more rows than n = %d", p.N)
	}
	r := &records{data: d, sound: make([]bool, len(d.Rows)), clip: p.Lipschitz, zero: convex.Example{Value: make([]float64, d.Features)}}
	for i, e := range d.Rows {
		r.sound[i] = e.Validate(d.Features) == nil && d.Loss.CheckLabel(e.Label) == nil && e.Norm() <= largest && math.Abs(e.Label) <= largest
	}
	return r, nil
}

// gradient overwrites dst with record i's clipped gradient at theta, a function of both alone; zero where there is no such record.
func (r *records) gradient(dst, theta []float64, i int) {
	if i < len(r.sound) && r.sound[i] {
		convex.ClippedGradient(r.data.Loss, dst, theta, r.data.Rows[i], r.clip)
		return
	}
	convex.ClippedGradient(r.data.Loss, dst, theta, r.zero, r.clip) // as much work
	clear(dst)
}
