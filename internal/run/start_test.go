package run_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// warm writes a task file beside the snapshot of another task of the same features, whose weights are given in units
// of the data.
func warm(t *testing.T, file string, weights ...float64) (path string, snapshot []byte) {
	t.Helper()
	other := runtest.Parsed(t, file)
	other.Name, other.Privacy.Epsilon = "other", 2
	features, err := other.Compile()
	if err != nil {
		t.Fatal(err)
	}
	declaration, err := other.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	d := len(features.Coordinates())
	s := model.Snapshot{FormatVersion: model.Version, Task: "other", ModelVersion: 7, Loss: other.Model.Loss,
		Features: features.Coordinates(), Classes: features.Classes(),
		Declaration: declaration, Weights: model.Rows{weights[:d]}, Intercept: model.Constants{weights[d]}, Memory: 1200.5,
		Privacy: model.Statement{Epsilon: 2, Delta: 1e-6, HonestFraction: accounting.One, Users: 5000}}
	if snapshot, err = json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path = filepath.Join(dir, "task.yaml")
	for name, data := range map[string][]byte{path: []byte(file), filepath.Join(dir, "model.json"): snapshot} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path, snapshot
}

// A warm start is in the plan, for everybody to see, and is what learning begins with: proved plans at once, practical
// ones in whatever coordinates the first release leads to.
func TestWarmStart(t *testing.T) {
	for name, sets := range map[string][]string{
		"proved": {"schedule.plan=proved"}, "restarts": {"schedule.algorithm=pagd-restarts", "model.ridge=0.1",
			"schedule.rounds.max=20"}, "practical": {"schedule.plan=practical"},
	} {
		t.Run(name, func(t *testing.T) {
			path, snapshot := warm(t, runtest.Words, 0.01, 0.5, -0.5, 0.25)
			spec, err := task.Load(path, append(sets, "model.start=model.json"))
			if err != nil {
				t.Fatal(err)
			}
			job := runtest.Job(t, spec)
			if hash := sha256.Sum256(snapshot); !bytes.Equal(job.Plan.StartHash, hash[:]) || job.Start.Privacy.Epsilon != 2 {
				t.Errorf("start %x with epsilon %v, want %x with 2", job.Plan.StartHash, job.Start.Privacy.Epsilon, hash)
			}
			if p := job.Plan.StartPrivacy; p.GetEpsilon() != 2 || p.GetDelta() != job.Start.Privacy.Delta ||
				p.GetTask() != job.Start.Task || p.GetUsers() != 1200 {
				t.Errorf("the plan says of the start's privacy %v", p)
			}
			body, err := job.Wire()
			if err != nil {
				t.Fatal(err)
			}
			body.Name = spec.Name
			if err := manifest.CheckTask(body); err != nil {
				t.Error(err)
			}
			a, err := learner.New(job.Plan)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Model(); !slices.Equal(got, job.Plan.Start) || convex.Norm(got) < 0.1 {
				t.Errorf("the model before the first round is %v, want the start %v", got, job.Plan.Start)
			}
			if point := a.Query().Point; point != nil && !slices.Equal(point, job.Plan.Start) {
				t.Errorf("the first point is %v, want the start", point)
			}
			body.Plan.Start = body.Plan.Start[1:]
			if manifest.CheckTask(body) == nil {
				t.Error("a start of another dimension passes")
			}
		})
	}
}

// Where users are few, a start at the optimum beats the one that a task has by itself.
func TestWarmStartHelpsFewUsers(t *testing.T) {
	plain := runtest.Parsed(t, runtest.Words)
	job := runtest.Job(t, plain)
	schema, err := sim.NewSchema(plain, 1)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := schema.Rows(job.Features, 4000, 2)
	if err != nil {
		t.Fatal(err)
	}
	best, err := sim.Converge(t.Context(), sim.ConvergeConfig{Loss: job.Loss, Set: convex.Ball{R: 50},
		Dim: job.Problem.Dim, Examples: rows})
	if err != nil {
		t.Fatal(err)
	}
	weights, intercept, err := job.Features.Undo(best)
	if err != nil {
		t.Fatal(err)
	}
	path, _ := warm(t, runtest.Words, append(weights, intercept)...)
	loss := func(sets ...string) (mean float64) {
		spec, err := task.Load(path, append(sets, "validation.off=true"))
		if err != nil {
			t.Fatal(err)
		}
		job := runtest.Job(t, spec)
		for seed := range uint64(4) {
			out, err := sim.Run(t.Context(), sim.Config{Plan: job.Plan, Loss: job.Loss, Examples: rows, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			mean += sim.MeanLoss(job.Loss, out.Model, rows) / 4
		}
		return mean
	}
	if cold, started := loss(), loss("model.start=model.json"); started > cold-0.01 {
		t.Errorf("mean loss %v from the optimum of 4,000, %v from the start of a task of 600", started, cold)
	}
}

func TestStartsThatAreRefused(t *testing.T) {
	path, _ := warm(t, runtest.Words, 1, 2, 3, 4)
	declared, err := task.Load(path, []string{"model.start=model.json"})
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := declared.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	hashed, err := task.ParseCanonical(canonical)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.NewJob(hashed); err == nil || !strings.Contains(err.Error(), "model.start") {
		t.Errorf("a hash without its snapshot: %v", err)
	}
	for set, want := range map[string]string{
		"model.start=task.yaml":     "model.start: want a snapshot",
		"features.columns.0.max=50": "features.columns[0].max",
	} {
		spec, err := task.Load(path, []string{"model.start=model.json", set})
		if err == nil {
			_, err = run.NewJob(spec)
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", set, err)
		}
	}
}
