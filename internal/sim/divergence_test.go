package sim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// colours returns pixels, some of which are of a skin: three numbers that lie near a line, and a class that
// is a cloud beside it.
func colours(n int, seed uint64) (out [][4]float64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	near := func(mean, sd float64) float64 { return min(max(mean+sd*rng.NormFloat64(), 0), 255) }
	for range n {
		switch kind, base := rng.Float64(), 255*rng.Float64(); {
		case kind < 0.21:
			base = near(150, 45)
			out = append(out, [4]float64{near(base-18, 14), near(base, 10), near(base+55, 12), 1})
		case kind < 0.68:
			out = append(out, [4]float64{near(base, 14), near(base, 14), near(base, 14), -1})
		case kind < 0.84:
			out = append(out, [4]float64{near(0.7*base, 15), near(0.85*base, 15), near(0.55*base, 15), -1})
		default:
			out = append(out, [4]float64{255 * rng.Float64(), 255 * rng.Float64(), 255 * rng.Float64(), -1})
		}
	}
	return out
}

// A plan whose model is far away, where few rounds do not bring it back from, is reported at the default
// validation.loss_bound, although losses above the bound are cut. A plan that learns is not reported.
func TestDivergenceBehindTheLossBound(t *testing.T) {
	const users = 120_000
	var csv strings.Builder
	csv.WriteString("b,g,r,y\n")
	for _, c := range colours(users, 1) {
		fmt.Fprintf(&csv, "%.0f,%.0f,%.0f,%.0f\n", c[0], c[1], c[2], c[3])
	}
	file := filepath.Join(t.TempDir(), "colours.csv")
	if err := os.WriteFile(file, []byte(csv.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for gamma, diverges := range map[string]bool{"0.5": true, "8": false} {
		spec, err := task.Parse([]byte(`
version: 1
name: colours
events: {format: csv, header: true}
features:
  columns: [{column: b, kind: numeric, min: 0, max: 255}, {column: g, kind: numeric, min: 0, max: 255}, {column: r, kind: numeric, min: 0, max: 255}]
  fourier: {columns: [b, g, r], dimension: 200, gamma: `+gamma+`}
label: {column: y, positive: ["1"], negative: ["-1"]}
model: {loss: logistic}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 120000}
`), nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		card, err := spec.Scorecard(m)
		if err != nil {
			t.Fatal(err)
		}
		how := spec.Practical(m)
		if diverges {
			how.Start = make([]float64, m.Dim())
			for i := range how.Start {
				how.Start[i] = 60 * float64(1-i%3)
			}
		}
		plan, err := planning.MakePlan(planning.Problem{Start: how.Start,
			Users: users, Dim: m.Dim(), ClipNorm: spec.ClipNorm(),
			Set:       spec.SetDeclaration(),
			Practical: how, Epsilon: 1, Delta: 1e-6, HonestFraction: accounting.One,
			Validation: card}.ForLoss(convex.Logistic{}, m.Bound(), 1))
		if err != nil {
			t.Fatal(err)
		}
		rows := load(t, file, m)
		for seed := range uint64(2) {
			result, err := sim.Run(context.Background(), sim.Config{Plan: plan.Plan, Loss: convex.Logistic{},
				Score: report.NewScorer(m, *card, convex.Logistic{}).Score, Examples: rows, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			const constant = 0.51 // -0.21 ln 0.21 - 0.79 ln 0.79
			if v := result.Validation; v.Diverges != diverges || diverges && !(*v.LossAtLeast > constant) || !diverges &&
				v.Loss.Recent.High > constant {
				t.Errorf("gamma %s, seed %d: diverges %t, want %t: %+v", gamma, seed, v.Diverges, diverges, v)
			}
		}
	}
}
