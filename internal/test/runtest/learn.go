package runtest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// Learned runs a job in memory on batches of zero vectors, which need no users, until the task or the store
// has enough.
func Learned(t testing.TB, job run.Job, store state.Store) {
	t.Helper()
	broker, err := memory.New(memory.Config{MaxPayload: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	LearnedOn(t, broker, stream.Task(job.Spec.Name), body, Identity(t), Identity(t), store)
}

// LearnedOn works like Learned, on any broker, for a task that is begun or goes on.
func LearnedOn(t testing.TB, broker stream.Records, name stream.Task, body *wire.Task, learner, mixer *seal.Identity,
	store state.Store) {
	t.Helper()
	ctx := t.Context()
	answer := Stage(func(r stream.Round) {
		m, err := broker.Get(ctx, name.Round(r))
		if err != nil {
			t.Error(err)
			return
		}
		var round wire.Round
		canonical, err := seal.Verify(m.Data, learner.Public(), &round)
		if err != nil {
			t.Error(err)
			return
		}
		batch, err := mixer.Sign(ZeroBatch(t, body.Plan, &round, stream.HashOf(canonical)))
		if err == nil {
			_, err = broker.PutOnce(ctx, name.Batch(r), batch)
		}
		if err != nil {
			t.Error(err)
		}
	})
	s, err := service.New(service.Config{Task: name, Records: broker, Store: store, Identity: learner,
		StageKey: mixer.Public(),
		Prepare:  func() (*wire.Task, error) { return body, nil }, Observer: answer,
		Snapshots: service.Retention{Rounds: 1, Newest: 100}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx); err != nil && !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
}

// Stage returns an observer of a learner that releases a round when it is announced, as a stage does.
func Stage(answer func(round stream.Round)) service.Observer {
	return service.Observer{Announced: func(round, _ uint64) { answer(stream.Round(round)) }}
}

// ZeroBatch returns the batch of a full cohort of zero gradients in a round of a plan, with the noise close
// to its mean.
func ZeroBatch(t testing.TB, plan *wire.Plan, r *wire.Round, hash stream.Hash) *wire.Batch {
	t.Helper()
	at, _ := manifest.PhaseOf(plan, r.Step)
	params, err := manifest.Params(at.Phase.GetMechanism())
	if err != nil {
		t.Fatal(err)
	}
	users, trials := at.Cohort, at.Cohort*uint64(params.Trials)
	if r.Cohort > 0 {
		users, trials = r.Cohort, params.NoiseTrials(r.Cohort, at.Planned)
	}
	totals := make([]uint64, params.Dim)
	for i := range totals {
		totals[i] = users*uint64(params.Levels)/2 + trials/2 + uint64(i)*users/20
	}
	return &wire.Batch{Version: stream.Version, TaskHash: r.TaskHash, Round: r.Round, Attempt: 1, Users: users,
		NoiseTrials: trials, Totals: totals, Cutoff: users, ManifestHash: bytes.Clone(hash[:]),
		Rejects: []*wire.Reject{{Reason: "range", Count: 1}}}
}

// errEnough is returned by UpTo for commits after its round; it ends a task.
var errEnough = errors.New("enough rounds are committed")

// UpTo refuses the commits after a round.
type UpTo struct {
	state.Store
	Round uint64
}

// Commit implements state.Store.
func (s UpTo) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry, kept ...state.Kept) error {
	if next.Cursor.Round > s.Round {
		return errEnough
	}
	return s.Store.Commit(ctx, next, entries, kept...)
}
