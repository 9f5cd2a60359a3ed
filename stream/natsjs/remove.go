package natsjs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

const apiStreamDelete = "$JS.API.STREAM.DELETE."

// Remove deletes the streams of a task, with all that is in them, and answers the names of those that were there. It may be
// called again, and tries until ctx ends where a cluster has no leader. Whether the task has ended is the caller's to see.
func Remove(ctx context.Context, c *Conn, task stream.Task) (removed []string, err error) {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return nil, fmt.Errorf("remove: %w", err)
	}
	// The stream of rounds goes last: while it stands, whether the task has ended can still be seen.
	for _, s := range slices.Backward(all()) {
		name := task.Name(s)
		wait := func(err error) bool { return leaderless(err) && !errors.Is(err, nats.ErrNoResponders) }
		err := c.insist(ctx, "remove "+name, wait, func() error {
			return c.call(ctx, apiStreamDelete+name, func(ctx context.Context) error { return c.js.DeleteStream(ctx, name) })
		})
		switch {
		case err == nil:
			removed = append(removed, name)
		case code(err) != codeStreamNotFound:
			return removed, fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return removed, nil
}
