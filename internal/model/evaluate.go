package model

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/panlearn/panlearn/internal/evaluation"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// An Evaluation holds the results of a model on examples. Errors are of numbers and counts, in the units of
// the label; figures that a loss does not have are absent.
type Evaluation struct {
	Examples int     `json:"examples"`
	Invalid  int     `json:"invalid"` // rows that do not fit the declaration; not among the examples
	Loss     float64 `json:"loss"`    // mean, in the coordinates of the feature map
	// Baseline holds the results of the best constant on the same examples.
	Baseline Baseline `json:"baseline"`

	*OfClasses
	*OfNumbers
}

// OfClasses are the figures of labels that are classes.
type OfClasses struct {
	Accuracy float64 `json:"accuracy"`
	// of the probabilities, whatever the loss weighs; none where there are no probabilities
	LogLoss *float64 `json:"log_loss,omitempty"`
	// AUC is of the positive class by its score; of several classes the mean of each by its probability against the
	// rest. None where it would need more than maxScores scores, or a class does not occur.
	AUC *float64 `json:"auc,omitempty"`
	// Classes names the rows and columns of Confusion: rows are labels, columns predictions.
	Classes   []string             `json:"classes"`
	Confusion evaluation.Confusion `json:"confusion"`
	// Precision and Recall are of the positive class; of several classes their means over the classes.
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	// Threshold is the value that decided for the positive class, if not the model itself.
	Threshold *float64 `json:"threshold,omitempty"`
	// Cost holds what errors cost, where it was asked for.
	Cost *costFigures `json:"cost,omitempty"`
	// CalibrationError and Reliability are of the probability of the positive class; of several classes of the
	// predicted one.
	CalibrationError *float64         `json:"calibration_error,omitempty"`
	Reliability      []evaluation.Bin `json:"reliability,omitempty"`
}

// OfNumbers are the figures of numbers and counts.
type OfNumbers struct {
	R2    float64 `json:"r2"`    // share of the labels' variance that is predicted; 0 where all labels are equal
	Error float64 `json:"error"` // root of the mean square
	RMSE  float64 `json:"rmse"`  // the same by its common name
	MAE   float64 `json:"mae"`   // mean distance of prediction and label
	// Coverage is the share of labels at most their prediction, near the level for a good model of a quantile;
	// QuantileLoss the mean pinball loss.
	Coverage     *float64 `json:"coverage,omitempty"`
	QuantileLoss *float64 `json:"quantile_loss,omitempty"`
}

// Options selects how a model is evaluated. The zero value is the model's own decision, and data in which
// every class occurs.
type Options struct {
	// Threshold decides for the positive class above it: of its probability, or of its score where the loss has no
	// probabilities. Of two classes alone.
	Threshold *float64
	// Cost weighs the two kinds of errors of two classes; nil: not asked for.
	Cost *Cost
	// Absent allows data in which a class does not occur, or all labels are equal.
	Absent bool
	// Unfit is called with each row that does not fit the declaration; it may be nil.
	Unfit func(*task.RowError)
}

// Evaluate runs the model over rows. A row that does not fit is counted, goes to Unfit, and is passed over; an
// error of the source ends it, and so do labels that say nothing, see ValidateLabels.
func (p Predictor) Evaluate(rows iter.Seq2[task.Row, error], o Options) (Evaluation, error) {
	s, err := newTally(p, o)
	if err != nil {
		return Evaluation{}, err
	}
	var (
		example convex.Example
		bad     *task.RowError
	)
	for row, err := range rows {
		if err == nil {
			err = p.Features.Map(row, &example)
		}
		switch {
		case errors.As(err, &bad):
			s.invalid++
			if o.Unfit != nil {
				o.Unfit(bad)
			}
		case err != nil:
			return Evaluation{}, err
		default:
			s.add(example)
		}
	}
	return s.result(o)
}

// Worse names, with both values, the figure by which a model is worse than the best constant on the same examples: log
// loss where there are probabilities, else the quantile loss, the error of numbers, or the loss. It is empty where the
// model is not worse.
func (e Evaluation) Worse() string {
	name, own, constant := "loss", e.Loss, e.Baseline.Loss
	switch b := e.Baseline; {
	case e.has("log_loss") && b.LogLoss != nil:
		name, own, constant = "log loss", *e.LogLoss, *b.LogLoss
	case e.has("quantile_loss") && b.QuantileLoss != nil:
		name, own, constant = "quantile loss", *e.QuantileLoss, *b.QuantileLoss
	case e.has("rmse") && b.Error != nil:
		name, own, constant = "root mean squared error", e.RMSE, *b.Error
	}
	if own <= constant {
		return ""
	}
	what := "the constant"
	if e.Baseline.Offset {
		what = "the constant added to the public prediction"
	}
	return fmt.Sprintf("%s %.5g, %s has %.5g", name, own, what, constant)
}

