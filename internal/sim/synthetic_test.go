package sim_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
)

func synthetic(t testing.TB, loss string, dim int) *sim.Synthetic {
	t.Helper()
	s, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: dim, Loss: loss, TruthNorm: 2, Noise: 0.5, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSyntheticKeepsItsBounds(t *testing.T) {
	for _, loss := range []string{"logistic", "squared", "absolute"} {
		s := synthetic(t, loss, 4)
		if n := convex.Norm(s.Truth()); math.Abs(n-2) > 1e-12 {
			t.Errorf("%s: truth of norm %v, want 2", loss, n)
		}
		examples := s.Take(1000)
		for i, e := range examples {
			if err := e.Validate(4); err != nil {
				t.Fatal(err)
			}
			if err := s.Loss().CheckLabel(e.Label); err != nil {
				t.Fatal(err)
			}
			if e.Norm() > s.FeatureBound() || math.Abs(e.Label) > s.LabelBound() {
				t.Fatalf("%s: example %d exceeds the declared bounds", loss, i)
			}
		}
		if !reflect.DeepEqual(examples[:10], s.Take(10)) {
			t.Errorf("%s: the examples are not reproducible", loss)
		}
		if len(s.Take(0)) != 0 {
			t.Errorf("%s: Take(0) took something", loss)
		}
	}
}

// theta* minimises the population risk: the excess is zero there and positive elsewhere, and the mean gradient of
// examples vanishes there. A coordinate of a gradient is in [-B, B], so by Hoeffding's inequality the mean of n exceeds
// B sqrt(2 ln(2/alpha)/n) with probability at most alpha = 1e-9/8.
func TestSyntheticTruthIsTheOptimum(t *testing.T) {
	const n = 40000
	for _, loss := range []string{"logistic", "squared", "absolute"} {
		s := synthetic(t, loss, 4)
		truth := s.Truth()
		if r := s.ExcessRisk(truth); math.Abs(r) > 1e-12 {
			t.Errorf("%s: excess risk %v at the truth", loss, r)
		}
		for j := range truth {
			for _, h := range []float64{-0.3, 0.3} {
				off := s.Truth()
				off[j] += h
				if r := s.ExcessRisk(off); r <= 0 {
					t.Errorf("%s: excess risk %v off the truth", loss, r)
				}
			}
		}
		mean, g := make([]float64, 4), make([]float64, 4)
		for _, e := range s.Take(n) {
			s.Loss().Gradient(g, truth, e)
			for j := range mean {
				mean[j] += g[j] / n
			}
		}
		bound := 1.0 // of the logistic and the absolute loss; the squared loss's residual is the noise, at most 0.5
		margin := bound * math.Sqrt(2*math.Log(2*8/1e-9)/n)
		for j, m := range mean {
			if math.Abs(m) > margin {
				t.Errorf("%s: mean gradient %v at the truth in coordinate %d, margin %v", loss, m, j, margin)
			}
		}
	}
}

// ExcessRisk agrees with the difference of mean losses, with an intercept too. The difference of the two losses of one
// example is at most B = ||(theta - theta*, c)|| X times the slope of the loss; Hoeffding as above with alpha = 1e-9.
func TestExcessRiskIsTheDifferenceOfRisks(t *testing.T) {
	const n = 40000
	for _, c := range []struct {
		loss  string
		slope float64 // at most; the squared loss's is half the sum of two residuals
	}{{"logistic", 1}, {"squared", 2.5}, {"absolute", 1}} {
		for _, intercept := range []float64{0, 0.5} {
			s := synthetic(t, c.loss, 4)
			theta := append(s.Truth(), intercept)
			theta[0] += 0.5
			theta[2] -= 0.5
			var got float64
			for _, e := range s.Take(n) {
				with := convex.Example{Value: append(e.Value, 1), Label: e.Label}
				got += (s.Loss().Value(theta, with) - s.Loss().Value(s.Truth(), e)) / n
			}
			margin := c.slope * math.Sqrt(0.5+intercept*intercept) * math.Sqrt(5) * math.Sqrt(2*math.Log(2/1e-9)/n)
			if want := s.ExcessRisk(theta); math.Abs(got-want) > margin {
				t.Errorf("%s, intercept %v: excess risk %v, difference of mean losses %v, margin %v", c.loss, intercept, want, got,
					margin)
			}
			if intercept == 0 && math.Abs(s.ExcessRisk(theta)-s.ExcessRisk(theta[:4])) > 1e-12 {
				t.Errorf("%s: an intercept of 0 changes the excess risk", c.loss)
			}
		}
	}
}

func TestScores(t *testing.T) {
	e := []convex.Example{{Value: []float64{1}, Label: 1}, {Value: []float64{-2}, Label: 1},
		{Value: []float64{0}, Label: -1}}
	if a := sim.Accuracy([]float64{1}, e); math.Abs(a-2.0/3) > 1e-15 {
		t.Errorf("accuracy %v, want 2/3", a)
	}
	if l := sim.MeanLoss(convex.Squared{}, []float64{1}, e); math.Abs(l-5.0/3) > 1e-15 {
		t.Errorf("mean loss %v, want 5/3", l)
	}
	if sim.MeanLoss(convex.Squared{}, []float64{1}, nil) != 0 || sim.Accuracy(nil, nil) != 0 {
		t.Error("scores of no examples must be 0")
	}
}

func TestSyntheticRefuses(t *testing.T) {
	for _, c := range []sim.SyntheticConfig{
		{Loss: "logistic", TruthNorm: 1}, {Dim: 2, Loss: "hinge", TruthNorm: 1}, {Dim: 2, Loss: "squared",
			TruthNorm: math.NaN()},
		{Dim: 2, Loss: "squared", TruthNorm: math.Inf(1)}, {Dim: 2, Loss: "squared", Noise: -1},
	} {
		if _, err := sim.NewSynthetic(c); err == nil {
			t.Errorf("accepted %+v", c)
		}
	}
}

// With a ridge the optimum is another point, where the gradient of risk and ridge vanishes: the mean gradient
// of examples is the opposite of the ridge's, up to Hoeffding's margin as above, and the excess risk is
// positive around it.
func TestSyntheticOptimumWithRidge(t *testing.T) {
	const n, ridge = 40000, 0.1
	for _, loss := range []string{"logistic", "squared", "absolute"} {
		s, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: 4, Loss: loss, TruthNorm: 2, Noise: 0.5, Ridge: ridge, Seed: 9})
		if err != nil {
			t.Fatal(err)
		}
		at := s.Optimum()
		if r := s.ExcessRisk(at); r != 0 {
			t.Errorf("%s: excess risk %v at the optimum", loss, r)
		}
		if r := s.ExcessRisk(s.Truth()); !(r > 1e-3) {
			t.Errorf("%s: excess risk %v at theta*, which is not the optimum", loss, r)
		}
		for j := range at {
			for _, h := range []float64{-1e-4, 1e-4} {
				off := s.Optimum()
				off[j] += h
				// (lambda/2) h^2 is what strong convexity gives at least.
				if r := s.ExcessRisk(off); !(r >= ridge/2*h*h*(1-1e-3)) {
					t.Errorf("%s: excess risk %v off the optimum, want at least %v", loss, r, ridge/2*h*h)
				}
			}
		}
		mean, g := make([]float64, 4), make([]float64, 4)
		for _, e := range s.Take(n) {
			s.Loss().Gradient(g, at, e)
			for j := range mean {
				mean[j] += g[j] / n
			}
		}
		// A gradient's coordinate is at most 1, or the squared loss's residual: 0.5 + 2 sqrt(4). The optimum of the
		// 20000 evaluation points is not the population's, which doubles the variance at most.
		bound := map[string]float64{"logistic": 1, "absolute": 1, "squared": 4.5}[loss]
		margin := 2 * bound * math.Sqrt(2*math.Log(2*8/1e-9)/n)
		for j, m := range mean {
			if math.Abs(m+ridge*at[j]) > margin {
				t.Errorf("%s: mean gradient %v and ridge's %v in coordinate %d, margin %v", loss, m, ridge*at[j], j, margin)
			}
		}
	}
	if _, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: 4, Loss: "absolute", TruthNorm: 2, Ridge: 1}); err == nil {
		t.Error("accepted a ridge with an absolute loss without noise")
	}
}

