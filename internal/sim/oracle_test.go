package sim

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// The estimates of the whole pipeline (randomizer, floors, mixer, estimator) scatter around the exact mean as the plan
// says, under every trust. The squared error of N = rounds * d coordinates, over its expectation, is within
// sqrt(2/N) standard deviations of 1 (normal approximation: each coordinate is a sum of thousands of coins); 6.2 of
// them are exceeded with probability below 1e-9. Its expectation lies between privacy noise alone and both noises.
func TestTheorem32_NoiseIsAsPlanned(t *testing.T) {
	const seed, dim, rounds = 3, 40, 60
	s, err := NewSynthetic(SyntheticConfig{Dim: dim, Loss: "logistic", TruthNorm: 3, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	examples, point := s.Take(400), s.Truth()
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Pan, accounting.ShufflePan} {
		plan, err := planning.MakePlan(planning.Problem{Users: 400, Dim: dim, ClipNorm: 2,
			Set: convex.SetDeclaration{Radius: 3}, Epsilon: 2, Delta: 1e-6, Trust: trust,
			HonestFraction: accounting.One, Rounds: planning.Rounds{Cohort: 400}}.ForLoss(s.Loss(), s.FeatureBound(), 1))
		if err != nil {
			t.Fatal(err)
		}
		params, err := manifest.Params(plan.Plan.Phases[0].Mechanism)
		if err != nil {
			t.Fatal(err)
		}
		of := report.Config{Features: dim, Loss: s.Loss(), ClipNorm: 2}
		vectors, err := report.NewExact(of)
		if err != nil {
			t.Fatal(err)
		}
		single := func(i int32) block.Block { return block.Of(examples[i]) }
		noisy := &mixed{block: single, phase: plan.Plan.Phases[0], params: params, of: of, makers: map[int]*report.Maker{},
			entropy: Entropy(seed, "reports"), seed: seed}
		cohort := make([]int32, len(examples))
		for i := range cohort {
			cohort[i] = int32(i)
		}
		truth, _, err := exact{block: single, reports: vectors}.mean(method.Query{Point: point}, cohort)
		if err != nil {
			t.Fatal(err)
		}
		var square, sum float64
		var known method.Estimate
		for round := range uint64(rounds) {
			if known, _, err = noisy.mean(method.Query{Step: round, Point: point}, cohort); err != nil {
				t.Fatal(err)
			}
			for j, g := range known.Gradient {
				square += (g - truth.Gradient[j]) * (g - truth.Gradient[j])
				sum += g - truth.Gradient[j]
			}
		}
		const n = rounds * dim
		margin := 6.2 * math.Sqrt(2.0/n)
		low, high := known.PrivacyVariance*(1-margin), (known.PrivacyVariance+known.RoundingVariance)*(1+margin)
		t.Logf("%v: seed %d, false-alarm rate 2e-9, mean squared error %.3g, between %.3g and %.3g", trust, seed, square/n,
			low, high)
		if square/n < low || square/n > high {
			t.Errorf("%v: mean squared error %v outside [%v, %v]", trust, square/n, low, high)
		}
		if bias := math.Abs(sum / n); bias > 6.2*math.Sqrt((known.PrivacyVariance+known.RoundingVariance)/n) {
			t.Errorf("%v: bias %v", trust, bias)
		}
		if want := plan.Forecasts[0].Privacy.NoiseStd * 2; math.Abs(math.Sqrt(known.PrivacyVariance)/want-1) > 1e-9 {
			t.Errorf("%v: noise %v, planned %v", trust, math.Sqrt(known.PrivacyVariance), want)
		}
	}
}

// In a phase with a smoothing B devices report the gradient of the envelope: of |z - y| it is clip(B (z - y), -1,
// 1) x for a feature of norm 1, and of max(0, 1 - z) it is -clip(B (1 - z), 0, 1) x.
func TestSection6_DevicesReportTheEnvelope(t *testing.T) {
	plan := &wire.Plan{ClipNorm: 1, Phases: []*wire.Phase{{Mechanism: &wire.Mechanism{Dim: 1}},
		{Mechanism: &wire.Mechanism{Dim: 1}, Smoothing: 4}}}
	for _, c := range []struct {
		loss          convex.Loss
		label, z      float64
		plain, smooth float64
	}{
		{convex.Absolute{}, 2, 2.1, 1, 0.4}, {convex.Absolute{}, 2, 1, -1, -1}, {convex.Absolute{}, 2, 1.9, -1, -0.4},
		{convex.Hinge{}, 1, 0.9, -1, -0.4}, {convex.Hinge{}, 1, 0.5, -1, -1}, {convex.Hinge{}, 1, 1.5, 0, 0},
	} {
		config := Config{Plan: plan, Loss: c.loss, Examples: []convex.Example{{Value: []float64{1}, Label: c.label}},
			Exact: true}
		for phase, want := range []float64{c.plain, c.smooth} {
			o, err := config.oracle(phase, nil, newOwnNoise(nil))
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := o.mean(method.Query{Step: 1, Point: []float64{c.z}}, []int32{0})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Gradient[0]-want) > 1e-12 {
				t.Errorf("%s at %v, phase %d: gradient %v, want %v", c.loss.Name(), c.z, phase, got.Gradient[0], want)
			}
		}
	}
}
