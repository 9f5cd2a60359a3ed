package helper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// join joins an attempt with a verified Open, unless the attempt has a Join, its round a Share, or the folder a release
// of the round. x has no hash of a Join.
func (f *follower) join(ctx context.Context, open *wire.Open, x split.Attempt) error {
	at := place{x.Round, x.Number}
	standing, err := f.broker.get(ctx, f.Task.Join(stream.Round(x.Round), stream.Attempt(x.Number)))
	if err != nil {
		return err
	}
	if standing != nil {
		f.seen = at
		return f.joined(ctx, *standing)
	}
	if stands, err := f.lookAtShare(ctx, stream.Round(x.Round)); err != nil || stands {
		if err == nil {
			f.seen = at
		}
		return err
	}
	f.mu.Lock()
	signed, refusal, ok := f.desk.Join(x)
	if signed != nil {
		f.share = signed
	}
	f.mu.Unlock()
	switch {
	case signed != nil:
		f.seen = at
		return f.putShare(ctx)
	case refusal != nil:
		return f.refuse(ctx, at, *refusal)
	case !ok:
		f.seen = at
		return nil
	}
	if err := f.list(ctx); err != nil {
		return err
	}
	a, err := f.newAttempt(open, x, *f.round, time.Now())
	f.outcome(ctx, "open", err)
	if err != nil {
		f.seen = at // it has the keys that it has
		return nil
	}
	if !f.hold(a) {
		a.erase()
		return errLater
	}
	f.seen, f.pending = at, a
	return f.putJoin(ctx)
}

// list lists the task in the folder, before its first Join.
func (f *follower) list(ctx context.Context) error {
	err := f.Folder.Join(f.hash, f.Instance)
	if errors.Is(err, folder.ErrOlder) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stop(fmt.Errorf("helper: %w", err))
		return err
	}
	f.outcome(ctx, callFolder, err)
	return err
}

// joined takes a Join on the broker that this process has not put. If an earlier process of this folder put it, that
// attempt is gone, and the leader learns this from the reply to its next request. If no process of this folder put it,
// another process has a copy of the folder, and nobody can decide which of the two is the original: both stop for good.
// The other process stops because of refusals of this round and the next, which it finds under its own key and did not
// put, as far as the broker shows them.
func (f *follower) joined(ctx context.Context, m stream.Message) error {
	var j wire.Join
	if _, err := seal.VerifyRecord(m, f.Identity.Public(), f.hash, &j); err != nil {
		f.Logger.Warn("the broker shows something that is not the helper's Join", "subject", m.Subject)
		return nil
	}
	if f.Folder.Knows(split.Instance(j.Instance)) {
		return nil
	}
	for _, r := range []uint64{j.Round, j.Round + 1} {
		x := split.Attempt{Task: f.hash, Round: r, Number: j.Attempt, Open: split.Hash(j.OpenHash)}
		data, err := splitwire.SignShare(f.Identity, split.Share{X: x, Refusal: split.Marked})
		if err == nil {
			_, err = f.broker.put(ctx, f.Task.Share(stream.Round(r)), data)
		}
		if err != nil {
			f.Logger.Warn("cannot tell the other process of this identity", "round", r, "error", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err := fmt.Errorf("helper's folder: %w", folder.Older("%s has a Join that this identity signed, and no process with "+
		"this folder put it: the folder, or its disk or machine, was copied or put back. Stop the other process too",
		m.Subject))
	f.stop(err)
	return err
}

// refuse puts a Share that says that nothing of the round will be released, so that the leader knows before anybody
// sends.
func (f *follower) refuse(ctx context.Context, at place, refusal split.Share) error {
	data, err := splitwire.SignShare(f.Identity, refusal)
	if err != nil {
		return fmt.Errorf("helper: refuse round %d: %w", at.round, err)
	}
	result, err := f.broker.put(ctx, f.Task.Share(stream.Round(at.round)), data)
	if err != nil {
		return err
	}
	f.seen = at
	if !result.Ours {
		return f.shownBy(result.Standing)
	}
	observe.Tell(f.Observer.Refused, stream.Round(at.round))
	return nil
}

// putJoin puts the Join of the attempt that is held. If the broker has another one, no device will ever send to ours.
func (f *follower) putJoin(ctx context.Context) error {
	a := f.pending
	if a == nil {
		return nil
	}
	result, err := f.broker.put(ctx, f.Task.Join(stream.Round(a.x.Round), stream.Attempt(a.x.Number)), a.join)
	if err != nil {
		return err
	}
	f.pending = nil
	if result.Ours {
		f.Logger.Info("joined an attempt", "round", a.x.Round, "attempt", a.x.Number)
		observe.Tell2(f.Observer.Joined, stream.Round(a.x.Round), stream.Attempt(a.x.Number))
		return nil
	}
	f.mu.Lock()
	if f.held == a {
		f.drop()
	}
	f.mu.Unlock()
	return f.joined(ctx, result.Standing)
}
