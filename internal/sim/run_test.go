package sim_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

func small(t testing.TB) (*sim.Synthetic, sim.Config) {
	t.Helper()
	s, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: 3, Loss: "logistic", TruthNorm: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	card := convex.Scorecard{Norm: 0.5, High: 2, Correctness: true}
	plan, err := planning.MakePlan(planning.Problem{Users: 2000, Dim: 3, ClipNorm: s.FeatureBound(),
		Set: convex.SetDeclaration{Radius: 3}, Epsilon: 2, Delta: 1e-6,
		HonestFraction: accounting.One, Trust: accounting.ShufflePan, Validation: &card}.ForLoss(s.Loss(), s.FeatureBound(),
		1))
	if err != nil {
		t.Fatal(err)
	}
	score := func(dst, theta []float64, e convex.Example) {
		card.Write(dst, s.Loss().Value(theta, e), (e.Dot(theta) > 0) == (e.Label > 0))
	}
	return s, sim.Config{Plan: plan.Plan, Loss: s.Loss(), Score: score, Examples: s.Take(2000), Seed: 11}
}

func TestRunIsAFunctionOfItsSeed(t *testing.T) {
	_, c := small(t)
	var steps []uint64
	c.OnRound = func(r sim.Round) {
		steps = append(steps, r.Step)
		if r.Steps != manifest.Planned(c.Plan) || r.Users != manifest.Cohort(c.Plan, r.Step) || len(r.Model()) != 3 {
			t.Errorf("observed %+v", r)
		}
	}
	first, err := sim.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if uint64(len(steps)) != manifest.Planned(c.Plan) || first.Rounds != manifest.Planned(c.Plan) || first.Users != 2000 {
		t.Errorf("%d steps observed, %d rounds and %d users reported, want %d, %d, 2000", len(steps), first.Rounds,
			first.Users, manifest.Planned(c.Plan), manifest.Planned(c.Plan))
	}
	c.OnRound = nil
	again, err := sim.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.State, again.State) {
		t.Error("the same seed gave another state")
	}
	c.Seed++
	other, err := sim.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(first.State, other.State) {
		t.Error("another seed gave the same state")
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	_, c := small(t)
	ctx, cancel := context.WithCancel(context.Background())
	c.OnRound = func(sim.Round) { cancel() }
	if _, err := sim.Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestRunRefuses(t *testing.T) {
	_, good := small(t)
	for name, change := range map[string]func(*sim.Config){
		"examples":  func(c *sim.Config) { c.Examples = c.Examples[:1999] },
		"loss":      func(c *sim.Config) { c.Loss = nil },
		"constants": func(c *sim.Config) { c.Plan.Phases[0].Constants = nil },
		"params":    func(c *sim.Config) { c.Plan.Phases[0].Mechanism.Levels = 0 },
		"phase 1":   func(c *sim.Config) { c.Plan.Phases[0].Rounds++ },
		"example 7": func(c *sim.Config) {
			c.Examples = append([]convex.Example(nil), c.Examples...)
			c.Examples[7].Value = c.Examples[7].Value[:2]
		},
		"example 9": func(c *sim.Config) {
			c.Examples = append([]convex.Example(nil), c.Examples...)
			c.Examples[9].Label = 0.5
		},
	} {
		c := good
		c.Plan = proto.CloneOf(good.Plan)
		change(&c)
		if _, err := sim.Run(context.Background(), c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
}

func TestEntropySeparatesPurposes(t *testing.T) {
	seen := map[uint64]string{}
	for name, e := range map[string]interface{ Uint64() uint64 }{
		"a": sim.Entropy(1, "a"), "b": sim.Entropy(1, "b"), "other seed": sim.Entropy(2, "a"),
		"index": sim.Entropy(1, "a", 0), "index 1": sim.Entropy(1, "a", 1), "indices": sim.Entropy(1, "a", 0, 0),
		"empty": sim.Entropy(1, ""),
	} {
		v := e.Uint64()
		if other, ok := seen[v]; ok {
			t.Errorf("%s and %s give the same stream", name, other)
		}
		seen[v] = name
	}
	if _, ok := seen[sim.Entropy(1, "a").Uint64()]; !ok {
		t.Error("the same purpose gives two streams")
	}
}
