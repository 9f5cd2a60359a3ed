// Package statedir reads a learner's state folder: the committed model, status and ledger, also while a learner holds
// the folder: then it asks the learner over the control socket. All its answers are released and public, and it changes
// nothing.
package statedir

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A View is a consistent look at committed state.
type View struct {
	Checkpoint state.Checkpoint
	Task       *wire.Task
	Spec       *task.Spec
	Algorithm  learner.Algorithm // nil: a method of one process, see Release
	Release    *Release          // of such a method; nil: there are rounds
	noiseKnown bool
	last       service.Record // of the newest round; zero where none is kept
}

// Model returns the model that may be released now.
func (v View) Model() []float64 {
	if v.Release != nil {
		return slices.Clone(v.Release.Model)
	}
	return v.Algorithm.Model()
}

// Look reads what is committed, and not the ledger's entries: a checkpoint has their sums. It may run beside the
// learner.
func Look(ctx context.Context, store state.Store) (View, error) {
	at, err := store.Load(ctx)
	if err != nil {
		return View{}, err
	}
	v, err := Of(at)
	_, v.noiseKnown = store.(Seeded)
	if records, bad := service.ReadRecords(ctx, store, 1); bad == nil && len(records) == 1 &&
		records[0].Round <= at.Cursor.Round {
		v.last = records[0] // one that is damaged shows in the history
	}
	return v, err
}

// A Seeded store belongs to a task with noise from a seed, see model.Statement.NoiseKnown: its content has no privacy
// guarantee.
type Seeded struct{ state.Store }

// Of returns the view of a checkpoint.
func Of(at state.Checkpoint) (View, error) {
	signed := &wire.Signed{}
	if err := stream.Unmarshal(at.Task, signed); err != nil {
		return View{}, fmt.Errorf("stored task: %w", err)
	}
	if stream.HashOf(signed.Body) != stream.Hash(at.Cursor.TaskHash) {
		return View{}, fmt.Errorf("stored task: its hash is not the %v of the cursor: the state folder is damaged",
			at.Cursor.TaskHash)
	}
	body := &wire.Task{}
	if err := stream.Unmarshal(signed.Body, body); err != nil {
		return View{}, fmt.Errorf("stored task: %w", err)
	}
	spec, err := task.ParseCanonical(body.Declaration)
	if err == nil {
		spec, err = spec.WithPublic(body.Public)
	}
	if err != nil {
		return View{}, fmt.Errorf("stored task: declaration: %w", err)
	}
	if schedule.Curated(body.GetPlan().GetAlgorithm()) {
		released, err := parseRelease(at.Algorithm, body.Plan)
		return View{Checkpoint: at, Task: body, Spec: spec, Release: released}, err
	}
	alg, err := learner.Resume(body.Plan, at.Algorithm)
	if err != nil {
		return View{}, err
	}
	return View{Checkpoint: at, Task: body, Spec: spec, Algorithm: alg}, nil
}

// Snapshot returns the model that may be released now.
func (v View) Snapshot() (model.Snapshot, error) { return v.snapshot(v.Model()) }

// snapshot is Snapshot with other parameters than the current ones.
func (v View) snapshot(theta []float64) (model.Snapshot, error) {
	status, err := v.Status()
	if err != nil {
		return model.Snapshot{}, err
	}
	trust, err := manifest.Trust(v.Task.Plan.Trust)
	if err != nil {
		return model.Snapshot{}, err
	}
	honest, err := manifest.HonestFraction(v.Task.Plan)
	if err != nil {
		return model.Snapshot{}, fmt.Errorf("stored %w", err)
	}
	s, err := model.Of(v.Spec, theta)
	if err != nil {
		return model.Snapshot{}, fmt.Errorf("round %d: %w", status.Round, err)
	}
	if v.last.RolledBack() && v.last.Round == status.Round {
		s.RolledBackTo = v.last.Rollback.To
	}
	s.Round, s.ModelVersion, s.Ended, s.Probabilities = status.Round, status.Steps+v.last.Rollbacks, status.Ended,
		model.ProbabilitiesOf(v.Spec, v.Task.Plan.Clips)
	s.Privacy = model.Statement{Kind: status.Kind, Trust: trust.String(), Unit: status.Unit,
		Epsilon: status.EpsilonSpent, Delta: status.DeltaSpent, HonestFraction: honest, Users: status.Users}
	if status.Tracking != nil {
		s.Memory = status.Tracking.Memory
	}
	if v.noiseKnown {
		s.Privacy = s.Privacy.Known()
	}
	s.Privacy = s.Privacy.From(v.Task.Plan)
	s.Task, s.TaskHash, s.Declaration = v.Task.Name, v.Checkpoint.Cursor.TaskHash, v.Task.Declaration
	return s, nil
}

