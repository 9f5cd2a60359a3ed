package statedir

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
)

// withPublic returns a task of numbers whose coordinates come from a public model, and which learns what its offset
// leaves.
func withPublic(t *testing.T) *task.Spec {
	t.Helper()
	spec := *runtest.Parsed(t, runtest.Numbers)
	spec.Label.Min, spec.Label.Max, spec.Label.Offset = -100, 100, true
	old := task.Tree{Feature: []int{0}, Threshold: []float32{50}, Left: []int{-1}, Right: []int{-2},
		Leaf: []float32{200, 700}}
	var err error
	if spec.Features.Public, err = task.NewPublic(&task.PublicModel{Version: 1, Sample: task.PublicSample{Rows: 100,
		Leaf: 40}, Inputs: spec.Features.PublicInputs(),
		Blocks: []task.PublicBlock{{Name: "score", Outputs: 1, Range: 1, Weights: task.NewMatrix([][]float64{{1, 0.5, -0.5}},
			8)}},
		Offset: &task.PublicBlock{Outputs: 1, Trees: []task.Tree{old}}}); err != nil {
		t.Fatal(err)
	}
	for i := range spec.Features.Columns {
		spec.Features.Columns[i].Hidden = true
	}
	return &spec
}

// TestPublicModelTravels: the state folder has all that a release needs, and a released model all that scoring needs:
// the public prediction and what was learned beside it.
func TestPublicModelTravels(t *testing.T) {
	spec := withPublic(t)
	_, view := ended(t, spec)
	if !bytes.Equal(view.Task.Public, spec.Features.Public.Data()) || len(view.Task.Public) == 0 {
		t.Fatalf("the stored task has a public model of %d bytes", len(view.Task.Public))
	}
	s, err := view.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	numpy, err := s.NumPy()
	if err != nil {
		t.Fatal(err)
	}
	document, err := s.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"json": document, "npy": numpy} {
		read, err := model.Parse(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p, err := model.NewPredictor(read, "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for age, public := range map[string]float64{"20": 200, "80": 700} {
			rows := func(yield func(task.Row, error) bool) {
				yield(task.Row{Line: 1, Fields: []string{age, "a<b"}}, nil)
			}
			var out strings.Builder
			table, err := model.NewTable(&out, model.JSONL, p)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Score(rows, table, model.ScoreOptions{}); err != nil {
				t.Fatal(err)
			}
			var got struct{ Prediction float64 }
			if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Prediction-public) > 100 {
				t.Errorf("%s: %v at age %s, want %v and what was learned", name, got.Prediction, age, public)
			}
		}
		read.PublicModel = append(bytes.Clone(read.PublicModel), ' ')
		if _, err := model.NewPredictor(read, ""); err == nil || !strings.Contains(err.Error(), "features.public") {
			t.Errorf("%s: another public model: %v", name, err)
		}
	}
}

// TestDevicesCheckThePublicModel: a device agrees to a Task with the public model that the declaration names, and to no
// other: none, one with another byte, and one that is declared and does not fit.
func TestDevicesCheckThePublicModel(t *testing.T) {
	job := runtest.Job(t, withPublic(t))
	for name, c := range map[string]struct {
		spoil func(file []byte) []byte
		want  string
	}{
		"as declared": {func(file []byte) []byte { return file }, ""},
		"none":        {func([]byte) []byte { return nil }, "features.public"},
		"another":     {func(file []byte) []byte { return append(bytes.Clone(file), '\n') }, "features.public"},
		"too large": {func(file []byte) []byte { return append(bytes.Clone(file), make([]byte, stream.MaxPublic)...) },
			"public"},
	} {
		body, err := job.Wire()
		if err != nil {
			t.Fatal(err)
		}
		body.Public = c.spoil(body.Public)
		body.Version, body.Name, body.Life = stream.Version, job.Spec.Name, make([]byte, stream.LifeSize)
		body.LearnerKey, body.StageKey = runtest.Identity(t).Public(), runtest.Identity(t).Public()
		data, err := stream.Marshal(body)
		if err == nil {
			_, err = consent.Policy{}.CheckTask(body, stream.HashOf(data))
		} else if c.want == "public" {
			_, err = consent.Policy{}.CheckTask(body, stream.Hash{})
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
