package resque

import (
	"fmt"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// BenchmarkQueries solves subproblems of least absolute deviations: queries a second by dimension and number of
// workers.
func BenchmarkQueries(b *testing.B) {
	for _, dim := range []int{20, 200} {
		oracle, err := NewRows(convex.Absolute{}, deviations(b, 1000, dim), dim, 1)
		if err != nil {
			b.Fatal(err)
		}
		for _, workers := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("dim=%d/workers=%d", dim, workers), func(b *testing.B) {
				p := &pool{oracle: oracle, dim: dim, workers: workers}
				in := ball{longest: 1, rho: .01, r: .01}
				centre := make([]float64, dim)
				for b.Loop() {
					p.round()
					if _, err := (epochSGD{}).solve(b.Context(), p, in, centre, 100, .001/float64(dim)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(p.queries)/b.Elapsed().Seconds(), "queries/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
