package helper

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// enlist puts the helper's identity, waits for the Task, and takes it where it names the pinned keys. The identity
// decides nothing, so that another one there is only said.
func (f *follower) enlist(ctx context.Context) error {
	f.say("waiting for the task")
	data, err := f.Identity.Sign(&wire.HelperIdentity{Version: stream.Version, Task: string(f.Task),
		Key: f.Identity.Public()})
	if err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	if err := f.broker.insist(ctx, "put", func(ctx context.Context) error {
		r, err := f.Records.PutOnce(ctx, f.Task.Helper(), data)
		if err == nil && !r.Ours {
			f.Logger.Warn("another helper has put its identity for this task before; the Task decides whose it is",
				"subject", f.Task.Helper())
		}
		return err
	}); err != nil {
		return err
	}
	for {
		m, err := f.broker.get(ctx, f.Task.Task())
		if err == nil && m != nil {
			if err := f.suits(*m); err != nil {
				return fmt.Errorf("helper: %s: %w", m.Subject, err)
			}
			if err = f.remember(ctx); err == nil {
				return nil
			}
			if errors.Is(err, folder.ErrOlder) {
				return fmt.Errorf("helper: %w", err)
			}
		}
		if f.broker.failures++; err == nil {
			f.broker.failures = 0
		}
		if err := f.broker.rest(ctx); err != nil {
			return err
		}
	}
}

// suits takes the Task: signed by the pinned learner, of the pinned leader and this helper, and one that can be run.
func (f *follower) suits(m stream.Message) error {
	var task wire.Task
	body, err := seal.Verify(m.Data, f.LearnerKey, &task)
	if err != nil {
		return err
	}
	switch {
	case task.Name != string(f.Task):
		return fmt.Errorf("holds a task named %q", task.Name)
	case !f.LearnerKey.Equal(ed25519.PublicKey(task.LearnerKey)):
		return fmt.Errorf("names the learner %x, but %x signed it", task.LearnerKey, []byte(f.LearnerKey))
	case !manifest.HasOperators(task.Plan):
		return errors.New("has not trust split: it needs no helper")
	case !f.Identity.Public().Equal(ed25519.PublicKey(task.HelperKey)):
		return fmt.Errorf("names the helper %x, this one is %x: start with the folder whose key the task names",
			task.HelperKey, []byte(f.Identity.Public()))
	case !f.LeaderKey.Equal(ed25519.PublicKey(task.StageKey)):
		return fmt.Errorf("names the stage %x, the leader that was pinned is %x", task.StageKey, []byte(f.LeaderKey))
	}
	if err := manifest.CheckTask(&task); err != nil {
		return err
	}
	sizes, err := manifest.SizesOf(&task, nil)
	if err == nil {
		err = sizes.Fit(f.Limits)
	}
	if err != nil {
		return err
	}
	f.task, f.hash = &task, stream.HashOf(body)
	return nil
}

// remember reads what the folder knows of the task.
func (f *follower) remember(ctx context.Context) error {
	mark, _, err := f.Folder.Mark(f.hash)
	f.outcome(ctx, callFolder, err)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark, f.desk = mark, split.NewDesk(f.Instance, mark)
	f.status.Phase = "waiting for a round"
	return nil
}
