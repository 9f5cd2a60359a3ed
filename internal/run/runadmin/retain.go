package runadmin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/retention"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Retained describes the records that `learner retain` removed.
type Retained struct {
	Task      stream.Task `json:"task"`
	Retention string      `json:"retention"` // age of the task, as a duration; empty: it keeps all records
	retention.Removed
	Sweeps uint64 `json:"sweeps"`
}

// ErrNotAnnounced means that the broker has no Task yet, which declares how long records are kept.
var ErrNotAnnounced = errors.New("the task is not announced yet: learner run does that")

// Retain removes the records of a task's old rounds with an administrator's credentials: once, or, with every above 0,
// again and again until ctx ends, and then an error that waiting may mend, or a task that is not there yet, is logged
// and waited for. It reports each sweep.
func Retain(ctx context.Context, c Config, every time.Duration, tell func(Retained)) (Retained, error) {
	all := Retained{Task: c.Task}
	conn, err := c.connect(ctx)
	if err != nil {
		return all, err
	}
	defer conn.Close()
	for {
		one, err := retainOnce(ctx, conn, c.Task)
		switch {
		case every > 0 && ctx.Err() != nil:
			return all, nil
		case err != nil && (every == 0 || !natsjs.Transient(err) && !errors.Is(err, ErrNotAnnounced)):
			return all, err
		case err != nil:
			c.Logger.Warn("cannot remove the records of old rounds; trying again", "task", c.Task, "in", every, "error", err)
		default:
			all.Retention, all.Newest, all.Before = one.Retention, one.Newest, max(all.Before, one.Before)
			all.Records += one.Records
			all.Sweeps++
			tell(one)
		}
		if every == 0 {
			return all, nil
		}
		select {
		case <-ctx.Done():
			return all, nil
		case <-time.After(every):
		}
	}
}

func retainOnce(ctx context.Context, conn *natsjs.Conn, name stream.Task) (Retained, error) {
	out := Retained{Task: name, Sweeps: 1}
	m, err := conn.Get(ctx, name.Task())
	if errors.Is(err, stream.ErrNotFound) {
		return out, fmt.Errorf("%s: %w", name, ErrNotAnnounced)
	}
	if err != nil {
		return out, err
	}
	var envelope wire.Signed
	var task wire.Task
	err = stream.Unmarshal(m.Data, &envelope)
	if err == nil {
		_, err = seal.Verify(m.Data, envelope.Key, &task)
	}
	if err == nil {
		err = manifest.CheckTask(&task)
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", m.Subject, err)
	}
	age := manifest.Retention(task.Plan)
	if age == 0 {
		return out, nil
	}
	out.Retention = age.String()
	out.Removed, err = natsadmin.Retain(ctx, conn, name, age)
	return out, err
}
