package report

import (
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// A Statistic is the function of a row that a phase reports. Its number is the one in wire.Statistic.
type Statistic uint8

const (
	// Gradient is the gradient of the loss at the round's point, with the point's scores after it.
	Gradient Statistic = iota
	// Moments are the features, their squares and the label, see practical.Problem.Moments.
	Moments
	// MomentMatrix holds the products of the features in the round's frame, see practical.Problem.Matrix.
	MomentMatrix
)

// statistics is the table of statistics, by number.
var statistics = [...]struct {
	name string
	// config returns the configuration of a phase of the statistic, in a task whose gradients are reported by
	// c.
	config func(c Config) Config
	dim    func(c Config) int // without scores
	write  func(e *Exact, dst []float64, row convex.Example)
}{
	Gradient: {
		name:   "gradients",
		config: func(c Config) Config { return c },
		dim:    func(c Config) int { return c.Loss.Parameters(c.Features) },
		write:  func(e *Exact, dst []float64, row convex.Example) { e.gradient(dst, row) },
	},
	Moments: {
		name: "moments",
		config: func(c Config) Config {
			c.ClipNorm, c.Radius, c.Scores, c.Score = c.Practical.MomentsNorm(), 0, 0, nil
			return c
		},
		dim:   func(c Config) int { return c.Practical.MomentsDim() },
		write: func(e *Exact, dst []float64, row convex.Example) { e.c.Practical.Moments(dst, row) },
	},
	MomentMatrix: {
		name: "second-moment matrices",
		config: func(c Config) Config {
			c.Radius, c.Scores, c.Score = 0, 0, nil
			return c
		},
		dim:   func(c Config) int { return c.Practical.MatrixDim() },
		write: func(e *Exact, dst []float64, row convex.Example) { e.c.Practical.Matrix(dst, e.frame, row, row.Label) },
	},
}

// String returns the statistic's name in the plural.
func (s Statistic) String() string {
	if int(s) >= len(statistics) {
		return fmt.Sprintf("statistic %d", uint8(s))
	}
	return statistics[s].name
}

// A Config defines the vectors that a phase reports. All of it is public.
type Config struct {
	Statistic Statistic
	Features  int // length of a row's feature vector
	// Loss is the loss whose gradient is reported, such as a Moreau envelope. Its labels are a row's labels.
	Loss convex.Loss
	// ClipNorm bounds the statistic of a row, without scores.
	ClipNorm float64
	// Radius bounds the mean gradient of a unit's rows, as a share of ClipNorm; 0 means 1. It does not apply to moments,
	// which it would distort.
	Radius float64
	// Practical defines the moments, in a practical plan; nil in a proved one. From the second round on a
	// practical plan announces frames, and its statistics are in units of the frame's clip: ClipNorm is 1.
	Practical *practical.Problem
	// Prox selects minimisers instead of gradients; nil selects gradients.
	Prox *Prox
	// Scores is the number of score coordinates that follow the gradient, and Score writes them; both are zero without
	// scores.
	Scores int
	Score  func(dst, point []float64, row convex.Example)
}

// Phase returns the configuration of a phase of a statistic, in a task whose gradients are reported by c. With
// smoothing B above 0 it reports the gradient of the loss's Moreau envelope.
func (c Config) Phase(s Statistic, smoothing float64) (Config, error) {
	if smoothing != 0 {
		envelope, err := convex.NewEnvelope(c.Loss, smoothing)
		if err != nil {
			return c, err
		}
		c.Loss = envelope
	}
	if int(s) >= len(statistics) {
		return c, fmt.Errorf("report: %v: unknown", s)
	}
	if s != Gradient && c.Practical == nil {
		return c, fmt.Errorf("report: %v: want a practical plan", s)
	}
	c.Statistic = s
	return statistics[s].config(c), nil
}

// Norm bounds the norm of a unit's vector, without scores; with a Prox, the minimiser's distance from the
// point.
func (c Config) Norm() float64 {
	if c.Prox != nil {
		return c.ClipNorm / c.Prox.Weight
	}
	if c.Radius == 0 {
		return c.ClipNorm
	}
	return c.Radius * c.ClipNorm
}

// Dim returns the number of coordinates of a report.
func (c Config) Dim() int { return statistics[c.Statistic].dim(c) + c.Scores }

func (c Config) validate() error {
	switch {
	case c.Features < 1:
		return fmt.Errorf("report: %d features: want at least 1", c.Features)
	case c.Loss == nil:
		return fmt.Errorf("report: loss: missing")
	case !(c.ClipNorm > 0):
		return fmt.Errorf("report: clip norm %v: want above 0", c.ClipNorm)
	case !(c.Radius >= 0 && c.Radius <= 1) || c.Radius > 0 && c.Statistic != Gradient:
		return fmt.Errorf("report: radius %v of %v: want within [0, 1], and of gradients alone", c.Radius, c.Statistic)
	case int(c.Statistic) >= len(statistics):
		return fmt.Errorf("report: %v: unknown", c.Statistic)
	case c.Statistic != Gradient && (c.Practical == nil || c.Scores != 0):
		return fmt.Errorf("report: %v: want a practical plan, and no scores", c.Statistic)
	case c.framed() && c.ClipNorm != 1:
		return fmt.Errorf("report: clip norm %v: want 1, the unit of a frame's clip", c.ClipNorm)
	case c.Scores < 0 || (c.Scores > 0) != (c.Score != nil):
		return fmt.Errorf("report: %d scores: want some, and what writes them, or neither", c.Scores)
	case c.Prox != nil:
		return c.Prox.validate(c)
	}
	return nil
}

// An Exact computes the vector of a report in floating point and without noise, for baselines and for a Maker. One
// goroutine uses it.
type Exact struct {
	c      Config
	point  []float64
	frame  *convex.Frame  // nil: declared coordinates
	loss   convex.Loss    // of the round: c.Loss, smoothed as the frame says
	vector []float64      // of a row: the statistic, then the scores
	unit   []float64      // the mean over a unit's rows
	mean   []float64      // over a block's units
	framed convex.Example // scratch
	plain  []float64      // scratch: a gradient that is to be whitened
	blank  convex.Example // replaces an invalid row
	sparse sparse
	solver *solver // of a Prox
}

// NewExact validates the configuration.
func NewExact(c Config) (*Exact, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	e := &Exact{c: c, vector: make([]float64, c.Dim()), unit: make([]float64, c.Dim()), mean: make([]float64, c.Dim())}
	e.sparse.index, e.solver = []int32{}, newSolver(c)
	e.blank.Value = make([]float64, c.Features)
	for _, label := range []float64{0, 1} {
		if c.Loss.CheckLabel(label) == nil {
			e.blank.Label = label
		}
	}
	return e, nil
}

// framed reports whether the statistic is in the coordinates of frames.
func (c Config) framed() bool { return c.Practical != nil && c.Statistic != Moments }

// At moves to the point and the frame of a round; without a frame rows are in the declared coordinates. A round of
// moments has no point, and the first one no frame. The caller must not change the frame while it is in use.
func (e *Exact) At(point []float64, frame *convex.Frame) error {
	want := 0
	if e.c.Statistic == Gradient {
		want = e.c.Loss.Parameters(e.c.Features)
	}
	if len(point) != want {
		return fmt.Errorf("report: point of %d coordinates: want %d", len(point), want)
	}
	if (frame != nil) != e.c.framed() {
		return fmt.Errorf("report: %v, frame %v: want a frame from the second round of a practical plan on", e.c.Statistic,
			frame != nil)
	}
	loss := e.c.Loss
	if frame != nil {
		if err := e.c.Practical.CheckFrame(frame, e.c.Statistic == MomentMatrix); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		if frame.Smoothing > 0 {
			var err error
			if loss, err = convex.Smoothed(loss, frame.Smoothing); err != nil {
				return fmt.Errorf("report: %w", err)
			}
		}
	}
	e.point, e.frame, e.loss = slices.Clone(point), frame, loss
	for i, v := range e.point {
		e.point[i] = convex.Normal(v)
	}
	e.sparse.on = e.c.Statistic == Gradient && frame == nil && convex.OneScore(loss)
	return nil
}

// gradient writes the gradient of a row, clipped as the loss is where a risk bound must hold; in a frame it is
// whitened by the frame, and then scaled down by write, which was measured to learn better.
func (e *Exact) gradient(dst []float64, row convex.Example) {
	switch {
	case e.frame == nil:
		convex.ClippedGradient(e.loss, dst, e.point, row, e.c.ClipNorm)
	case e.frame.Whitener == nil:
		e.loss.Gradient(dst, e.point, row)
	default:
		e.plain = slices.Grow(e.plain[:0], len(dst))[:len(dst)]
		e.loss.Gradient(e.plain, e.point, row)
		n := e.frame.Dim()
		for i := 0; i < len(dst); i += n {
			e.frame.Whiten(dst[i:i+n], e.plain[i:i+n])
		}
	}
}

// Check returns an error unless a row is an event of the task. It checks dimension, order, finiteness, and the
// label's domain. The error names positions, never contents.
func (c Config) Check(row convex.Example) error {
	if err := row.Validate(c.Features); err != nil {
		return err
	}
	return c.Loss.CheckLabel(row.Label)
}

// Unit returns the vector of a unit's rows at the round's point: the mean of their statistics, each clipped,
// itself clipped to Config.Norm, and the mean of their scores after it; with a Prox, their minimiser. A row
// that Check refuses contributes zero and counts; without rows the vector is zero. The result is valid until
// the next call.
func (e *Exact) Unit(rows ...convex.Example) []float64 {
	if e.c.Prox != nil {
		return e.Minimiser(block.Of(rows...), uint64(len(rows)))
	}
	at := len(e.vector) - e.c.Scores
	if len(rows) == 1 {
		return e.only(e.fit(rows[0]))
	}
	clear(e.unit)
	share := 1 / float64(len(rows))
	for i := range rows {
		e.row(rows[i])
		for j, v := range e.vector {
			e.unit[j] += float64(v * share)
		}
	}
	convex.Clip(e.unit[:at], e.c.Norm())
	return e.unit
}

// only returns the vector of a unit of one row.
func (e *Exact) only(row convex.Example, unfit bool) []float64 {
	e.write(row, unfit)
	if e.c.Radius > 0 {
		convex.Clip(e.vector[:len(e.vector)-e.c.Scores], e.c.Norm())
	}
	return e.vector
}

// Mean returns the vector of a block: the mean over its units, or their minimiser; zero where it has no units.
// The result is valid until the next call.
func (e *Exact) Mean(b block.Block) []float64 {
	if e.c.Prox != nil {
		return e.Minimiser(b, uint64(b.Units()))
	}
	clear(e.mean)
	units := b.Units()
	for i := range units {
		for j, v := range e.Unit(b.Unit(i)...) {
			e.mean[j] += v
		}
	}
	for j := range e.mean {
		e.mean[j] /= float64(max(units, 1))
	}
	return e.mean
}

// fit returns the row if it is an event of the task, else a row that replaces it, and true.
func (e *Exact) fit(row convex.Example) (_ convex.Example, unfit bool) {
	if e.c.Check(row) != nil {
		return e.blank, true // the work is the same as for a valid row
	}
	return row, false
}

// row writes the vector of a row to e.vector.
func (e *Exact) row(row convex.Example) { e.write(e.fit(row)) }

// write writes the vector of a row to e.vector: its statistic, clipped, and the scores after it; zero for one
// that is unfit.
func (e *Exact) write(row convex.Example, unfit bool) {
	at := len(e.vector) - e.c.Scores
	statistic, scores := e.vector[:at], e.vector[at:]
	if e.frame != nil {
		e.frame.Apply(&e.framed, row)
		row = e.framed
	}
	statistics[e.c.Statistic].write(e, statistic, row)
	if e.frame != nil {
		for i := range statistic {
			statistic[i] /= e.frame.Clip
		}
	}
	if e.frame != nil || e.c.Statistic != Gradient { // else ClippedGradient ended with it
		convex.Clip(statistic, e.c.ClipNorm)
	}
	if len(scores) > 0 {
		e.c.Score(scores, e.point, row)
	}
	if unfit {
		clear(e.vector)
	}
}

// forget overwrites the remains of the last block.
func (e *Exact) forget() {
	clear(e.vector)
	clear(e.unit)
	clear(e.plain)
	e.sparse.forget()
	e.solver.forget()
	clear(e.framed.Value)
	e.framed.Label = 0
}
