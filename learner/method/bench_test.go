package method_test

import (
	"fmt"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/randomizer"
)

// One round of the learner: estimate, step and state, by dimension. The cohort's size does not matter to it.
func BenchmarkRound(b *testing.B) {
	for _, dim := range []int{124, 7850, 100000} {
		b.Run(fmt.Sprintf("dim=%d", dim), func(b *testing.B) {
			params := randomizer.Params{Dim: dim, ClipNorm: 1, Levels: 14, Trials: 33, Coin: randomizer.Fair}
			totals := make([]uint64, dim)
			for j := range totals {
				totals[j] = 434*23 + uint64(j%2)
			}
			a, err := method.NewPAGD(method.PAGDConfig{Dim: dim, Set: convex.Ball{R: 20}, Steps: 1 << 30, V: 7.5})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				_ = a.Query()
				e, err := method.EstimateMean(params, totals, 434, 434*33)
				if err != nil {
					b.Fatal(err)
				}
				if err := a.Step(e); err != nil {
					b.Fatal(err)
				}
				if _, err := a.MarshalBinary(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
