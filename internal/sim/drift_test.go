package sim_test

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// electricity reads the events of the New South Wales market in the order of time: six columns, scaled by public
// numbers and cut to [-1, 1], and an intercept. The price goes up (+1) or down (-1).
func electricity(t testing.TB) []convex.Example {
	t.Helper()
	file, err := os.Open(filepath.Join(dataFolder(t, "elec/elec.csv.gz"), "elec/elec.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(plain).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	scale := []struct{ centre, half float64 }{{0.5, 0.5}, {0.05, 0.05}, {0.4, 0.3}, {0.004, 0.004}, {0.4, 0.3}, {0.5, 0.3}}
	var out []convex.Example
	for _, row := range rows[1:] {
		e := convex.Example{Label: -1}
		for i, s := range scale {
			v, err := strconv.ParseFloat(row[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			e.Value = append(e.Value, min(1, max(-1, (v-s.centre)/s.half)))
		}
		if row[6] == "1" {
			e.Label = 1
		}
		e.Value = append(e.Value, 1)
		out = append(out, e)
	}
	return out
}

// A stream without an end follows the electricity market, where a model that was trained on its first third and
// frozen does not: each event is predicted by the model of before its round, then used, and the accuracy is over
// all events after the first third. Every user takes part once, at epsilon 1. Seeds are fixed; the margins are a
// third of what was measured.
func TestContinuousFollowsElectricity(t *testing.T) {
	examples := electricity(t)
	const first, seeds = 15000, 3
	problem := planning.Problem{Users: first, Dim: 7, ClipNorm: 1.5, Set: convex.SetDeclaration{Radius: 5}, Epsilon: 1,
		Delta:          1e-6,
		HonestFraction: accounting.One}.ForLoss(convex.Logistic{}, math.Sqrt(7), 1)
	median := func(algorithm, continuous string) float64 {
		problem.Algorithm, problem.Continuous = algorithm, continuous
		plan, err := planning.MakePlan(problem)
		if err != nil {
			t.Fatal(err)
		}
		var scores []float64
		for seed := range uint64(seeds) {
			scores = append(scores, progressive(t, plan.Plan, convex.Logistic{}, examples, seed, first, len(examples)))
		}
		slices.Sort(scores)
		t.Logf("%s, %-8s: planned for %d rounds of %d: accuracy %.4f, median of seeds 0 to %d, all in %.4f to %.4f",
			algorithm, continuous,
			manifest.Planned(plan.Plan), plan.Plan.Phases[0].Cohort, scores[seeds/2], seeds-1, scores[0], scores[seeds-1])
		return scores[seeds/2]
	}
	frozen, plain := median("pagd", ""), median("psgd", "")
	if got := median("pagd", schedule.Epochs); got < frozen+0.008 {
		t.Errorf("epochs: accuracy %v, %v frozen", got, frozen)
	}
	if got := median("psgd", schedule.Constant); got < plain+0.006 {
		t.Errorf("constant: accuracy %v, %v frozen", got, plain)
	}
}

// Where the population turns into its opposite after a third of the stream, the models that forget predict the last
// quarter as they did the end of the first third, and one that was frozen predicts the opposite. Seeds are fixed.
func TestContinuousForgets(t *testing.T) {
	const first, all = 8000, 32000
	s, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: 5, Loss: "logistic", TruthNorm: 6, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	examples := s.Take(all)
	for i := range examples[first:] {
		examples[first+i].Label *= -1
	}
	problem := planning.Problem{Users: first, Dim: 5, ClipNorm: math.Sqrt(5), Set: convex.SetDeclaration{Radius: 8},
		Epsilon: 2, Delta: 1e-6,
		HonestFraction: accounting.One}.ForLoss(s.Loss(), s.FeatureBound(), 1)
	for _, c := range []struct {
		algorithm, continuous string
		least, most           float64
	}{{"pagd", "", 0, 0.3}, {"psgd", schedule.Constant, 0.75, 1}, {"pagd", schedule.Epochs, 0.75, 1}} {
		problem.Algorithm, problem.Continuous = c.algorithm, c.continuous
		plan, err := planning.MakePlan(problem)
		if err != nil {
			t.Fatal(err)
		}
		before := progressive(t, plan.Plan, s.Loss(), examples, 1, first/2, first)
		after := progressive(t, plan.Plan, s.Loss(), examples, 1, 3*all/4, all)
		t.Logf("%s, %-8s: accuracy %.4f before the turn, %.4f in the last quarter", c.algorithm, c.continuous, before, after)
		if after < c.least || after > c.most {
			t.Errorf("%s, %s: accuracy %v, want in [%v, %v]", c.algorithm, c.continuous, after, c.least, c.most)
		}
	}
}

// progressive returns the accuracy on the examples from one index to before another: each is predicted by the model
// as of the end of the round before its own, and by the last model where the run is over.
func progressive(t *testing.T, plan *wire.Plan, loss convex.Loss, examples []convex.Example, seed uint64, from,
	to int) float64 {
	t.Helper()
	model := make([]float64, manifest.Dim(plan))
	var right, next int
	predict := func(until int) {
		for ; next < until; next++ {
			if next >= from && next < to && (examples[next].Dot(model) > 0) == (examples[next].Label > 0) {
				right++
			}
		}
	}
	_, err := sim.Run(context.Background(), sim.Config{Plan: plan, Loss: loss, Examples: examples, InOrder: true,
		Seed: seed,
		OnRound: func(r sim.Round) {
			if int(r.Cohort[0]) != next {
				t.Fatalf("round %d begins with example %d, want %d: the order of time", r.Step, r.Cohort[0], next)
			}
			predict(next + len(r.Cohort))
			model = r.Model()
		}})
	if err != nil {
		t.Fatal(err)
	}
	predict(len(examples))
	return float64(right) / float64(to-from)
}
