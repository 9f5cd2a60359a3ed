package sim_test

import (
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
)

// TestOnlineLearnersFollow: both learners predict a stream well, lose by a jump of the truth, and predict well
// again; scaling and moving the features changes nothing that matters, and a row is not known before it is learned
// from.
func TestOnlineLearnersFollow(t *testing.T) {
	s, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: 6, Loss: "logistic", TruthNorm: 4, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Drifting(sim.DriftJump, 24_000)
	if err != nil {
		t.Fatal(err)
	}
	stream := slices.Collect(rows)
	for i, e := range stream {
		for j := range e.Value {
			stream[i].Value[j] = e.Value[j]*float64(1+10*j) + float64(j)
		}
		stream[i].Value = append(stream[i].Value, 1)
	}
	c := sim.OnlineConfig{Loss: s.Loss(), Features: 7, Intercept: true}
	for name, one := range map[string]sim.Online{"sgd": sim.NewSGD(c), "window": sim.NewWindow(c)} {
		hits := func(rows []convex.Example) float64 {
			n := 0
			for _, e := range rows {
				z, theta := one.Ready(e)
				if e.Label*z.Dot(theta) > 0 {
					n++
				}
				if err := one.Learn(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			return float64(n) / float64(len(rows))
		}
		early, before := hits(stream[:2000]), hits(stream[2000:12_000])
		at := hits(stream[12_000:12_200])
		_ = hits(stream[12_200:18_000])
		after := hits(stream[18_000:])
		t.Logf("%s: accuracy %.3f in the first 2,000 rows, %.3f until the jump, %.3f in 200 rows after it, %.3f in the end",
			name, early, before, at, after)
		if early < 0.7 || before < 0.75 || after < 0.75 || at > before-0.1 {
			t.Errorf("%s: accuracy %.3f, %.3f, right after the jump %.3f, in the end %.3f", name, early, before, at, after)
		}
	}
}

// TestOnlineLearnersOfSparseRows: without an intercept, and with sparse rows, they learn numbers.
func TestOnlineLearnersOfSparseRows(t *testing.T) {
	loss, err := convex.NewLoss("squared")
	if err != nil {
		t.Fatal(err)
	}
	c := sim.OnlineConfig{Loss: loss, Features: 3}
	for name, one := range map[string]sim.Online{"sgd": sim.NewSGD(c), "window": sim.NewWindow(c)} {
		worst := 0.0
		for i := range 3000 {
			j := int32(i % 3)
			e := convex.Example{Index: []int32{j}, Value: []float64{1 + float64(i%5)},
				Label: (1 + float64(i%5)) * float64(j-1) / 5}
			z, theta := one.Ready(e)
			if off := z.Dot(theta) - e.Label; i > 2500 {
				worst = max(worst, off, -off)
			}
			if err := one.Learn(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if worst > 0.02 {
			t.Errorf("%s is off by %.3f", name, worst)
		}
	}
}
