package model

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"

	"github.com/panlearn/panlearn/internal/evaluation"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// A Calibration holds the straight line by which a model's scores were moved so that its probabilities are
// frequencies: each score is Scale times the model's own, plus Shift. It was fitted on public examples.
type Calibration struct {
	Examples int       `json:"examples"`
	Scale    float64   `json:"scale"` // above 0, so that the order of events stays
	Shift    []float64 `json:"shift"` // one for each score; 0 where the task has no intercept
}

// Calibrated holds the scores of a calibration on examples on which its line was not fitted: the examples are cut into
// Folds parts, and each part is scored by the line fitted on all others.
type Calibrated struct {
	Calibration
	Invalid int    `json:"invalid"` // rows that do not fit; not among the examples
	Folds   int    `json:"folds"`
	Before  honest `json:"before"`
	After   honest `json:"after"`
}

// honest measures how far probabilities can be relied on.
type honest struct {
	LogLoss          float64 `json:"log_loss"`
	CalibrationError float64 `json:"calibration_error"` // over ten bins of equal width
}

// folds counts the parts that examples are cut into to measure a calibration.
const folds = 5

// minCalibration is the least number of examples of each class: with fewer the line is noise.
const minCalibration = 10

// leastScale is the smallest scale that is taken: below it the line makes all scores nearly equal.
const leastScale = 0.01

// An uselessError reports that a calibration does not lower the log loss of examples that it was not fitted on.
type uselessError struct{ before, after float64 }

// Error returns both losses.
func (e *uselessError) Error() string {
	return fmt.Sprintf("calibration does not help: the log loss of rows that it was not fitted on is %.5g, and %.5g without it",
		e.after, e.before)
}

// Calibrate returns the snapshot with its scores on the line that fits public examples best: it is a snapshot like any
// other, in every format. The line minimizes the log loss plus ((Scale-1)^2 + |Shift|^2)/2 in all, a normal prior of
// width 1 around the model as it is, so that few examples move it little. It refuses a loss without probabilities and a
// scale below leastScale, and returns a *uselessError beside the figures where the model is no better for it.
func (s Snapshot) Calibrate(rows iter.Seq2[task.Row, error], format task.Format, unfit func(*task.RowError)) (Snapshot,
	Calibrated, error) {
	p, err := NewPredictor(s, format)
	if err != nil {
		return s, Calibrated{}, err
	}
	if !p.traits().Scores.Probable() {
		return s, Calibrated{}, fmt.Errorf("the %s loss has no probabilities to calibrate", p.Loss.Name())
	}
	if old := s.Calibration; old != nil && len(old.Shift) != p.Features.Outputs() {
		return s, Calibrated{}, fmt.Errorf("model: a calibration of %d scores, want %d", len(old.Shift), p.Features.Outputs())
	}
	f := fitting{p: p, shifts: p.Features.Dim() > len(p.Features.Coordinates())}
	if err := f.read(rows, unfit); err != nil {
		return s, Calibrated{}, err
	}
	out := Calibrated{Invalid: f.invalid, Folds: folds}
	if out.Before, out.After, err = f.measure(); err != nil {
		return s, out, err
	}
	if out.Calibration, err = f.fit(func(int) bool { return true }); err != nil {
		return s, out, err
	}
	if out.Scale < leastScale {
		return s, out, fmt.Errorf("scores times %.2g fit these rows best, which is less than %v and leaves nothing of the model: "+
			"are the rows' labels swapped, or are they of another task? Else the model tells nothing of them", out.Scale, leastScale)
	}
	if out.After.LogLoss >= out.Before.LogLoss {
		return s, out, &uselessError{out.Before.LogLoss, out.After.LogLoss}
	}
	s.Weights, s.Intercept = slices.Clone(s.Weights), slices.Clone(s.Intercept)
	for k, row := range s.Weights {
		s.Weights[k] = slices.Clone(row)
		for j := range row {
			s.Weights[k][j] *= out.Scale
		}
		s.Intercept[k] = out.Scale*s.Intercept[k] + out.Shift[k]
	}
	line := out.Calibration
	if old := s.Calibration; old != nil { // of scores that were on a line already
		line.Scale, line.Shift = line.Scale*old.Scale, slices.Clone(line.Shift)
		for k := range line.Shift {
			line.Shift[k] += out.Scale * old.Shift[k]
		}
	}
	s.Calibration, s.Probabilities = &line, ofPublic
	return s, out, nil
}

// A fitting holds the scores of examples, and fits lines to them.
type fitting struct {
	p       Predictor
	shifts  bool        // the task has an intercept, so scores can be shifted
	scores  [][]float64 // of each example
	classes []int
	invalid int
}

