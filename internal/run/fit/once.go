package fit

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// once charges the fit, computes its release and commits it: one ledger entry, reserved before the first noise is
// drawn, and settled in the same write as the release. If a process dies before that write, its folder shows nothing
// that depends on the rows, so that the same fit begins again under the same charge. If it dies while writing, the
// fit is over: parts of its release may be on the disk, and another one would be a second release.
func (c Config) once(ctx context.Context, store state.Store, pinned *pin, view *statedir.View) error {
	identity, _, err := seal.LoadOrCreateIdentity(filepath.Join(c.StateDir, "learner.key"))
	if err != nil {
		return err
	}
	var at state.Checkpoint
	if view == nil {
		if at, err = c.reserve(ctx, store, identity); err != nil {
			return err
		}
	} else {
		at = view.Checkpoint
		if _, _, err := runlearner.TaskOf(ctx, store, c.Spec); err != nil {
			return &TaskError{err}
		}
		if !same(view.Task.Plan, c.Once.Wire) {
			return &FolderError{
				"this folder's fit was planned by another version of the program, and has released nothing: take an empty one"}
		}
	}
	c.Begun(view != nil)
	if pinned.Writing {
		if err := giveUp(ctx, store, identity, at); err != nil {
			return err
		}
		return lost(at)
	}
	release, err := c.Once.Fit(ctx)
	if err != nil {
		return err
	}
	pinned.Writing = true
	if err := pinned.write(c.StateDir); err != nil {
		return err
	}
	return settle(context.WithoutCancel(ctx), store, identity, at, release)
}

func same(a, b *wire.Plan) bool {
	one, err := stream.Marshal(a)
	other, fails := stream.Marshal(b)
	return err == nil && fails == nil && bytes.Equal(one, other)
}

// reserve commits the task, its public start, and the charge.
func (c Config) reserve(ctx context.Context, store state.Store, identity *seal.Identity) (state.Checkpoint, error) {
	declaration, err := c.Spec.Canonical()
	if err != nil {
		return state.Checkpoint{}, err
	}
	task := &wire.Task{Version: stream.Version, Name: c.Spec.Name,
		Declaration: declaration, Plan: c.Once.Wire, Public: c.Spec.Features.Public.Data(), Suite: wire.Suite_SUITE_NONE,
		LearnerKey: identity.Public(), StageKey: identity.Public(), Life: make([]byte, stream.LifeSize)}
	if _, err := rand.Read(task.Life); err != nil {
		return state.Checkpoint{}, err
	}
	body, err := stream.Marshal(task)
	if err != nil {
		return state.Checkpoint{}, err
	}
	hash := stream.HashOf(body)
	at := state.Checkpoint{Cursor: state.Cursor{TaskHash: state.Hash(hash)}}
	if at.Task, err = identity.Sign(task); err != nil {
		return at, &TaskError{err}
	}
	if at.NextRound, err = identity.Sign(manifest.RoundOf(hash, 1, 1, nil, nil)); err != nil {
		return at, err
	}
	if at.Algorithm, err = c.Once.Start.Bytes(); err != nil {
		return at, err
	}
	entry, err := at.Ledger.Reserve(c.entry(at), state.Cost{Epsilon: c.Once.Wire.EpsilonBudget,
		Delta: c.Spec.Privacy.Delta})
	if err != nil {
		return at, err
	}
	return at, store.Commit(ctx, at, []state.Entry{entry})
}

// entry returns the fit's ledger entry, for one release.
func (c Config) entry(at state.Checkpoint) state.Entry {
	return state.Entry{Round: 1, Users: 1, Epsilon: c.Once.Wire.Epsilon, Delta: c.Once.Wire.Delta,
		TaskHash: at.Cursor.TaskHash}
}

// settle commits the release and its cost.
func settle(ctx context.Context, store state.Store, identity *seal.Identity, at state.Checkpoint,
	release statedir.Release) error {
	open := at.Ledger.Open
	published, err := release.Bytes()
	if err != nil {
		return err
	}
	next := at.Clone()
	next.Algorithm, next.NextRound = published, nil
	next.Cursor.Round, next.Cursor.BatchHash = 1, state.Hash(sha256.Sum256(published))
	if next.End, err = end(identity, at, 1, service.ReasonDone); err != nil {
		return err
	}
	entry, err := next.Ledger.Spend(state.Entry{Round: 1, Attempt: 1, Users: open.Users, Epsilon: open.Epsilon,
		Delta: open.Delta, TaskHash: open.TaskHash,
		BatchHash: next.Cursor.BatchHash})
	if err != nil {
		return err
	}
	return store.Commit(ctx, next, []state.Entry{entry})
}

// giveUp ends a fit without a release. It stays charged.
func giveUp(ctx context.Context, store state.Store, identity *seal.Identity, at state.Checkpoint) error {
	next := at.Clone()
	entry, err := next.Ledger.Void(1, 0, state.Hash{})
	if err != nil {
		return err
	}
	next.NextRound = nil
	if next.End, err = end(identity, at, 0, service.ReasonGivenUp); err != nil {
		return err
	}
	return store.Commit(ctx, next, []state.Entry{entry})
}

func end(identity *seal.Identity, at state.Checkpoint, last uint64, reason string) ([]byte, error) {
	signed, err := identity.Sign(&wire.End{Version: stream.Version, TaskHash: bytes.Clone(at.Cursor.TaskHash[:]),
		LastRound: last, Reason: reason})
	if err != nil {
		return nil, fmt.Errorf("sign the end: %w", err)
	}
	return signed, nil
}
