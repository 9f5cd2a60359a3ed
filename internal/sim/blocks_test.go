package sim

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// silos returns blocks of 50 units and more, and people's of one unit of several rows.
func silos(t *testing.T) (*Synthetic, []block.Block) {
	t.Helper()
	s, err := NewSynthetic(SyntheticConfig{Dim: 10, Loss: "logistic", TruthNorm: 3, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	rows := s.Take(7 * 60)
	var out []block.Block
	for i := range 7 {
		out = append(out, block.Of(rows[i*60:i*60+50+i]...))
	}
	for i := 1; i < 50; i++ {
		out[6].Ends = append(out[6].Ends, i)
	}
	out[6].Ends = append(out[6].Ends, 56) // the last unit has seven rows
	return s, out
}

// The mean of reports about blocks is that over reports of the mean over units, with the noise that the estimate
// says, of the report's own trials alone where counts are in a window: rounds with fewer reports than planned get
// none from the stage. Seed 3 is fixed; squared errors are sums of 600 squares of nearly normal numbers, 6.2
// standard deviations of which are exceeded with probability below 1e-9.
func TestReportsOfBlocksHaveTheNoiseThatTheySay(t *testing.T) {
	const seed, dim, rounds, margin = 3, 10, 60, 6.2 * 0.0578
	s, blocks := silos(t)
	of := report.Config{Features: dim, Loss: s.Loss(), ClipNorm: 2}
	exactly, err := report.NewExact(of)
	if err != nil {
		t.Fatal(err)
	}
	get := func(i int32) block.Block { return blocks[i] }
	cohort := []int32{0, 1, 2, 3, 4, 5, 6}
	truth, _, err := exact{block: get, reports: exactly}.mean(method.Query{Point: s.Truth()}, cohort)
	if err != nil {
		t.Fatal(err)
	}
	var units []float64
	for j := range dim {
		sum := 0.0
		for _, b := range blocks {
			one := 0.0
			for i := range b.Units() {
				mean := 0.0
				for _, x := range b.Unit(i) {
					g := make([]float64, dim)
					s.Loss().Gradient(g, s.Truth(), x)
					convex.Clip(g, 2)
					mean += g[j] / float64(len(b.Unit(i)))
				}
				one += mean / float64(b.Units())
			}
			sum += one / 7
		}
		units = append(units, sum)
	}
	if !slices.EqualFunc(units, truth.Gradient, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("the mean of blocks is %v, by hand %v", truth.Gradient, units)
	}
	for _, p := range []randomizer.Params{
		{Dim: dim, ClipNorm: 2, Levels: 2000, Trials: 800, Units: 50, Window: 400, Coin: randomizer.Fair}, // local
		{Dim: dim, ClipNorm: 2, Levels: 2000, Trials: 800, Units: 50, Coin: randomizer.Fair},
	} {
		o := mixed{block: get, phase: &wire.Phase{Minimum: 1}, params: p, of: of, makers: map[int]*report.Maker{},
			entropy: Entropy(seed, "reports"), seed: seed}
		var square, sum float64
		var known method.Estimate
		for round := range uint64(rounds) {
			estimate, release, err := o.mean(method.Query{Step: round, Point: s.Truth()}, cohort)
			if err != nil {
				t.Fatal(err)
			}
			if release.NoiseTrials != 7*800 {
				t.Fatalf("%d trials in a total, want those of 7 reports", release.NoiseTrials)
			}
			known = estimate
			for j, g := range estimate.Gradient {
				square += (g - truth.Gradient[j]) * (g - truth.Gradient[j])
				sum += g - truth.Gradient[j]
			}
		}
		const n = rounds * dim
		if low, high := known.PrivacyVariance*(1-margin), (known.PrivacyVariance+known.RoundingVariance)*(1+
			margin); square/n < low || square/n > high {
			t.Errorf("window %d: mean squared error %v outside [%v, %v]", p.Window, square/n, low, high)
		}
		if bias := math.Abs(sum / n); bias > 6.2*math.Sqrt((known.PrivacyVariance+known.RoundingVariance)/n) {
			t.Errorf("window %d: bias %v", p.Window, bias)
		}
	}
}

// Phases of one stint have the same users, later phases others; if a stint has several rounds, any of its users may be
// in a round.
func TestStintsHaveTheirUsers(t *testing.T) {
	plan := &wire.Plan{Phases: []*wire.Phase{{Users: 20, Rounds: 1, Cohort: 20, RoundsPerUser: 1}, {Users: 20, Rounds: 5,
		Cohort: 20, RoundsPerUser: 5, Again: true},
		{Users: 30, Rounds: 3, Cohort: 10, RoundsPerUser: 1}}}
	want := []stint{{0, 20, true}, {0, 20, true}, {20, 30, false}}
	if got := stintsOf(plan); !slices.Equal(got, want) {
		t.Errorf("stints %v, want %v", got, want)
	}
	if n := (Config{Plan: plan}).needed(); n != 50 {
		t.Errorf("%d reports wanted, want 50", n)
	}
	s, blocks := silos(t)
	made, err := planning.MakePlan(planning.Problem{Users: 7, Dim: 10, ClipNorm: 2, Set: convex.SetDeclaration{Radius: 3},
		Epsilon: 2, Delta: 1e-6, Rounds: planning.Rounds{Interactive: true, MaxRounds: 12},
		Trust: accounting.Shuffle, HonestFraction: accounting.One}.ForLoss(s.Loss(), s.FeatureBound(), 1))
	if err != nil {
		t.Fatal(err)
	}
	f := made.Plan.Phases[0]
	f.Cohort, f.Minimum, f.Mechanism.Units = 4, 4, 50
	seen := map[int32]int{}
	c := Config{Plan: made.Plan, Loss: s.Loss(), Blocks: blocks, Seed: 9, OnRound: func(r Round) {
		if len(r.Cohort) != 4 || len(slices.Compact(slices.Sorted(slices.Values(r.Cohort)))) != 4 {
			t.Errorf("step %d: the cohort is %v, want four", r.Step, r.Cohort)
		}
		for _, i := range r.Cohort {
			seen[i]++
		}
	}}
	out, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if out.Rounds != f.Rounds || out.Rounds < 5 || out.Users != 7 || len(seen) != 7 {
		t.Errorf("%d rounds of %d users, of whom %d answered: want %d of 7", out.Rounds, out.Users, len(seen), f.Rounds)
	}
	f.Mechanism.Units = 51
	if _, err := Run(context.Background(), c); err == nil {
		t.Error("a block of fewer units than planned: accepted")
	}
	f.Mechanism.Units, c.Examples = 50, blocks[0].Rows
	if _, err := Run(context.Background(), c); err == nil {
		t.Error("blocks beside examples: accepted")
	}
}
