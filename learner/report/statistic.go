package report

import (
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Statistic is what a phase asks of a row. Its number is that of wire.Statistic.
type Statistic uint8

const (
	// Gradient is that of the loss at the round's point, with the point's scores after it.
	Gradient Statistic = iota
	// SecondMoments are the squares of the features that are to be scaled, see convex.Preconditioner.
	SecondMoments
)

// statistics are the rows of all that is known of a statistic here, by its number.
var statistics = [...]struct {
	name string
	// config says what a phase of the statistic reports, in a task whose gradients are reported as c says.
	config func(c Config) Config
	dim    func(c Config) int // without scores
	write  func(e *Exact, dst []float64, row convex.Example)
}{
	Gradient: {
		name:   "gradients",
		config: func(c Config) Config { return c },
		dim:    func(c Config) int { return c.Loss.Parameters(c.Features) },
		write: func(e *Exact, dst []float64, row convex.Example) {
			convex.ClippedGradient(e.c.Loss, dst, e.point, row, e.c.ClipNorm)
		},
	},
	SecondMoments: {
		name: "second moments",
		config: func(c Config) Config {
			c.ClipNorm, c.Scores, c.Score = c.Scaling.Norm, 0, nil
			return c
		},
		dim:   func(c Config) int { return c.Scaling.Dim },
		write: func(e *Exact, dst []float64, row convex.Example) { e.c.Scaling.Squares(dst, row) },
	},
}

// String is the statistic's name in the plural.
func (s Statistic) String() string {
	if int(s) >= len(statistics) {
		return fmt.Sprintf("statistic %d", uint8(s))
	}
	return statistics[s].name
}

// A Config says what the reports of a phase are of. All of it is public.
type Config struct {
	Statistic Statistic
	Features  int // length of a row's feature vector
	// Loss is the one whose gradient is reported, such as a Moreau envelope. Its labels are those of a row.
	Loss convex.Loss
	// ClipNorm bounds the statistic, without scores.
	ClipNorm float64
	// Scaling says how features are scaled, and which squares are asked for; nil where the task scales none.
	Scaling *convex.Preconditioner
	// Scores is how many coordinates of Score follow the gradient, and Score writes them; both zero where there are none.
	Scores int
	Score  func(dst, point []float64, row convex.Example)
}

// Phase returns what a phase of a statistic reports, in a task whose gradients are reported as c says; with smoothing B above 0 the
// gradient is that of the loss's Moreau envelope. Devices and simulations ask it, each with the c that it believes.
func (c Config) Phase(s Statistic, smoothing float64) (Config, error) {
	if smoothing != 0 {
		envelope, err := convex.NewEnvelope(c.Loss, smoothing)
		if err != nil {
			return c, err
		}
		c.Loss = envelope
	}
	if s == SecondMoments && c.Scaling == nil {
		return c, fmt.Errorf("report: second moments: want a scaling")
	}
	if int(s) >= len(statistics) {
		return c, fmt.Errorf("report: %v: unknown", s)
	}
	c.Statistic = s
	return statistics[s].config(c), nil
}

// Dim is the number of coordinates of a report.
func (c Config) Dim() int { return statistics[c.Statistic].dim(c) + c.Scores }

func (c Config) validate() error {
	switch {
	case c.Features < 1:
		return fmt.Errorf("report: %d features: want at least 1", c.Features)
	case c.Loss == nil:
		return fmt.Errorf("report: loss: missing")
	case !(c.ClipNorm > 0):
		return fmt.Errorf("report: clip norm %v: want above 0", c.ClipNorm)
	case int(c.Statistic) >= len(statistics):
		return fmt.Errorf("report: %v: unknown", c.Statistic)
	case c.Scaling != nil && (c.Scaling.Dim < 1 || c.Scaling.Dim > c.Features):
		return fmt.Errorf("report: %d second moments of %d features", c.Scaling.Dim, c.Features)
	case c.Statistic == SecondMoments && (c.Scaling == nil || c.Scores != 0):
		return fmt.Errorf("report: second moments: want a scaling, and no scores")
	case c.Scores < 0 || (c.Scores > 0) != (c.Score != nil):
		return fmt.Errorf("report: %d scores: want some, and what writes them, or neither", c.Scores)
	}
	return nil
}

// An Exact computes what a report is about, in real numbers and without noise: for baselines, and beneath a Maker. One
// goroutine uses it.
type Exact struct {
	c      Config
	point  []float64
	scales []float64      // nil: features as they are
	vector []float64      // the statistic, then the scores
	scaled convex.Example // scratch
	blank  convex.Example // stands in for a row that is none of the task's
}

// NewExact validates the configuration.
func NewExact(c Config) (*Exact, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	e := &Exact{c: c, vector: make([]float64, c.Dim())}
	e.blank.Value = make([]float64, c.Features)
	for _, label := range []float64{0, 1} {
		if c.Loss.CheckLabel(label) == nil {
			e.blank.Label = label
		}
	}
	return e, nil
}

// At moves to the point and the scales of a round; nil scales leave features as they are. A round of second moments has
// neither.
func (e *Exact) At(point, scales []float64) error {
	if e.c.Statistic == SecondMoments {
		return nil
	}
	if want := e.c.Loss.Parameters(e.c.Features); len(point) != want {
		return fmt.Errorf("report: point of %d coordinates: want %d", len(point), want)
	}
	if scales != nil && (e.c.Scaling == nil || len(scales) != e.c.Scaling.Dim) {
		return fmt.Errorf("report: %d scales: want as many as features are scaled", len(scales))
	}
	e.point, e.scales = slices.Clone(point), slices.Clone(scales)
	return nil
}

// Check says whether a row is an event of the task: its dimension, order, finiteness, and the label's domain. The error
// names positions, never contents.
func (c Config) Check(row convex.Example) error {
	if err := row.Validate(c.Features); err != nil {
		return err
	}
	return c.Loss.CheckLabel(row.Label)
}

// Vector is what a row says at the round's point: its statistic, clipped, and the scores after it. It is the zero vector for a
// row that Check refuses. The result is valid until the next call.
func (e *Exact) Vector(row convex.Example) []float64 {
	unfit := e.c.Check(row) != nil
	if unfit {
		row = e.blank // whatever was wrong with it, the work is a row's
	}
	at := len(e.vector) - e.c.Scores
	statistic, scores := e.vector[:at], e.vector[at:]
	row = e.rescaled(row)
	statistics[e.c.Statistic].write(e, statistic, row)
	convex.Clip(statistic, e.c.ClipNorm)
	if len(scores) > 0 {
		e.c.Score(scores, e.point, row)
	}
	if unfit {
		clear(e.vector)
	}
	return e.vector
}

// rescaled is a row in the coordinates of the point; it is valid until the next one.
func (e *Exact) rescaled(row convex.Example) convex.Example {
	if e.scales == nil {
		return row
	}
	e.c.Scaling.Rescale(&e.scaled, row, e.scales)
	return e.scaled
}

// forget overwrites what is left of the last row.
func (e *Exact) forget() {
	clear(e.vector)
	clear(e.scaled.Value)
	e.scaled.Index, e.scaled.Label = nil, 0
}
