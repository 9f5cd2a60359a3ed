package method_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// startedStream returns a task without end, of epsilon 1, that begins with a model of so many users.
func startedStream(loss string, of *wire.StartPrivacy) *wire.Plan {
	p := &practical.Problem{Loss: convex.Declaration{Name: loss}, Features: 3, Bound: 2, Intercept: 1, LabelLow: -1,
		LabelHigh: 1, Users: 40_000}
	plan := &wire.Plan{Practical: manifest.WirePractical(p), Continuous: wire.Continuous_CONTINUOUS_ADAPTIVE,
		EpsilonBudget: 1,
		Start:         []float64{0.5, -0.5, 0.25, 0.1}, StartPrivacy: of}
	plan.Practical.Unit = 9
	plan.Phases = []*wire.Phase{
		{Statistic: wire.Statistic_STATISTIC_MOMENTS, Users: 250, Rounds: 1, Cohort: 250, RoundsPerUser: 1,
			Mechanism: &wire.Mechanism{Dim: uint32(p.MomentsDim())}},
		{Users: 39_750, Rounds: 1, Cohort: 4000, Minimum: 250, Top: 4000, RoundsPerUser: 1,
			Mechanism: &wire.Mechanism{Dim: 4}}}
	return plan
}

// TestStartOfASample: a first round moves a model of many users little and one of few a lot, the more the fewer
// they were and the smaller their epsilon was; a model without these numbers lies between.
func TestStartOfASample(t *testing.T) {
	for _, loss := range []string{"logistic", "squared"} {
		moved := func(of *wire.StartPrivacy) float64 {
			a := begin(t, startedStream(loss, of))
			if err := a.Step(method.Estimate{Gradient: []float64{0, 0, 0, 0.3, 0.3, 0.3, 0, 0.3}[:momentsOf(loss)], Users: 250,
				PrivacyVariance: 1e-4}); err != nil {
				t.Fatal(err)
			}
			before := a.Query().Point
			if err := a.Step(method.Estimate{Gradient: []float64{0.2, -0.1, 0.1, 0.2}, Users: 250,
				PrivacyVariance: 81. / 250 / 250}); err != nil {
				t.Fatal(err)
			}
			return away(before, a.Query().Point)
		}
		var last float64
		for i, of := range []*wire.StartPrivacy{{Users: 10_000_000, Epsilon: 1}, {Users: 100_000, Epsilon: 4},
			{Users: 100_000, Epsilon: 0.25},
			{Users: 10_000, Epsilon: 0.25}, {Users: 10, Epsilon: 0.25}} {
			d := moved(of)
			if d <= last {
				t.Errorf("%s: a start of %v moves by %v, the one before by %v", loss, of, d, last)
			}
			if last = d; i == 0 && d > 0.02 {
				t.Errorf("%s: a start of %v moves by %v in the first round", loss, of, d)
			}
		}
		if few, public := moved(&wire.StartPrivacy{Users: 50}), moved(&wire.StartPrivacy{Users: 50_000}); public > few/4 {
			t.Errorf("%s: without noise, a start of 50,000 moves by %v and one of 50 by %v", loss, public, few)
		}
		if unknown := moved(&wire.StartPrivacy{Epsilon: 1}); unknown <= moved(&wire.StartPrivacy{Users: 10_000_000,
			Epsilon: 1}) || unknown >= last {
			t.Errorf("%s: a start that says nothing of its users moves by %v, one of ten with little epsilon by %v", loss,
				unknown, last)
		}
	}
}

func momentsOf(loss string) int {
	p := practical.Problem{Loss: convex.Declaration{Name: loss}, Features: 3}
	return p.MomentsDim()
}

// TestWrongStartIsLeft: a start of many users that is far from the optimum, or an optimum that moves away from it,
// costs a few thousand users and not the task.
func TestWrongStartIsLeft(t *testing.T) {
	for _, known := range []float64{0, math.Inf(1), 1e-3, 1e-6} {
		r := rand.New(rand.NewPCG(11, 12))
		b, err := method.NewBank(method.BankConfig{Dim: 9, Blocks: 1, Set: convex.Ball{R: convex.MaxScale},
			Start: make([]float64, 9), Users: 40_000, Known: known,
			Stream: practical.Stream{Curvature: 1, Slope: 1, Spread: 1, Trust: 1, Clip: 1, Residual: 1},
			Layout: practical.Layout{MomentUsers: 250, Base: 250, Top: 4000}})
		if err != nil {
			t.Fatal(err)
		}
		optimum := []float64{0.5, -0.5, 0.3, -0.3, 0.4, 0, 0.3, -0.6, 0.2}
		for at, users := range []float64{10_000, 20_000} {
			for came := 0.0; came < users; {
				came += float64(b.Query().Cohort)
				follow(t, b, optimum, 1, 9, r)
			}
			if d := away(b.Model(), optimum); d > 0.35 {
				t.Errorf("variance %v around the start: %v away from optimum %d after %v users", known, d, at+1, users)
			}
			for i := range optimum {
				optimum[i] = -optimum[i]
			}
		}
	}
}