// Spread returns about the standard deviation of each feature, in the units of the data, as the first cohorts of a
// practical plan released it, noise included. It returns nil in other plans, before that release, and if all features
// share one scale.
func (v View) Spread(features []task.Coordinate) []float64 {
	l := learner.LearnedOf(v.Algorithm)
	if l == nil || len(l.Frame.Scale) != len(features) || slices.Min(l.Frame.Scale) == slices.Max(l.Frame.Scale) {
		return nil
	}
	out := make([]float64, len(features))
	for j, c := range features {
		out[j] = math.Abs(1 / (l.Frame.Scale[j] * c.Factor))
	}
	return out
}

// A Status describes how far a task is and what it has spent.
type Status struct {
	Task          string          `json:"task"`
	Round         uint64          `json:"round"`  // last committed
	Rounds        uint64          `json:"rounds"` // planned, not counting void ones; 0 for a task without end
	Steps         uint64          `json:"steps"`  // rounds that were not void
	Users         uint64          `json:"users"`  // counted so far; wording.Kind.Counted says what they are
	VoidsInARow   uint64          `json:"void_rounds_in_a_row"`
	EpsilonSpent  float64         `json:"epsilon_spent"`
	DeltaSpent    float64         `json:"delta_spent"`
	EpsilonBudget float64         `json:"epsilon_budget"`
	Ended         bool            `json:"ended"`
	EndReason     string          `json:"end_reason,omitempty"` // as the signed End has it
	LastBatch     json.RawMessage `json:"last_batch"`           // null before the first
	// Validation holds the results of progressive validation; null if it is off, or before the first round with
	// scores.
	Validation *method.Validation `json:"validation"`
	// RMSE is the root mean squared error of Validation in the units of the label; absent for losses other than the
	// squared one.
	RMSE *method.Scores `json:"rmse,omitempty"`
	// Tracking describes how the model follows a stream without an end; absent for a task that ends, or before the
	// first round of gradients.
	Tracking *method.Tracking `json:"tracking,omitempty"`
	// Kept is the newest model that is kept, absent where none is; Rollback is the last rollback, absent where there was
	// none.
	Kept     *service.Moment   `json:"kept,omitempty"`
	Rollback *service.Rollback `json:"rollback,omitempty"`
	// Baseline scores the best constant; null if the plan releases nothing of the labels, or has not yet.
	Baseline *Baseline `json:"baseline"`
	// Learned holds what the first cohorts released; null in a proved plan, or before the rounds of gradients.
	Learned *practical.Summary `json:"learned"`
	// Release holds the release of a method of one process; absent if there are rounds.
	Release *Release `json:"release,omitempty"`
	// Start is the model that learning began with; absent without one. A snapshot adds its epsilon and delta to those
	// spent.
	Start *model.Origin `json:"start,omitempty"`
	Adversaries
}

// A Baseline scores the best constant prediction, as the first cohort of a practical plan released it: its figures
// are approximate, for noise is in them.
type Baseline struct {
	Class    string   `json:"class,omitempty"`    // the majority
	Accuracy *float64 `json:"accuracy,omitempty"` // of it
	Value    *float64 `json:"value,omitempty"`    // the mean of the labels in their units; of scale log, of logarithms
	Offset   bool     `json:"offset,omitempty"`   // Value is of what the public prediction leaves
	Error    *float64 `json:"error,omitempty"`    // of it: root of the mean square; absent of scale log
	Loss     *float64 `json:"loss,omitempty"`     // like Validation's; absent if it does not follow from released data
}

