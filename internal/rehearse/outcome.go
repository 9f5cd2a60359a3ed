package rehearse

import (
	"fmt"

	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/prequential"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/method"
)

// An Outcome is the outcome of one seed, or the mean of several.
type Outcome struct {
	Seed         *uint64  `json:"seed,omitempty"`
	TrainLoss    float64  `json:"train_loss"`
	TestLoss     *float64 `json:"test_loss,omitempty"`
	TestAccuracy *float64 `json:"test_accuracy,omitempty"`
	// Of classes with probabilities, as TestAccuracy; the area under the curve of all classes. See model.OfClasses.
	TestLogLoss     *float64 `json:"test_log_loss,omitempty"`
	TestCalibration *float64 `json:"test_calibration_error,omitempty"`
	TestAUC         *float64 `json:"test_auc,omitempty"`

	TestError    *float64 `json:"test_error,omitempty"`               // root of the mean square
	TestAbsolute *float64 `json:"test_mean_absolute_error,omitempty"` // of numbers and counts, as TestError
	TestQuantile *float64 `json:"test_quantile_loss,omitempty"`
	TestCoverage *float64 `json:"test_coverage,omitempty"` // share of labels at most the predicted quantile

	// ProgressiveLoss and ProgressiveAccuracy are the users' scores over all rounds, and Progressive holds all
	// results of the scores.
	ProgressiveLoss     *float64           `json:"progressive_loss,omitempty"`
	ProgressiveAccuracy *float64           `json:"progressive_accuracy,omitempty"`
	Progressive         *method.Validation `json:"progressive,omitempty"` // of one run
	Prequential         *prequential.Score `json:"prequential,omitempty"` // of a task without an end
}

// Score evaluates a model on the rows to learn from and on those to score on.
func (r *Rows) Score(theta []float64) (Outcome, error) {
	out := Outcome{TrainLoss: sim.MeanLoss(r.Loss, theta, r.labelled)}
	if r.Test != nil {
		test, err := r.predictor(theta).EvaluateExamples(r.Test)
		if err != nil {
			return Outcome{}, err
		}
		out.test(test)
	}
	return out, nil
}

// predictor returns a predictor with the parameters theta.
func (r *Rows) predictor(theta []float64) model.Predictor {
	return model.Predictor{Features: r.Features, Loss: r.Loss, Theta: theta}
}

// test fills in what a model does on rows to score on.
func (s *Outcome) test(test model.Evaluation) {
	s.TestLoss = &test.Loss
	if c := test.OfClasses; c != nil {
		s.TestAccuracy, s.TestLogLoss, s.TestCalibration, s.TestAUC = &c.Accuracy, c.LogLoss, c.CalibrationError, c.AUC
	}
	if n := test.OfNumbers; n != nil {
		s.TestError, s.TestAbsolute, s.TestQuantile, s.TestCoverage = &n.RMSE, &n.MAE, n.QuantileLoss, n.Coverage
	}
}

// Constant scores the best constant for the labels of the rows to learn from.
func (r *Rows) Constant() Outcome {
	p := r.predictor(nil)
	out := Outcome{TrainLoss: p.Baseline(r.labelled, r.labelled).Loss}
	if r.Test != nil {
		out.constant(p.Baseline(r.labelled, r.Test))
	}
	return out
}

// constant fills in what the best constant does on rows to score on.
func (s *Outcome) constant(b model.Baseline) {
	s.TestLoss, s.TestAccuracy, s.TestLogLoss = &b.Loss, b.Accuracy, b.LogLoss
	s.TestError, s.TestAbsolute, s.TestQuantile = b.Error, b.MAE, b.QuantileLoss
}

// progressive fills in the results of the users' scores, if there are any.
func (s *Outcome) progressive(v *method.Validation) {
	if v == nil {
		return
	}
	s.Progressive, s.ProgressiveLoss = v, &v.Loss.Overall.Value
	if v.Accuracy != nil {
		s.ProgressiveAccuracy = &v.Accuracy.Overall.Value
	}
}

// numbers returns the fields that are averaged over several runs.
func (s *Outcome) numbers() [11]**float64 {
	return [...]**float64{&s.TestLoss, &s.TestAccuracy, &s.TestError, &s.TestAbsolute, &s.TestQuantile, &s.TestCoverage,
		&s.ProgressiveLoss, &s.ProgressiveAccuracy, &s.TestLogLoss, &s.TestCalibration, &s.TestAUC}
}

// over folds every number of the runs.
func over(runs []Outcome, fold func([]float64) float64) Outcome {
	var out Outcome
	var values []float64
	for _, r := range runs {
		values = append(values, r.TrainLoss)
	}
	out.TrainLoss = fold(values)
	for i, to := range out.numbers() {
		values = values[:0]
		for k := range runs {
			if v := *runs[k].numbers()[i]; v != nil {
				values = append(values, *v)
			}
		}
		if len(values) == len(runs) {
			folded := fold(values)
			*to = &folded
		}
	}
	out.Prequential = prequential.Fold(scoresOf(runs), fold)
	return out
}

func meanOf(runs []Outcome) Outcome {
	return over(runs, func(v []float64) float64 { return stat.Mean(v, nil) })
}

// deviation returns the standard deviation over the runs; nil for fewer than two.
func deviation(runs []Outcome) *Outcome {
	if len(runs) < 2 {
		return nil
	}
	out := over(runs, func(v []float64) float64 { return stat.StdDev(v, nil) })
	return &out
}

func (s Outcome) String() string {
	text := fmt.Sprintf("train loss %.4f", s.TrainLoss)
	for _, figure := range []struct {
		format string
		value  *float64
	}{{"test loss %.4f", s.TestLoss}, {"test accuracy %.4f", s.TestAccuracy}, {"log loss %.4f", s.TestLogLoss},
		{"AUC %.4f", s.TestAUC}, {"calibration error %.4f", s.TestCalibration}, {"test error %.5g", s.TestError},
		{"mean absolute %.5g", s.TestAbsolute}, {"quantile loss %.5g", s.TestQuantile}, {"coverage %.4f", s.TestCoverage}} {
		if figure.value != nil {
			text += fmt.Sprintf(", "+figure.format, *figure.value)
		}
	}
	switch {
	case s.ProgressiveAccuracy != nil:
		text += fmt.Sprintf(", progressive accuracy over all rounds %.4f", *s.ProgressiveAccuracy)
	case s.ProgressiveLoss != nil:
		text += fmt.Sprintf(", progressive loss over all rounds %.4f", *s.ProgressiveLoss)
	}
	if s.Prequential != nil {
		text += ", " + s.Prequential.String()
	}
	return text
}

// spread describes the standard deviation, over the seeds, of the accuracy or else of the error; empty if there is
// neither.
func (s *Outcome) spread(seeds int) string {
	if s == nil {
		return ""
	}
	for i, name := range [...]string{"", "accuracy", "error"} {
		if v := *s.numbers()[i]; name != "" && v != nil {
			return fmt.Sprintf(" (%s sd %.3g over %d seeds)", name, *v, seeds)
		}
	}
	return ""
}
