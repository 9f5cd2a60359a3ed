package private

import (
	"math"
	"slices"
)

// aggregate implements Lemma 11 of Carmon et al. 2023 for a strict majority and without a distance: of the
// points, it returns the one whose nearest half, itself included and more than half of them, is nearest. If
// more than half of the points are within delta of an unknown y, it is within 3 delta of y
// (docs/proofs/resque.md). All distances are computed, whatever they are.
func aggregate(points [][]float64) []float64 {
	best, at := math.Inf(1), 0
	ways := make([]float64, len(points))
	for i, x := range points {
		for j, z := range points {
			ways[j] = 0
			for k, v := range x {
				ways[j] += (v - z[k]) * (v - z[k])
			}
		}
		slices.Sort(ways)
		if far := ways[len(points)/2]; far < best {
			best, at = far, i
		}
	}
	return points[at]
}
