package tune

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/convex"
)

// A Measure is a figure by which settings are compared.
type Measure struct {
	Name  string                         // accuracy, error (root of the mean square), mean_absolute_error or quantile_loss
	Falls bool                           // better models have less of it
	Of    func(model.Evaluation) float64 // what an evaluation has of it
}

// MeasureOf returns the measure that a loss asks for.
func MeasureOf(loss string) Measure {
	traits := convex.TraitsOf(loss)
	switch {
	case traits.Labels.Classes():
		return Measure{"accuracy", false, func(e model.Evaluation) float64 { return e.Accuracy }}
	case traits.Error == convex.Pinball:
		return Measure{"quantile_loss", true, func(e model.Evaluation) float64 { return *e.QuantileLoss }}
	case traits.Error == convex.MeanAbsolute:
		return Measure{"mean_absolute_error", true, func(e model.Evaluation) float64 { return e.MAE }}
	}
	return Measure{"error", true, func(e model.Evaluation) float64 { return e.RMSE }}
}

// gains returns by how much values are better than those that they are paired with.
func (m Measure) gains(values, than []float64) []float64 {
	out := make([]float64, len(values))
	for i := range out {
		if out[i] = values[i] - than[i]; m.Falls {
			out[i] = -out[i]
		}
	}
	return out
}

// level is the probability with which anything is called better where nothing is.
const level = 0.05

// better reports whether paired gains are beyond the noise of the seeds: Student's t, one-sided, at level
// over all the comparisons that are made (Bonferroni). overlap is rows scored on over rows learned from where
// the seeds share data, else 0: their runs are then no independent samples, and the variance of the mean is
// (1/K + overlap) s^2 (Nadeau and Bengio, Inference for the Generalization Error, 2003).
func better(gains []float64, comparisons int, overlap float64) bool {
	k := float64(len(gains))
	mean, s := stat.MeanStdDev(gains, nil)
	if !(mean > 0) {
		return false
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: k - 1}.Quantile(1 - level/float64(comparisons))
	return mean > t*s*math.Sqrt(1/k+overlap)
}
