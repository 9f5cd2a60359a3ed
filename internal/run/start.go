package run

import (
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// A start is the snapshot that a task begins with.
type start struct {
	model.Snapshot
	Hash  []byte    // SHA-256 of its file
	Point []float64 // of the task's set: the projection of the model
}

// startOf reads the declared start; nil where none is declared.
func startOf(spec *task.Spec) (*start, error) {
	declared := spec.Model.Start
	if declared == nil {
		return nil, nil
	}
	hash, known := declared.Hash()
	if !known || declared.Data() == nil {
		return nil, errors.New("model.start: want the file of the snapshot, its hash alone does not say where to begin")
	}
	snapshot, err := model.Parse(declared.Data())
	if err != nil {
		return nil, fmt.Errorf("model.start: want a snapshot in JSON or .npz: %w", err)
	}
	point, err := snapshot.Start(spec)
	if err != nil {
		return nil, err
	}
	set, err := spec.Set(len(point))
	if err != nil {
		return nil, err
	}
	if _, err := stream.ParseTask(snapshot.Task); err != nil {
		return nil, fmt.Errorf("model.start: %w", err)
	}
	out := &start{Snapshot: snapshot, Hash: hash[:], Point: make([]float64, len(point))}
	set.Project(out.Point, point)
	return out, nil
}

// statement returns the start's privacy as the plan states it; nil without a start.
func (s *start) statement() *wire.StartPrivacy {
	if s == nil {
		return nil
	}
	out := &wire.StartPrivacy{Task: s.Task, Users: s.Sample()}
	if s.Privacy.Epsilon > 0 && s.Privacy.Delta >= 0 && !s.Privacy.NoiseKnown && !s.Privacy.Public {
		out.Epsilon, out.Delta = s.Privacy.Epsilon, s.Privacy.Delta
	}
	if s.Privacy.Protects == "user" {
		out.Unit = wire.Unit_UNIT_USER
	}
	return out
}

// in returns the problem with the start.
func (s *start) in(p planning.Problem) planning.Problem {
	p.Start, p.StartHash = s.Point, s.Hash
	return p
}