// LabelUnit returns, in the units of the data, the length of a step of 1 in the labels that the squared loss sees; 0
// for other losses, and for labels of scale log, of which no two steps are as long.
func LabelUnit(spec *task.Spec) (float64, error) {
	if !convex.TraitsOf(spec.Model.Loss).HalfSquare || spec.Label.Scale == task.Log {
		return 0, nil
	}
	features, err := spec.Compile()
	if err != nil {
		return 0, err
	}
	return math.Abs(features.InUnits(1) - features.InUnits(0)), nil
}

// rmse returns the root mean squared error of the scores; nil without scores, and where there is no LabelUnit.
func (v View) rmse(of *method.Validation) (*method.Scores, error) {
	unit, err := LabelUnit(v.Spec)
	if of == nil || unit == 0 || err != nil {
		return nil, err
	}
	out := of.Loss.RootMeanSquare(unit)
	return &out, nil
}

func (v View) baseline() (*Baseline, error) {
	b := learner.BaselineOf(v.Algorithm)
	if b == nil {
		return nil, nil
	}
	features, err := v.Spec.Compile()
	if err != nil {
		return nil, err
	}
	out := &Baseline{Accuracy: b.Accuracy, Loss: b.Loss}
	if b.Shares != nil {
		out.Class = features.Classes()[slices.Index(b.Shares, slices.Max(b.Shares))]
		return out, nil
	}
	value := features.InUnits(b.Mean)
	out.Value, out.Offset = &value, v.Spec.Label.Offset
	if v.Spec.Label.Scale != task.Log {
		deviation := math.Abs(features.InUnits(b.Mean+b.Deviation) - value)
		out.Error = &deviation
	}
	return out, nil
}

// Status sums up a view.
func (v View) Status() (s Status, err error) {
	ledger := &v.Checkpoint.Ledger
	spent := ledger.Spent()
	s = Status{Task: v.Task.Name, Round: v.Checkpoint.Cursor.Round,
		Rounds: service.Planned(v.Task.Plan), EpsilonSpent: spent.Epsilon, DeltaSpent: spent.Delta,
		EpsilonBudget: v.Task.Plan.EpsilonBudget, Ended: v.Checkpoint.Ended(), LastBatch: v.Checkpoint.LastBatch,
		Validation: learner.ValidationOf(v.Algorithm), Tracking: service.TrackingOf(v.Task.Plan, v.Checkpoint, v.Algorithm),
		Learned: learner.LearnedOf(v.Algorithm).Summary(), Release: v.Release.public()}
	if s.Adversaries, err = v.adversaries(spent.Epsilon); err != nil {
		return Status{}, err
	}
	if len(s.LastBatch) == 0 {
		s.LastBatch = json.RawMessage("null")
	}
	if s.EndReason, err = v.endReason(); err != nil {
		return Status{}, err
	}
	if s.Baseline, err = v.baseline(); err != nil {
		return Status{}, err
	}
	if s.RMSE, err = v.rmse(s.Validation); err != nil {
		return Status{}, err
	}
	own := model.Statement{Kind: s.Kind, NoiseKnown: v.noiseKnown, Epsilon: spent.Epsilon, Delta: spent.Delta}
	s.Start = own.From(v.Task.Plan).Start
	s.Kept, s.Rollback = v.last.Kept, v.last.Rollback
	s.Steps, s.Users, s.VoidsInARow = ledger.Steps, ledger.Users(), ledger.InARow
	return s, nil
}

// endReason returns the reason why the task ended, empty while it goes on.
func (v View) endReason() (string, error) {
	if !v.Checkpoint.Ended() {
		return "", nil
	}
	signed, end := &wire.Signed{}, &wire.End{}
	if err := stream.Unmarshal(v.Checkpoint.End, signed); err != nil {
		return "", fmt.Errorf("stored end: %w", err)
	}
	if err := stream.Unmarshal(signed.Body, end); err != nil {
		return "", fmt.Errorf("stored end: %w", err)
	}
	return end.Reason, nil
}
