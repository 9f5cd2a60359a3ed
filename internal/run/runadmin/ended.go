package runadmin

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// ErrNotEnded refuses to remove the streams of a task that goes on.
var ErrNotEnded = errors.New("the task has not ended")

// ended returns nil if the task's own learner has signed its end, and otherwise ErrNotEnded with what was found. The
// record on the end's subject may come from anybody with permission to write there; it counts only if the key that
// signed the Task signed it, for that Task.
func ended(ctx context.Context, conn *natsjs.Conn, name stream.Task) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w%s: end it with learner finish, or, if its learner is lost, say --force", name, ErrNotEnded,
			fmt.Sprintf(format, args...))
	}
	end, err := conn.Get(ctx, name.End())
	switch {
	case errors.Is(err, stream.ErrNotFound):
		return refuse("")
	case err != nil:
		return err
	}
	begun, err := conn.Get(ctx, name.Task())
	switch {
	case errors.Is(err, stream.ErrNotFound):
		return refuse(": something stands at its end, and no task by which to tell whose it is")
	case err != nil:
		return err
	}
	task, over := &wire.Task{}, &wire.End{}
	signed := &wire.Signed{}
	if err := errors.Join(stream.Unmarshal(begun.Data, signed), stream.Unmarshal(signed.Body, task)); err != nil {
		return refuse(": the task is damaged (%v)", err)
	}
	body, err := seal.Verify(begun.Data, task.LearnerKey, &wire.Task{})
	if err != nil {
		return refuse(": the task is not its learner's (%v)", err)
	}
	hash := stream.HashOf(body)
	if _, err := seal.Verify(end.Data, task.LearnerKey, over); err != nil {
		return refuse(": what stands at its end is not its learner's word (%v)", err)
	}
	if !bytes.Equal(over.TaskHash, hash[:]) {
		return refuse(": the record of its end is another task's")
	}
	return nil
}