// EvaluateExamples is like Evaluate, for examples that are mapped already, with any labels.
func (p Predictor) EvaluateExamples(examples []convex.Example) (Evaluation, error) {
	o := Options{Absent: true}
	s, err := newTally(p, o)
	if err != nil {
		return Evaluation{}, err
	}
	for _, e := range examples {
		s.add(e)
	}
	return s.result(o)
}

// maxScores bounds the scores that are kept for the areas under curves: 128 MB.
const maxScores = 1 << 24

// A tally adds up how a model does.
type tally struct {
	Predictor
	cut     float64 // score of the positive class, of two, above which it is predicted
	labels  labels
	invalid int
	row     row

	loss, logLoss     float64
	confusion         evaluation.Confusion
	reliability       evaluation.Reliability
	kept              []float64 // Outputs an event, see keep; nil when they are too many
	classes           []int32   // of events with kept scores
	square, absolute  float64
	covered, pinball  float64
	scores, uncertain []float64 // scratch
}

// A row holds the contribution of one event to an evaluation.
type row struct {
	loss, logLoss    float64
	hit              float64 // 1 or 0
	square, absolute float64
	covered, pinball float64
}

func newTally(p Predictor, o Options) (*tally, error) {
	t := &tally{Predictor: p, labels: newLabels(p), kept: []float64{}}
	if p.Features.Classification() {
		t.confusion = evaluation.NewConfusion(len(p.Features.Classes()))
	}
	var err error
	if err = p.Validate(o); err == nil {
		t.cut, err = p.Cut(o.Threshold)
	}
	return t, err
}

// Validate refuses a threshold or a cost that the model's loss does not have.
func (p Predictor) Validate(o Options) error {
	if o.Cost != nil { // before the threshold, which may follow from it
		if err := p.validateCost(*o.Cost); err != nil {
			return err
		}
	}
	_, err := p.Cut(o.Threshold)
	return err
}

// Cut returns the score above which the positive of two classes is predicted at a threshold, see Options; 0
// for none.
func (p Predictor) Cut(threshold *float64) (float64, error) {
	switch {
	case threshold == nil:
		return 0, nil
	case !p.Features.Classification() || p.Features.Outputs() > 1:
		return 0, fmt.Errorf("threshold: %v, want none: the %s loss does not decide between two classes", *threshold,
			p.Loss.Name())
	case math.IsNaN(*threshold) || math.IsInf(*threshold, 0):
		return 0, fmt.Errorf("threshold: %v, want a finite number", *threshold)
	case !p.traits().Scores.Probable():
		return *threshold, nil
	case !(*threshold > 0 && *threshold < 1):
		return 0, fmt.Errorf("threshold: %v, want a probability above 0 and below 1", *threshold)
	}
	return math.Log(*threshold / (1 - *threshold)), nil
}

// add scores an event. Its figures stay in row.
func (t *tally) add(e convex.Example) {
	t.labels.add(e.Label, e.Offset)
	t.scores = t.Features.Scores(t.scores, t.Theta, e)
	t.row = row{loss: t.lossOf(t.scores, e.Label)}
	t.loss += t.row.loss
	if t.confusion != nil {
		t.addClass(e.Label)
		return
	}
	r, label, prediction := &t.row, t.Features.Target(e.Label), t.Features.Predict(t.scores)
	miss := label - prediction
	r.square, r.absolute = miss*miss, math.Abs(miss)
	if miss <= 0 {
		r.covered = 1
	}
	if t.traits().Error == convex.Pinball { // the loss itself, in the units of the label
		r.pinball = t.lossOf([]float64{prediction}, label)
	}
	t.square, t.absolute, t.covered, t.pinball = t.square+r.square, t.absolute+r.absolute, t.covered+r.covered,
		t.pinball+r.pinball
}

