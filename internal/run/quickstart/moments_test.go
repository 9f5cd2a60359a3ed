package quickstart

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/panlearn/panlearn/internal/run/runtest"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestMomentsRun: a task whose first cohort estimates second moments, from the task file to the model over the embedded broker, with
// devices that check every round. Each user answers once, either for moments or for gradients, and is
// charged once. The long form runs it twice: the same seed makes the same model.
func TestMomentsRun(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t, "features.precondition={users: 200, damping: 0.05}", "norm_bound=1", "schedule.rounds.max=3"))
	if p := job.Plan; len(p.Phases) != 2 || p.Phases[0].Statistic != wire.Statistic_STATISTIC_SECOND_MOMENTS || p.Phases[0].Users != 200 || manifest.Users(p) != 600 || manifest.Planned(p) > 3 {
		t.Fatalf("planned %+v", p.Phases)
	}
	model := func() []byte {
		r, err := Run(t.Context(), Config{Job: job, Dir: t.TempDir(), Seed: 3, Seeded: true, Logger: runtest.Discard()})
		if err != nil {
			t.Fatal(err)
		}
		if r.Events != 600 || r.Accepted != 600 || r.Rounds != manifest.Planned(job.Plan) || r.ModelVersion != r.Rounds || len(r.Rejected) != 0 {
			t.Errorf("%d events, %d accepted, %d rounds, version %d, rejected %v", r.Events, r.Accepted, r.Rounds, r.ModelVersion, r.Rejected)
		}
		if r.Epsilon != job.Plan.Epsilon || r.Epsilon > job.Problem.Epsilon {
			t.Errorf("charged epsilon %v, planned %v of %v", r.Epsilon, job.Plan.Epsilon, job.Problem.Epsilon)
		}
		spec, err := task.ParseDeclaration(r.Snapshot.Declaration)
		if err != nil || len(spec.Features.Scales) != 8 || spec.Features.Precondition != nil {
			t.Fatalf("the model is for %s, %v", r.Snapshot.Declaration, err)
		}
		for _, s := range spec.Features.Scales {
			if s == 1 || s > 1/math.Sqrt(0.05) {
				t.Errorf("scales %v", spec.Features.Scales)
			}
		}
		if err := job.Spec.Preconditioner().CheckScales(spec.Features.Scales); err != nil {
			t.Error(err)
		}
		one, err := json.Marshal(r.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(one, &m); err != nil {
			t.Fatal(err)
		}
		return bytes.Join([][]byte{m["weights"], m["intercept"], m["declaration"]}, nil)
	}
	first := model()
	if longtest.Run(t, "a second run with the seed makes the same model, as TestQuickstart holds of psgd") && !bytes.Equal(first, model()) {
		t.Error("the same seed makes another model")
	}
}

// TestMomentsBeforeOthers: what comes after the moments may be interactive, without an end, or under floors.
func TestMomentsBeforeOthers(t *testing.T) {
	for _, sets := range [][]string{
		{"schedule.algorithm=pgd", "schedule.interactive=true"},
		{"schedule.algorithm=pagd-restarts", "model.ridge=0.1", "schedule.rounds.max=5"},
		{"privacy.trust=shuffle+pan"},
	} {
		if sets[0] != "privacy.trust=shuffle+pan" && !longtest.Run(t, "moments, then "+sets[0]+", 2 s") {
			continue
		}
		job := runtest.Job(t, runtest.Small(t, append([]string{"features.precondition={users: 200, damping: 0.05}", "norm_bound=1", "schedule.rounds.max=3"}, sets...)...))
		r, err := Run(t.Context(), Config{Job: job, Dir: t.TempDir(), Seed: 3, Seeded: true, Logger: runtest.Discard()})
		if err != nil {
			t.Fatalf("%v: %v", sets, err)
		}
		if p := job.Plan; p.Phases[0].Statistic != wire.Statistic_STATISTIC_SECOND_MOMENTS || r.Events != 600 || r.Accepted != 600 || r.Rounds != manifest.Planned(p) || r.ModelVersion != r.Rounds || r.Epsilon > job.Problem.Epsilon {
			t.Errorf("%v: %d events, %d accepted, %d rounds, version %d of %+v, epsilon %v", sets, r.Events, r.Accepted, r.Rounds, r.ModelVersion, p.Phases, r.Epsilon)
		}
	}
	job := runtest.Job(t, runtest.Small(t, "features.precondition={users: 200, damping: 0.05}", "norm_bound=1", "schedule.continuous=epochs", "schedule.rounds.max=4"))
	body, err := job.Wire()
	if err != nil || !manifest.Endless(body.Plan) || len(body.Plan.Phases) != 2 {
		t.Fatalf("%v, %v", body.GetPlan().GetPhases(), err)
	}
	if a, err := learner.New(body.Plan); err != nil || a.Done() {
		t.Error(err)
	}
}
