package sim

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// siloPlan returns a plan of 8 silos of 60 units, of which 45 are enough under trust local.
func siloPlan(t *testing.T, s *Synthetic, change func(*planning.Problem)) *wire.Plan {
	t.Helper()
	p := planning.Problem{Users: 8 * 60, Dim: 10, ClipNorm: 2, Set: convex.SetDeclaration{Radius: 3}, Epsilon: 4,
		Delta: 1e-6, Algorithm: "pgd", Rounds: planning.Rounds{Interactive: true, MaxRounds: 5, Minimum: 4},
		Trust: accounting.Local, HonestFraction: accounting.One, Silos: planning.Silos{Count: 8,
			Units: 60, Reports: 8, Least: 45}}.
		ForLoss(s.Loss(), s.FeatureBound(), 1)
	if change != nil {
		change(&p)
	}
	out, err := planning.MakePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	return out.Plan
}

// Silos of other sizes than planned make noise of their own: the fewest even trials with which all that they send
// meets the budget, as the accountant says, and that is what their reports have. Seed 3 is fixed; squared errors
// are sums of 600 squares of nearly normal numbers, 6.2 standard deviations of which are exceeded with probability
// below 1e-9.
func TestSilosMakeTheirOwnNoise(t *testing.T) {
	const rounds, margin = 60, 6.2 * 0.0578
	s, err := NewSynthetic(SyntheticConfig{Dim: 10, Loss: "logistic", TruthNorm: 3, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	plan := siloPlan(t, s, nil)
	planned := plan.Phases[0].Mechanism
	rows := s.Take(240)
	for _, units := range []uint64{45, 60, 240} {
		own := newOwnNoise(plan)
		params, err := manifest.Params(planned)
		if err != nil {
			t.Fatal(err)
		}
		if !own.applies(0) {
			t.Fatal("no noise of their own in many passes under trust local")
		}
		p, err := own.params(0, params, units)
		if err != nil {
			t.Fatal(err)
		}
		epsilon := func(trials uint32) float64 {
			releases, err := manifest.Costliest(plan, 0).Releases(accounting.One)
			if err != nil {
				t.Fatal(err)
			}
			releases[0].Units, releases[0].Trials = units, uint64(trials)
			g, err := accounting.RepeatedEpsilon(1, [][]accounting.Release{releases}, plan.Delta)
			if err != nil {
				t.Fatal(err)
			}
			return g.Epsilon
		}
		// Epsilons are found to within 1e-6 of themselves.
		if e, fewer := epsilon(p.Trials), epsilon(p.Trials-2); e > plan.Epsilon*(1+1e-6) || fewer < plan.Epsilon*(1-1e-6) ||
			p.Trials%2 != 0 {
			t.Errorf("%d units: %d trials have epsilon %v, two fewer %v: want the fewest with at most %v", units, p.Trials, e,
				fewer, plan.Epsilon)
		}
		if (p.Trials > planned.Trials) != (units < 60) || (p.Trials == planned.Trials) != (units == 60) {
			t.Errorf("%d units: %d trials, %d planned for 60", units, p.Trials, planned.Trials)
		}
		c := Config{Plan: plan, Loss: s.Loss(), Blocks: []block.Block{block.Of(rows[:units]...)}, Silos: []int{0}, Seed: 3}
		o, err := c.oracle(0, Entropy(3, "reports"), own)
		if err != nil {
			t.Fatal(err)
		}
		c.Exact = true
		exactly, err := c.oracle(0, nil, own)
		if err != nil {
			t.Fatal(err)
		}
		truth, _, err := exactly.mean(method.Query{Step: 1, Point: s.Truth()}, []int32{0})
		if err != nil {
			t.Fatal(err)
		}
		var square float64
		for round := range uint64(rounds) {
			got, _, err := o.mean(method.Query{Step: round + 1, Point: s.Truth()}, []int32{0})
			if err != nil {
				t.Fatal(err)
			}
			for j, g := range got.Gradient {
				square += (g - truth.Gradient[j]) * (g - truth.Gradient[j])
			}
		}
		v := params.Variance(1, uint64(p.Trials))
		if square /= rounds * 10; square < v.Privacy*(1-margin) || square > (v.Privacy+v.RoundingMax)*(1+margin) {
			t.Errorf("%d units: mean squared error %v, want that of %d trials, %v", units, square, p.Trials, v.Privacy)
		}
	}
}

// Where silos stay away a round has the reports of those who are there, with the noise of all that were planned
// under shuffle and their own alone under local; below the minimum there is none.
func TestRoundsOfSilosThatStayAway(t *testing.T) {
	s, err := NewSynthetic(SyntheticConfig{Dim: 10, Loss: "logistic", TruthNorm: 3, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	rows := s.Take(8 * 60)
	shuffled := func(p *planning.Problem) {
		p.Trust, p.Silos.Least, p.Minimum = accounting.Shuffle, 60, 7
		p.HonestFraction, _ = accounting.ParseFraction("7/8")
	}
	once := func(p *planning.Problem) { p.Interactive, p.Algorithm = false, "psgd" }
	for name, c := range map[string]struct {
		change  func(*planning.Problem)
		present []int // units of those who are there
		reports []int // of the rounds; nil: too few
	}{
		"many passes, local":            {nil, []int{60, 45, 200, 60}, []int{4, 4, 4, 4, 4}},
		"many passes, local, too few":   {nil, []int{60, 45, 200}, nil},
		"many passes, shuffle":          {shuffled, []int{60, 60, 60, 90, 60, 60, 60}, []int{7, 7, 7, 7, 7}},
		"many passes, shuffle, too few": {shuffled, []int{60, 60, 60, 60, 60, 60}, nil},
		"one pass, local":               {once, []int{60, 60, 60, 60, 24, 100, 100, 100}, []int{8, 8, 7, 7, 7}},
		"one pass, local, too few":      {once, []int{60, 60, 60, 24, 24, 24, 24, 24}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			plan := siloPlan(t, s, c.change)
			f, units, silos := plan.Phases[0], 0, [][]convex.Example{}
			for _, n := range c.present {
				silos = append(silos, slices.Concat(rows, rows)[:n])
			}
			if f.RoundsPerUser == 1 {
				units = int(max(1, f.Mechanism.Units))
				if units != 12 || f.Rounds != 5 {
					t.Fatalf("%d rounds of blocks of %d, want 5 of 12", f.Rounds, units)
				}
			}
			blocks, of, _ := BlocksOf(silos, units, 1, block.Of)
			var reports []int
			config := Config{Plan: plan, Loss: s.Loss(), Blocks: blocks, Silos: of, Seed: 5, InOrder: true,
				OnRound: func(r Round) {
					reports = append(reports, len(r.Cohort))
					seen := map[int]bool{}
					for _, i := range r.Cohort {
						seen[of[i]] = true
					}
					if len(seen) != len(r.Cohort) {
						t.Errorf("step %d: blocks %v of silos %v", r.Step, r.Cohort, seen)
					}
					want := uint64(len(r.Cohort)) * uint64(f.Mechanism.Trials)
					if f.Mechanism.Window == 0 {
						want = f.Cohort * uint64(f.Mechanism.Trials)
					}
					if r.Release.NoiseTrials != want {
						t.Errorf("step %d: %d trials, want %d", r.Step, r.Release.NoiseTrials, want)
					}
				}}
			out, err := Run(context.Background(), config)
			if c.reports == nil {
				if err == nil || !strings.Contains(err.Error(), "8 are planned, and want at least") {
					t.Fatalf("%d rounds, error %v", out.Rounds, err)
				}
				return
			}
			if err != nil || !slices.Equal(reports, c.reports) || slices.ContainsFunc(out.Model, math.IsNaN) {
				t.Errorf("rounds of %v reports, want %v; %v", reports, c.reports, err)
			}
		})
	}
}