func (t *tally) addClass(label float64) {
	predicted := t.decide(t.scores, t.cut)
	of, as := t.labels.class(label), t.labels.class(predicted)
	t.confusion[of][as]++
	if of == as {
		t.row.hit = 1
	}
	if !t.traits().Scores.Probable() {
		t.keep(of, 0)
		return
	}
	t.uncertain = t.probabilities(t.uncertain[:0], t.scores)
	if len(t.scores) == 1 {
		t.reliability.Add(t.uncertain[0], of == 1)
	} else {
		t.reliability.Add(t.uncertain[as], of == as)
	}
	t.row.logLoss = logLoss(t.scores, of)
	t.logLoss += t.row.logLoss
	if len(t.scores) == 1 {
		t.keep(of, 0)
	} else {
		t.keep(of, t.scores[0]+logLoss(t.scores, 0)) // of the scores alone, so that equal ones stay equal
	}
}

// keep keeps what the area under curves orders events by: the score of two classes, the logarithm of each
// probability of several. Scores of several classes alone say nothing across events: a constant that is added to
// all of an event's leaves its probabilities as they are.
func (t *tally) keep(class int, normalizer float64) {
	if t.kept == nil {
		return
	}
	for _, z := range t.scores {
		t.kept = append(t.kept, z-normalizer)
	}
	if t.classes = append(t.classes, int32(class)); len(t.kept) > maxScores {
		t.kept, t.classes = nil, nil
	}
}

// lossOf returns the loss of scores, of which alone it is a function.
func (p Predictor) lossOf(scores []float64, label float64) float64 {
	return p.Loss.Value(scores, convex.Example{Value: one[:], Label: label})
}

var one = [1]float64{1}

// logLoss returns minus the logarithm of the probability of a class.
func logLoss(scores []float64, class int) float64 {
	if len(scores) == 1 {
		return convex.Logistic{}.Value(scores, convex.Example{Value: one[:], Label: float64(2*class - 1)})
	}
	return convex.Softmax{Classes: len(scores)}.Value(scores, convex.Example{Value: one[:], Label: float64(class)})
}

func (t *tally) result(o Options) (Evaluation, error) {
	n := float64(t.labels.n)
	if n == 0 {
		return Evaluation{}, fmt.Errorf("no example fits the task's declaration (%d rows do not)", t.invalid)
	}
	if err := t.labels.validate(true); err != nil && !o.Absent {
		return Evaluation{}, err
	}
	out := Evaluation{Examples: t.labels.n, Invalid: t.invalid, Loss: t.loss / n, Baseline: t.labels.baseline(&t.labels)}
	if t.confusion != nil {
		out.OfClasses = t.ofClasses(n)
		out.Threshold = o.Threshold
		if o.Cost != nil {
			out.Cost = t.costs(*o.Cost)
		}
		return out, nil
	}
	root := math.Sqrt(t.square / n)
	out.OfNumbers = &OfNumbers{R2: t.labels.explained(t.square), Error: root, RMSE: root, MAE: t.absolute / n}
	if t.traits().Error == convex.Pinball {
		covered, pinball := t.covered/n, t.pinball/n
		out.Coverage, out.QuantileLoss = &covered, &pinball
	}
	return out, nil
}

func (t *tally) ofClasses(n float64) *OfClasses {
	c := t.confusion
	out := &OfClasses{Classes: t.Features.Classes(), Confusion: c, AUC: t.area()}
	hits := 0
	for k := range c {
		hits += c[k][k]
	}
	out.Accuracy = float64(hits) / n
	if t.Features.Outputs() == 1 {
		out.Precision, out.Recall = c.Precision(1), c.Recall(1)
	} else {
		out.Precision, out.Recall = c.Macro(c.Precision), c.Macro(c.Recall)
	}
	if t.traits().Scores.Probable() {
		logLoss, miss := t.logLoss/n, t.reliability.Error()
		out.LogLoss, out.CalibrationError, out.Reliability = &logLoss, &miss, t.reliability.Table()
	}
	return out
}

// area returns the area under the curve of the positive class, or the mean over the classes of each class's area
// against the rest.
func (t *tally) area() *float64 {
	if t.kept == nil {
		return nil
	}
	width := t.Features.Outputs()
	scores, positive := make([]float64, t.labels.n), make([]bool, t.labels.n)
	sum := 0.0
	for k := range width {
		class := k
		if width == 1 {
			class = 1
		}
		for i := range t.classes {
			scores[i], positive[i] = t.kept[i*width+k], t.classes[i] == int32(class)
		}
		area, ok := evaluation.AUC(scores, positive)
		if !ok {
			return nil
		}
		sum += area
	}
	sum /= float64(width)
	return &sum
}
