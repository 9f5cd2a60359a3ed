package sim_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// heldOut runs a simulation and holds what users' scores say against the scores of the announced points on events
// that nobody learned from: as averages over the rounds with the users as weights. It returns both and the bands.
func heldOut(t *testing.T, c sim.Config, test []convex.Example) (said, measured [2]float64, within bool) {
	t.Helper()
	var users float64
	block := make([]float64, manifest.Scorecard(c.Plan).Dim())
	card := *manifest.Scorecard(c.Plan)
	c.OnRound = func(r sim.Round) {
		if r.Point == nil {
			return
		}
		point := r.Point
		if r.Frame != nil {
			point = r.Frame.Fold(point, 1)
		}
		var mean [2]float64
		for _, e := range test {
			c.Score(block, point, e)
			for i, x := range block {
				mean[i] += x / float64(len(test))
			}
		}
		users += float64(r.Users)
		measured[0] += float64(r.Users) * card.Loss(mean[0])
		measured[1] += float64(r.Users) * card.Accuracy(mean[1])
		for i, band := range []struct{ low, high float64 }{{r.Validation.Loss.Overall.Low, r.Validation.Loss.Overall.High},
			{r.Validation.Accuracy.Overall.Low, r.Validation.Accuracy.Overall.High}} {
			if at := measured[i] / users; at < band.low || at > band.high {
				within = false
				t.Logf("round %d, score %d: measured %v outside [%v, %v]", r.Step, i, at, band.low, band.high)
			}
		}
	}
	within = true
	result, err := sim.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	v := result.Validation
	said = [2]float64{v.Loss.Overall.Value, v.Accuracy.Overall.Value}
	for i := range measured {
		measured[i] /= users
	}
	t.Logf("%d rounds: accuracy %.4f (%.4f to %.4f), measured %.4f; loss %.4f (%.4f to %.4f), measured %.4f", v.Rounds,
		said[1], v.Accuracy.Overall.Low,
		v.Accuracy.Overall.High, measured[1], said[0], v.Loss.Overall.Low, v.Loss.Overall.High, measured[0])
	return said, measured, within
}

// What users say, privately, of the announced points agrees with 20,000 events that nobody learned from, at every
// round.
func TestProgressiveAgreesWithFreshEvents(t *testing.T) {
	s, c := small(t)
	for seed := range uint64(5) {
		c.Seed = seed
		_, _, within := heldOut(t, c, s.Take(22000)[2000:])
		if !within {
			t.Errorf("seed %d: the measured scores left the band of all rounds", seed)
		}
	}
}

// Users who say the contrary of what is so are seen: the bands are no wider than that.
func TestProgressiveSeesAnotherModel(t *testing.T) {
	_, c := small(t)
	card := *manifest.Scorecard(c.Plan)
	c.Score = func(dst, theta []float64, e convex.Example) {
		card.Write(dst, 0.7, (e.Dot(theta) > 0) != (e.Label > 0))
	}
	result, err := sim.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if band := result.Validation.Accuracy.Overall; band.High > 0.62 { // the points predict 0.62 to 0.67 of fresh events
		t.Errorf("the contrary of accuracy is said to be %+v", band)
	}
}

// The same on real data: all rounds of a9a, held against its test file.
func TestProgressiveAgreesOnA9A(t *testing.T) {
	dir := dataFolder(t, "a9a/a9a.t.gz")
	spec, m := shipped(t, "a9a")
	card, err := spec.Scorecard(m)
	if err != nil {
		t.Fatal(err)
	}
	train, test := load(t, filepath.Join(dir, "a9a/a9a.gz"), m), load(t, filepath.Join(dir, "a9a/a9a.t.gz"), m)
	plan, err := planning.MakePlan(planning.Problem{Users: uint64(len(train)), Dim: m.Dim(), ClipNorm: spec.ClipNorm(),
		Set: spec.SetDeclaration(), Practical: spec.Practical(m), Epsilon: 1, Delta: 1e-6, HonestFraction: accounting.One,
		Validation: card}.
		ForLoss(convex.Logistic{}, m.Bound(), 1))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		c := sim.Config{Plan: plan.Plan, Loss: convex.Logistic{}, Score: report.NewScorer(m, *card, convex.Logistic{}).Score,
			Examples: train, Seed: seed}
		if said, measured, within := heldOut(t, c, test); !within || math.Abs(said[1]-measured[1]) > 0.02 {
			t.Errorf("seed %d: said %v, measured %v", seed, said, measured)
		}
	}
}