func (f *fitting) read(rows iter.Seq2[task.Row, error], unfit func(*task.RowError)) error {
	var (
		example convex.Example
		bad     *task.RowError
		labels  = newLabels(f.p)
	)
	for row, err := range rows {
		if err == nil {
			err = f.p.Features.Map(row, &example)
		}
		switch {
		case errors.As(err, &bad):
			if f.invalid++; unfit != nil {
				unfit(bad)
			}
			continue
		case err != nil:
			return err
		}
		labels.add(example.Label, example.Offset)
		f.scores = append(f.scores, slices.Clone(f.p.Features.Scores(nil, f.p.Theta, example)))
		f.classes = append(f.classes, labels.class(example.Label))
	}
	for k, n := range labels.counts {
		if n < minCalibration {
			return fmt.Errorf("%d examples of class %q: want at least %d of each to calibrate with", n,
				f.p.Features.Classes()[k], minCalibration)
		}
	}
	return nil
}

// moved overwrites dst with a line of an example's scores.
func (c Calibration) moved(dst, scores []float64) []float64 {
	dst = dst[:0]
	for k, z := range scores {
		dst = append(dst, c.Scale*z+c.Shift[k])
	}
	return dst
}

// measure compares the model as it is with lines that were fitted on other examples.
func (f *fitting) measure() (before, after honest, err error) {
	var was, is reliance
	for part := range folds {
		line, err := f.fit(func(i int) bool { return i%folds != part })
		if err != nil {
			return before, after, err
		}
		var moved []float64
		for i := part; i < len(f.scores); i += folds {
			moved = line.moved(moved, f.scores[i])
			was.add(f.p, f.scores[i], f.classes[i])
			is.add(f.p, moved, f.classes[i])
		}
	}
	return was.honest(), is.honest(), nil
}

// A reliance adds up how far probabilities are from what occurs.
type reliance struct {
	n       int
	logLoss float64
	bins    evaluation.Reliability
	scratch []float64
}

func (r *reliance) add(p Predictor, scores []float64, class int) {
	r.n++
	r.logLoss += logLoss(scores, class)
	r.scratch = p.probabilities(r.scratch[:0], scores)
	if len(scores) == 1 {
		r.bins.Add(r.scratch[0], class == 1)
		return
	}
	top := slices.Index(r.scratch, slices.Max(r.scratch))
	r.bins.Add(r.scratch[top], class == top)
}

func (r *reliance) honest() honest {
	return honest{LogLoss: r.logLoss / float64(r.n), CalibrationError: r.bins.Error()}
}

// fit returns the line that fits the examples which are taken best. It minimizes over the logarithm of the scale, so
// that the scale stays above 0.
func (f *fitting) fit(taken func(int) bool) (Calibration, error) {
	width := f.p.Features.Outputs()
	line := func(x []float64) Calibration {
		c := Calibration{Scale: math.Exp(x[0]), Shift: make([]float64, width)}
		if f.shifts {
			copy(c.Shift, x[1:])
		}
		return c
	}
	unknowns := 1
	if f.shifts {
		unknowns += width
	}
	var moved, slopes []float64
	problem := optimize.Problem{Func: func(x []float64) float64 {
		c := line(x)
		sum := (c.Scale - 1) * (c.Scale - 1) / 2
		for _, b := range c.Shift {
			sum += b * b / 2
		}
		for i, scores := range f.scores {
			if taken(i) {
				moved = c.moved(moved, scores)
				sum += logLoss(moved, f.classes[i])
			}
		}
		return sum
	},
		Grad: func(dst, x []float64) {
			c := line(x)
			dst[0] = (c.Scale - 1) * c.Scale
			if f.shifts {
				copy(dst[1:], c.Shift)
			}
			for i, scores := range f.scores {
				if !taken(i) {
					continue
				}
				moved = c.moved(moved, scores)
				slopes = f.slopes(slopes, moved, f.classes[i])
				for k, g := range slopes {
					dst[0] += g * c.Scale * scores[k]
					if f.shifts {
						dst[1+k] += g
					}
				}
			}
		},
	}
	settings := &optimize.Settings{GradientThreshold: 1e-6, Converger: &optimize.FunctionConverge{Relative: 1e-12,
		Iterations: 20}}
	result, err := optimize.Minimize(problem, make([]float64, unknowns), settings, &optimize.BFGS{})
	if result == nil || !slices.ContainsFunc(result.X, func(x float64) bool { return x != 0 }) && err != nil {
		return Calibration{}, fmt.Errorf("fit the calibration: %w", err)
	}
	out := line(result.X)
	for i := range f.scores {
		if taken(i) {
			out.Examples++
		}
	}
	return out, nil
}

// slopes overwrites dst with the derivatives of an example's log loss by its scores: probabilities less what occurred.
func (f *fitting) slopes(dst, scores []float64, class int) []float64 {
	dst = f.p.probabilities(dst[:0], scores)
	if len(scores) == 1 {
		dst[0] -= float64(class)
	} else {
		dst[class]--
	}
	return dst
}