// TestDrifting: without drift the events equal those of Examples; with drift, the first event follows theta*
// and later ones the kind of drift: the mean of label and score at theta* changes sign or size where it
// should.
func TestDrifting(t *testing.T) {
	s, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: 4, Loss: "squared", TruthNorm: 3, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	const n = 8000
	// fit is the share of the labels' square that theta* explains in a part of the stream, and the labels' mean there.
	fit := func(events []convex.Example) (explained, mean float64) {
		var wrong, all float64
		for _, e := range events {
			d := e.Label - e.Dot(s.Truth())
			wrong, all, mean = wrong+d*d, all+e.Label*e.Label, mean+e.Label/float64(len(events))
		}
		return 1 - wrong/all, mean
	}
	for kind, want := range map[string]struct{ first, last, mean float64 }{
		sim.NoDrift: {1, 1, 0}, sim.DriftJump: {1, 0.9, 0}, sim.DriftTurn: {1, 0.9, 0}, sim.DriftSeasons: {1, 1, 0},
		sim.DriftShares: {1, 0.9, -3},
	} {
		seq, err := s.Drifting(kind, n)
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Collect(seq)
		if kind == sim.NoDrift && !reflect.DeepEqual(all, s.Take(n)) {
			t.Error("without drift the events are not those of Examples")
		}
		first, _ := fit(all[:n/100])
		last, mean := fit(all[n-n/100:])
		if len(all) != n || first < want.first-0.01 || (want.last == 1) != (last > 0.98) || math.Abs(mean-want.mean) > 0.5 {
			t.Errorf("%s: %d events; theta* explains %.3f of the first and %.3f of the last, whose labels have mean %.2f", kind,
				len(all), first, last, mean)
		}
	}
	if _, err := s.Drifting("sideways", n); err == nil {
		t.Error("a kind that is none is accepted")
	}
}
