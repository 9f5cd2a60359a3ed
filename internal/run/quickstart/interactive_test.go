package quickstart

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/schedule"
)

// TestInteractiveRuns: PGD from the task file to the model over the embedded broker. The same users answer every round
// and are counted once, and the ledger charges what all rounds cost them together. The long form runs it twice: the
// same seed makes the same model.
func TestInteractiveRuns(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t, "model.radius=5", "schedule.algorithm="+schedule.PGD,
		"schedule.interactive=true", "schedule.rounds.max=4"))
	phase := job.Plan.Phases[0]
	if len(job.Plan.Phases) != 1 || phase.Rounds != 4 || phase.RoundsPerUser != 4 || phase.Cohort != job.Problem.Users {
		t.Fatalf("%d phases, %d rounds, %d of one user, cohort %d of %d", len(job.Plan.Phases), phase.Rounds,
			phase.RoundsPerUser, phase.Cohort, job.Problem.Users)
	}
	release := job.Forecasts[0].Privacy.Release()
	if release.Rounds != 4 {
		t.Errorf("planned for %d rounds of one user", release.Rounds)
	}
	together, err := release.Epsilon(job.Forecasts[0].Privacy.Delta)
	if err != nil {
		t.Fatal(err)
	}
	release.Rounds = 1
	alone, err := release.Epsilon(job.Forecasts[0].Privacy.Delta)
	if err != nil {
		t.Fatal(err)
	}
	learned := func() []byte {
		r, err := Run(t.Context(), Config{Job: job, Dir: t.TempDir(), Seed: 3, Seeded: true, Logger: runtest.Discard()})
		if err != nil {
			t.Fatal(err)
		}
		if r.Events != phase.Users || r.Accepted != phase.Users || r.Rounds != 4 || r.ModelVersion != 4 {
			t.Errorf("%d events, %d accepted, %d rounds, model %d: want %d in 4", r.Events, r.Accepted, r.Rounds, r.ModelVersion,
				phase.Users)
		}
		if r.Epsilon != together.Epsilon || r.Epsilon <= alone.Epsilon || r.Epsilon > job.Problem.Epsilon {
			t.Errorf("charged epsilon %v; four rounds cost %v, one %v, the budget is %v", r.Epsilon, together.Epsilon,
				alone.Epsilon, job.Problem.Epsilon)
		}
		if p := r.Snapshot.Privacy; !p.NoiseKnown || p.Epsilon != 0 || p.Delta != 0 || !p.Interactive ||
			p.Unit != p.Protected() || p.Users != phase.Users {
			t.Errorf("the model says %v; four rounds of one user cost %v", p, together.Epsilon)
		}
		weights, err := json.Marshal([]any{r.Snapshot.Weights, r.Snapshot.Intercept})
		if err != nil {
			t.Fatal(err)
		}
		return weights
	}
	first := learned()
	if longtest.Run(t, "a second run with the seed makes the same model, as TestQuickstart holds of psgd") &&
		!bytes.Equal(first, learned()) {
		t.Error("the same seed makes another model")
	}
}
