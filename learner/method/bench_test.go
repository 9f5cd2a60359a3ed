package method_test

import (
	"fmt"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/randomizer"
)

// BenchmarkRound: one round of the learner: estimate, step and state, by dimension. The cohort's size does not
// matter to it.
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

// BenchmarkAdaptiveRound: one round of a task without an end, from the stored state to the next: its 31 models
// of the dimension are read, stepped and written.
func BenchmarkAdaptiveRound(b *testing.B) {
	for _, dim := range []int{124, 7850, 100000} {
		b.Run(fmt.Sprintf("dim=%d", dim), func(b *testing.B) {
			p := practical.Problem{Loss: convex.Declaration{Name: "logistic"}, Features: dim - 1, Bound: 4, Intercept: 1,
				Users: 1_000_000, Continuous: true}
			config := method.PracticalConfig{Problem: p, Layout: practical.Layout{MomentUsers: 10_000, Rounds: 1, Base: 250,
				Top: 64_000, Unit: 9}}
			fresh := func() *method.Practical {
				a, err := method.NewPractical(config)
				if err != nil {
					b.Fatal(err)
				}
				return a
			}
			a := fresh()
			if err := a.Step(method.Estimate{Gradient: make([]float64, p.MomentsDim()), Users: 10_000,
				PrivacyVariance: 1e-4}); err != nil {
				b.Fatal(err)
			}
			g := make([]float64, dim)
			for j := range g {
				g[j] = 0.01 * float64(j%7-3)
			}
			state, err := a.MarshalBinary()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				a := fresh()
				if err := a.UnmarshalBinary(state); err != nil {
					b.Fatal(err)
				}
				q := a.Query()
				if err := a.Step(method.Estimate{Gradient: g, Users: q.Cohort, PrivacyVariance: 1e-4}); err != nil {
					b.Fatal(err)
				}
				if state, err = a.MarshalBinary(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(state)), "state-bytes")
		})
	}
}
