package natsadmin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// madeBy is the key of a stream's metadata that names the call that made it. No other call finds its own mark there,
// also if the answer to a creation was lost, or two create at once.
const madeBy = "panlearn.made_by"

// newMark returns the mark of one call.
func newMark() string { return rand.Text() }

// rollbackTime bounds the time for which a call that failed, perhaps because its time was over, goes on to remove what
// it made.
const rollbackTime = 10 * time.Second

// rollback removes the streams of a task that the call of this mark made, while they are empty, and adds to its error
// what came of it.
func rollback(ctx context.Context, c *natsjs.Conn, task stream.Task, mark string, because error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	var gone []string
	var errs []error
	for _, s := range slices.Backward(all()) {
		name := task.Name(s)
		have, err := streamInfo(ctx, c, name)
		if err == nil && have.Config.Metadata[madeBy] == mark && have.State.Msgs == 0 {
			if err = deleteStream(ctx, c, name); err == nil {
				gone = append(gone, name)
			}
		} else if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, natsjs.ErrDenied) {
			// a role that may not ask has made nothing
			err = nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	switch {
	case len(errs) > 0:
		return fmt.Errorf(
			"%w; cannot tell whether streams of this call are left (%w): see them with learner doctor, and run this again or learner remove --force",
			because, errors.Join(errs...))
	case len(gone) > 0:
		return fmt.Errorf("%w; removed again, which this call had made: %s", because, strings.Join(gone, ", "))
	}
	return because
}

func deleteStream(ctx context.Context, c *natsjs.Conn, name string) error {
	return c.Admin().Call(ctx, apiStreamDelete+name, func(ctx context.Context) error {
		return c.Admin().JetStream().DeleteStream(ctx,
			name)
	})
}
