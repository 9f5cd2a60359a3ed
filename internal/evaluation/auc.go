package evaluation

import (
	"gonum.org/v1/gonum/integrate"
	"gonum.org/v1/gonum/stat"
)

// AUC returns the area under the receiver operating characteristic: the chance that a positive event has a
// larger score than a negative one, where equal scores count half (Hanley and McNeil, Radiology 143, 1982).
// There is none, false, where one of the two does not occur. It sorts both lists, which are of one length.
func AUC(scores []float64, positive []bool) (area float64, ok bool) {
	positives := 0
	for _, p := range positive {
		if p {
			positives++
		}
	}
	if positives == 0 || positives == len(positive) {
		return 0, false
	}
	stat.SortWeightedLabeled(scores, positive, nil)
	hits, alarms, _ := stat.ROC(nil, scores, positive, nil)
	return integrate.Trapezoidal(alarms, hits), true
}
