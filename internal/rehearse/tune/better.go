package tune

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

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
