package run

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestMomentsRun: a task whose first cohort estimates second moments, from the task file to the model over the embedded broker, with
// devices that check every round. Each user answers once, either for moments or for gradients, and is charged once.
func TestMomentsRun(t *testing.T) {
	job := jobOf(t, small(t, "features.precondition={users: 200, damping: 0.05}", "norm_bound=1", "schedule.rounds.max=3"))
	if p := job.Plan; len(p.Phases) != 2 || !p.Phases[0].Moments || p.Phases[0].Users != 200 || p.TakenUsers() != 600 || p.Rounds() > 3 {
		t.Fatalf("planned %+v", p.Phases)
	}
	var models [][]byte
	for range 2 {
		r, err := Quickstart(t.Context(), QuickstartConfig{Job: job, Dir: t.TempDir(), Seed: 3, Seeded: true, Logger: discard()})
		if err != nil {
			t.Fatal(err)
		}
		if r.Events != 600 || r.Accepted != 600 || r.Rounds != job.Plan.Rounds() || r.ModelVersion != r.Rounds || len(r.Rejected) != 0 {
			t.Errorf("%d events, %d accepted, %d rounds, version %d, rejected %v", r.Events, r.Accepted, r.Rounds, r.ModelVersion, r.Rejected)
		}
		if r.Epsilon != job.Plan.Epsilon() || r.Epsilon > job.Problem.Epsilon {
			t.Errorf("charged epsilon %v, planned %v of %v", r.Epsilon, job.Plan.Epsilon(), job.Problem.Epsilon)
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
		models = append(models, bytes.Join([][]byte{m["weights"], m["intercept"], m["declaration"]}, nil))
	}
	if !bytes.Equal(models[0], models[1]) {
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
		job := jobOf(t, small(t, append([]string{"features.precondition={users: 200, damping: 0.05}", "norm_bound=1", "schedule.rounds.max=3"}, sets...)...))
		r, err := Quickstart(t.Context(), QuickstartConfig{Job: job, Dir: t.TempDir(), Seed: 3, Seeded: true, Logger: discard()})
		if err != nil {
			t.Fatalf("%v: %v", sets, err)
		}
		if p := job.Plan; !p.Phases[0].Moments || r.Events != 600 || r.Accepted != 600 || r.Rounds != p.Rounds() || r.ModelVersion != r.Rounds || r.Epsilon > job.Problem.Epsilon {
			t.Errorf("%v: %d events, %d accepted, %d rounds, version %d of %+v, epsilon %v", sets, r.Events, r.Accepted, r.Rounds, r.ModelVersion, p.Phases, r.Epsilon)
		}
	}
	job := jobOf(t, small(t, "features.precondition={users: 200, damping: 0.05}", "norm_bound=1", "schedule.continuous=epochs", "schedule.rounds.max=4"))
	body, err := job.Wire()
	if err != nil || !body.Plan.Endless || len(body.Plan.Phases) != 2 {
		t.Fatalf("%v, %v", body.GetPlan().GetPhases(), err)
	}
	if a, err := BuildAlgorithm(body); err != nil || a.Done() {
		t.Error(err)
	}
}

// stopping takes the commits of some rounds and no more.
type stopping struct {
	*state.Memory
	rounds uint64
}

func (s stopping) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry) error {
	if next.Cursor.Round > s.rounds {
		return errEnough
	}
	return s.Memory.Commit(ctx, next, entries)
}

// TestSnapshotAroundMoments: before, at and after the moments there is a model, and it scores a raw event as the learner's own
// parameters do the event that a device makes of it, one that is scaled down too.
func TestSnapshotAroundMoments(t *testing.T) {
	for _, file := range []string{labelled, numeric, classes} {
		file = strings.Replace(file, "unknown: drop}", "unknown: drop}\n  precondition: {users: 200, damping: 0.2}\nnorm_bound: 1.1", 1)
		file = strings.Replace(file, "max: 2}", "max: 3}", 1)
		for rounds := range uint64(4) {
			store := state.NewMemory()
			spec := parsed(t, file)
			learned(t, jobOf(t, spec), stopping{store, rounds})
			view, err := Look(t.Context(), store)
			if err != nil {
				t.Fatal(err)
			}
			scales := learner.ScalesOf(view.Algorithm)
			if view.Checkpoint.Cursor.Round != rounds || (scales != nil) != (rounds > 0) {
				t.Fatalf("round %d of %d, scales %v", view.Checkpoint.Cursor.Round, rounds, scales)
			}
			snapshot, err := view.Snapshot()
			if err != nil {
				t.Fatalf("after %d rounds: %v", rounds, err)
			}
			p, err := model.NewPredictor(snapshot, "")
			if err != nil {
				t.Fatal(err)
			}
			if scales == nil {
				scales = []float64{1, 1, 1}
			}
			features, err := spec.Compile()
			if err != nil {
				t.Fatal(err)
			}
			if rounds == 3 && convex.Norm(view.Algorithm.Model()) == 0 {
				t.Fatal("the model is zero: the test would see nothing")
			}
			for _, row := range [][]string{{"100", "a<b"}, {"50", "x"}, {"0", "c&d"}} {
				var raw, scaled, mapped convex.Example
				at := task.Row{Fields: row, Label: map[bool]string{true: "7", false: "<=50K"}[spec.Model.Loss == "squared"]}
				if err := features.Map(at, &raw); err != nil {
					t.Fatal(err)
				}
				spec.Preconditioner().Rescale(&scaled, raw, scales)
				if err := p.Features.Map(at, &mapped); err != nil {
					t.Fatal(err)
				}
				own := features.Scores(nil, view.Algorithm.Model(), scaled)
				got := p.Features.Scores(nil, p.Theta, mapped)
				for k := range own {
					if math.Abs(own[k]-got[k]) > 1e-12*(1+math.Abs(own[k])) {
						t.Errorf("%s after %d rounds, %v: scores %v, the learner's %v", spec.Model.Loss, rounds, row, got, own)
					}
				}
			}
		}
	}
}

// TestStoredPlanOfMoments: the algorithm is built from a plan that says the same as the messages do.
func TestStoredPlanOfMoments(t *testing.T) {
	job := jobOf(t, small(t, "features.precondition={users: 200, damping: 0.05, norm: 2}", "norm_bound=1", "schedule.rounds.max=3"))
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	first := body.Plan.Phases[0]
	if first.Statistic != wire.Statistic_STATISTIC_SECOND_MOMENTS || first.Mechanism.Dim != 8 || first.Mechanism.ClipNorm != 2 || first.Rounds != 1 {
		t.Errorf("first phase %v", first)
	}
	if _, err := BuildAlgorithm(body); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func(*wire.Plan){
		"second moments": func(p *wire.Plan) { p.Phases[0].Statistic = 0 },
		"dim":            func(p *wire.Plan) { p.Phases[0].Mechanism.Dim = 9 },
		"clip_norm":      func(p *wire.Plan) { p.Phases[0].Mechanism.ClipNorm = 1 },
		"phases":         func(p *wire.Plan) { p.Phases = slices.Delete(p.Phases, 0, 1) },
	} {
		spoiled, err := job.Wire()
		if err != nil {
			t.Fatal(err)
		}
		spoil(spoiled.Plan)
		if _, err := BuildAlgorithm(spoiled); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error about %s", err, want)
		}
	}
	data, err := stream.Marshal(&wire.Phase{Statistic: first.Statistic})
	if err != nil || len(data) != 2 {
		t.Errorf("a statistic takes %d bytes, %v", len(data), err)
	}
}
