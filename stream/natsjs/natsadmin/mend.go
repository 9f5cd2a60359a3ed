package natsadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// errLost means that the broker lost a stream of a task that has begun, and with it the records that decide its
// rounds.
var errLost = errors.New(
	"the broker lost what decides rounds of a task that has begun, and an empty stream in its place could decide them again: " +
		"put the broker's copy back, or take the snapshot and begin a task of another name (docs/how-to/runbook.md, the broker lost records)")

// Mend makes again those streams of a begun task that the broker lost and the task can do without: the stream of
// reports, which is lost with the server if it is kept in memory, its consumer, and the leases. It returns the names
// of what it made; their former content is lost. For a missing stream of records it returns errLost, also if all of
// them are missing: the caller knows that the task has begun. Sequences of reports never restart: they go on above all
// that devices were told, so that a cutoff of an open attempt counts no report that was not opened.
func Mend(ctx context.Context, c *natsjs.Conn, task stream.Task, o Options) (made []string, err error) {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return nil, fmt.Errorf("mend: %w", err)
	}
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("mend %s: %w", task, err)
	}
	var gone []string
	for _, s := range all() {
		_, err := streamInfo(ctx, c, task.Name(s))
		if err == nil && s == stream.Reports {
			if _, err = consumerInfo(ctx, c, task.Name(s)); errors.Is(err, jetstream.ErrConsumerNotFound) {
				made = append(made, "consumer "+natsjs.Durable+" of "+task.Name(s))
				continue
			}
		}
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound) && slices.Contains(records, s):
			gone = append(gone, task.Name(s))
		case errors.Is(err, jetstream.ErrStreamNotFound):
			made = append(made, task.Name(s))
		case err != nil:
			return nil, fmt.Errorf("look at %s: %w", task.Name(s), err)
		}
	}
	if len(gone) > 0 {
		return nil, lost(gone)
	}
	if len(made) == 0 {
		return nil, nil
	}
	mark := newMark()
	if err := provisionOnce(ctx, c, task, o, mark); err != nil {
		return nil, rollback(ctx, c, task, mark, err)
	}
	return made, nil
}

// records are the streams that decide a task's rounds.
var records = []stream.Stream{stream.Rounds, stream.Attempts, stream.Batches}

func lost(gone []string) error { return fmt.Errorf("%s: %w", strings.Join(gone, ", "), errLost) }

// lostOf reports whether a task has begun, and returns errLost if it has and a stream of its records is gone. The first
// record of Attempts is the stage's identity: a stage puts it as soon as that stream exists, even if a learner that
// provisions died before it made the next stream. It decides no round, so it is no sign that the task has begun.
func lostOf(ctx context.Context, c *natsjs.Conn, task stream.Task) (begun bool, err error) {
	var gone []string
	for _, s := range records {
		info, err := streamInfo(ctx, c, task.Name(s))
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			gone = append(gone, task.Name(s))
		case err != nil:
			return false, fmt.Errorf("look at %s: %w", task.Name(s), err)
		case info.State.LastSeq > 1, info.State.LastSeq == 1 && s != stream.Attempts:
			begun = true
		}
	}
	if begun && len(gone) > 0 {
		return true, lost(gone)
	}
	return begun, nil
}
