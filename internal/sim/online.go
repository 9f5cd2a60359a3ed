package sim

import (
	"context"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// An Online learner takes rows in their order, without privacy and without clipping: what a stream without an end
// is compared with. It knows of a row nothing before Learn.
type Online interface {
	// Ready returns a row in the coordinates of the learner, and its model there. Both are only valid until the
	// next call.
	Ready(e convex.Example) (row convex.Example, model []float64)
	// Learn learns from a row.
	Learn(ctx context.Context, e convex.Example) error
}

// OnlineConfig describes the rows of an Online learner.
type OnlineConfig struct {
	Loss      convex.Loss
	Features  int  // length of a row
	Intercept bool // the last of them is a constant
}

// moments standardise rows by the means and variances of the rows so far. Without an intercept there are no means.
type moments struct {
	OnlineConfig
	rows          float64
	mean, squares []float64 // squares about the mean
	scale         []float64
	row           []float64
}

func newMoments(c OnlineConfig) moments {
	return moments{OnlineConfig: c, mean: make([]float64, c.Features),
		squares: make([]float64, c.Features), scale: make([]float64, c.Features), row: make([]float64, c.Features)}
}

// see adds a row.
func (m *moments) see(e convex.Example) {
	m.rows++
	m.dense(e)
	mean := 0.0
	for j, x := range m.row {
		d := x - m.mean[j]
		if m.Intercept {
			m.mean[j] += d / m.rows
		}
		m.squares[j] += d * (x - m.mean[j])
		mean += m.squares[j] / m.rows / float64(len(m.row))
	}
	least := max(1e-6, min(0.01, mean/4)) // as frames have it
	for j, s := range m.squares {
		m.scale[j] = 1 / math.Sqrt(s/m.rows+least)
	}
}

// dense writes a row into m.row.
func (m *moments) dense(e convex.Example) {
	if e.Index == nil {
		copy(m.row, e.Value)
		return
	}
	clear(m.row)
	for k, j := range e.Index {
		m.row[j] = e.Value[k]
	}
}

// standard returns a row in standardised coordinates; it is valid until the next call.
func (m *moments) standard(e convex.Example) convex.Example {
	m.dense(e)
	for j, x := range m.row {
		m.row[j] = (x - m.mean[j]) * m.scale[j]
	}
	if m.Intercept {
		m.row[len(m.row)-1] = 1
	}
	return convex.Example{Value: m.row, Label: e.Label}
}

// sgdRate is the step of sgd in units of the largest at which a row of mean length does not overshoot. It was
// chosen on electricity prices and made streams among .01, .02, .05, .1 and .2.
const sgdRate = 0.05

// sgd is stochastic gradient descent, a step a row, of constant size: it never stops following.
type sgd struct {
	moments
	theta, gradient []float64
	length          float64 // mean square norm of rows
	curvature       float64 // of the loss, at most, at rows of norm 1
}

// NewSGD returns sgd at zero.
func NewSGD(c OnlineConfig) *sgd {
	d := c.Loss.Parameters(c.Features)
	out := &sgd{moments: newMoments(c), theta: make([]float64, d), gradient: make([]float64, d),
		curvature: c.Loss.Smoothness(1)}
	if math.IsInf(out.curvature, 0) {
		out.curvature = 1
	}
	return out
}

// Ready implements Online.
func (s *sgd) Ready(e convex.Example) (convex.Example, []float64) { return s.standard(e), s.theta }

// Learn implements Online.
func (s *sgd) Learn(_ context.Context, e convex.Example) error {
	s.see(e)
	z := s.standard(e)
	square := convex.Norm(z.Value) * convex.Norm(z.Value)
	s.length += (square - s.length) / s.rows
	s.Loss.Gradient(s.gradient, s.theta, z)
	step := sgdRate / (s.curvature * max(s.length, square, 1e-12))
	for j, g := range s.gradient {
		s.theta[j] -= step * g
	}
	return nil
}

const (
	// WindowRows are the rows of which Window makes its model. They were chosen on electricity prices and made streams
	// among 1,000, 2,000, 4,000, 8,000 and 16,000.
	WindowRows  = 2000
	windowOften = 8   // models a window
	windowFirst = 100 // rows of the first model
	windowSteps = 30  // of one refit, which begins at the model before
)

// window fits a new model to the last WindowRows rows, eight times a window: it forgets at once what is
// older.
type window struct {
	moments
	kept  []convex.Example
	next  float64 // rows at which the next model is made
	fixed moments // the model's moments
	theta []float64
}

// NewWindow returns a Window without rows.
func NewWindow(c OnlineConfig) *window {
	return &window{moments: newMoments(c), fixed: newMoments(c), next: windowFirst, theta: make([]float64,
		c.Loss.Parameters(c.Features))}
}

// Ready implements Online.
func (w *window) Ready(e convex.Example) (convex.Example, []float64) {
	return w.fixed.standard(e), w.theta
}

// Learn implements Online.
func (w *window) Learn(ctx context.Context, e convex.Example) error {
	w.see(e)
	if w.kept = append(w.kept, e); len(w.kept) > WindowRows {
		w.kept = w.kept[1:]
	}
	if w.rows < w.next {
		return nil
	}
	w.next = min(2*w.rows, w.rows+WindowRows/windowOften)
	w.fixed = newMoments(w.OnlineConfig)
	for _, e := range w.kept {
		w.fixed.see(e)
	}
	rows := make([]convex.Example, len(w.kept))
	for i, e := range w.kept {
		rows[i] = w.fixed.standard(e)
		rows[i].Value = append([]float64(nil), rows[i].Value...)
	}
	theta, err := Converge(ctx, ConvergeConfig{Loss: w.Loss, Set: convex.Ball{R: 1e6}, Ridge: 1 / float64(len(rows)),
		Dim: len(w.theta), Examples: rows,
		Start: w.theta, Steps: windowSteps})
	if err == nil {
		w.theta = theta
	}
	return err
}
