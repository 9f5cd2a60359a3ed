package sim_test

import (
	"context"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/schedule"
)

// populations lists those on which each theorem is measured: nothing is clipped, so the bounds are the loss's
// own, and the optimum is known.
var populations = []struct {
	name        string
	synthetic   sim.SyntheticConfig
	sequential  []string
	interactive []string // with a bound on the population
}{
	{"smooth", sim.SyntheticConfig{Dim: 5, Loss: "logistic", TruthNorm: 3, Seed: 5},
		[]string{schedule.PSGD, schedule.PAGD}, []string{schedule.PGD}},
	{"not smooth", sim.SyntheticConfig{Dim: 5, Loss: "absolute", TruthNorm: 3, Noise: 0.1, Seed: 5},
		[]string{schedule.PSGD, schedule.PAGDEnvelope}, []string{schedule.PGDEnvelope}},
	{"smooth and strongly convex", sim.SyntheticConfig{Dim: 5, Loss: "logistic", TruthNorm: 3, Ridge: 0.05, Seed: 5},
		[]string{schedule.PAGDRestarts, schedule.PSGD}, []string{schedule.PGDRestarts, schedule.PGD, schedule.APGDRestarts}},
	{"strongly convex", sim.SyntheticConfig{Dim: 5, Loss: "absolute", TruthNorm: 3, Noise: 0.1, Ridge: 0.2, Seed: 5},
		[]string{schedule.PAGDEnvelopeRestarts}, []string{schedule.PGDEnvelopeRestarts}},
}

// Theorems 4.1, 4.3, 4.7, 4.8 and 4.9: the excess risk of every method stays within its planned bound at every
// number of users, and more users help. The seeds are fixed. The deep version fits the exponent of n over two
// orders of magnitude, for the methods that are interactive over one.
func TestTheorems4_RatesOfAllMethods(t *testing.T) {
	sequential := sim.SeriesConfig{Problem: smooth(), Users: []uint64{2000, 8000}, Repeats: 2}
	interactive := sim.SeriesConfig{Problem: smooth(), Users: []uint64{1000, 4000}, Repeats: 2}
	interactive.Problem.Interactive, interactive.Problem.MaxRounds = true, 40
	if longtest.Run(t, "exponents over 2000 to 256000 users") {
		sequential.Users, sequential.Repeats = []uint64{2000, 8000, 32000, 128000, 256000}, 10
		interactive.Users, interactive.Repeats = []uint64{2000, 6000, 20000}, 5
		interactive.Problem.MaxRounds = 500
	}
	for _, p := range populations {
		t.Run(p.name, func(t *testing.T) {
			sequential.Synthetic, sequential.Methods = p.synthetic, p.sequential
			interactive.Synthetic, interactive.Methods = p.synthetic, p.interactive
			for _, c := range []sim.SeriesConfig{sequential, interactive} {
				points, err := sim.Series(context.Background(), c)
				if err != nil {
					t.Fatal(err)
				}
				within(t, points)
				for _, s := range sim.Slopes(points, c.Problem.Ridge > 0) {
					t.Logf("%-22s: slope %.2f; the theorem's are %.2f for privacy and %.2f for sampling", s.Method, s.Fitted,
						s.Privacy, s.Sampling)
					if !(s.Fitted < 0) {
						t.Errorf("%s: slope %v: more users did not help", s.Method, s.Fitted)
					}
				}
			}
		})
	}
}
