// Plans are made in floating point, whose last bit other processors may round differently.

//go:build amd64

package sim_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// Ten rounds of every kind of method through plan, randomizer, mixer, estimator and method, as hashes of what is
// released and of the state that is stored. However the code is arranged, totals stay as they are; a state changes
// only with its own format.
func TestRecordedRounds(t *testing.T) {
	half, err := accounting.ParseFraction("1/2")
	if err != nil {
		t.Fatal(err)
	}
	card := convex.Scorecard{Norm: 0.5, High: 2, Correctness: true}
	var out strings.Builder
	for _, c := range []struct {
		name, loss, method string
		change             func(*planning.Problem)
	}{
		{"psgd", "logistic", schedule.PSGD, func(*planning.Problem) {}},
		{"pagd", "logistic", schedule.PAGD, func(*planning.Problem) {}},
		{"pagd, shuffle+pan, ridge", "squared", schedule.PAGD,
			func(p *planning.Problem) { p.Trust, p.Ridge = accounting.ShufflePan, 0.1 }},
		{"pagd, pan", "logistic", schedule.PAGD, func(p *planning.Problem) { p.Trust = accounting.Pan }},
		{"envelope, half honest", "absolute", schedule.PAGDEnvelope, func(p *planning.Problem) { p.HonestFraction = half }},
		{"restarts", "logistic", schedule.PAGDRestarts, func(p *planning.Problem) { p.Ridge = 0.5 }},
		{"envelope restarts, pan", "logistic", schedule.PAGDEnvelopeRestarts,
			func(p *planning.Problem) { p.Ridge, p.Trust = 0.5, accounting.Pan }},
		{"pgd", "logistic", schedule.PGD, func(p *planning.Problem) { p.Interactive = true }},
		{"pgd envelope", "absolute", schedule.PGDEnvelope, func(p *planning.Problem) { p.Interactive = true }},
		{"pgd restarts", "logistic", schedule.PGDRestarts, func(p *planning.Problem) { p.Interactive, p.Ridge = true, 0.5 }},
		{"constant", "logistic", schedule.PSGD, func(p *planning.Problem) { p.Continuous = schedule.Constant }},
		{"decaying", "logistic", schedule.PSGD, func(p *planning.Problem) { p.Continuous = schedule.Decaying }},
		{"epochs", "logistic", schedule.PAGD, func(p *planning.Problem) { p.Continuous = schedule.Epochs }},
		{"scores", "logistic", schedule.PAGD, func(p *planning.Problem) { p.Validation = &card }},
	} {
		s, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: 4, Loss: c.loss, TruthNorm: 2, Noise: 0.5, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		p := planning.Problem{Users: 2000, Dim: 4, Algorithm: c.method, ClipNorm: 1, Set: convex.SetDeclaration{Radius: 3},
			Epsilon: 2, Delta: 1e-6,
			HonestFraction: accounting.One, Rounds: planning.Rounds{MaxRounds: 10},
		}.ForLoss(s.Loss(), s.FeatureBound(), s.LabelBound())
		c.change(&p)
		plan, err := planning.MakePlan(p)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		fmt.Fprintf(&out, "%s: %s\n", c.name, plan.Plan.Algorithm)
		score := func(dst, theta []float64, e convex.Example) {
			card.Write(dst, s.Loss().Value(theta, e), (e.Dot(theta) > 0) == (e.Label > 0))
		}
		cfg := sim.Config{Plan: plan.Plan, Loss: s.Loss(), Score: score, Examples: s.Take(2000), Seed: 7,
			OnRound: func(r sim.Round) {
				state, err := r.State()
				if err != nil {
					t.Fatal(err)
				}
				totals := make([]byte, 0, 8*len(r.Release.Totals))
				for _, x := range r.Release.Totals {
					totals = binary.LittleEndian.AppendUint64(totals, x)
				}
				of, at := sha256.Sum256(totals), sha256.Sum256(state)
				fmt.Fprintf(&out, "  %d: %d users, %d trials, totals %x, state %x\n", r.Step, r.Release.Users, r.Release.NoiseTrials,
					of[:8], at[:8])
			}}
		if _, err := sim.Run(context.Background(), cfg); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	golden.File(t, filepath.Join("testdata", "rounds.golden"), out.String())
}
