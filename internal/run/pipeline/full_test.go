package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream/natsjs"
)

// TestFullDiskEnds checks that a full disk ends a pipeline at once if the system or the broker reports it, and after
// some writes in a row without a reply; nothing else does.
func TestFullDiskEnds(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	refused := fmt.Errorf("%w (%w)", natsjs.ErrFullDisk, &jetstream.APIError{ErrorCode: 10077})
	silent := fmt.Errorf("no answer: %w", natsjs.ErrFullDisk)
	other := errors.New("another")
	for _, c := range []struct {
		name   string
		writes []error
		ends   bool
	}{
		{"no room", []error{nil, full}, true},
		{"the broker has none", []error{refused}, true},
		{"a slow broker", []error{silent, silent, silent, silent, nil, silent, silent, silent, silent}, false},
		{"another error between", []error{silent, silent, silent, silent, other, silent}, false},
		{"no answers", []error{other, silent, silent, silent, silent, silent}, true},
		{"other errors", []error{other, other, other, other, other, other}, false},
	} {
		ctx, stop := context.WithCancelCause(t.Context())
		at := conn{end: end(stop), silent: new(atomic.Int32)}
		for _, err := range c.writes {
			at.wrote(err)
		}
		cause := (*fullDiskError)(nil)
		if got := errors.As(context.Cause(ctx), &cause); got != c.ends {
			t.Errorf("%s: ends %v: %v", c.name, got, context.Cause(ctx))
		}
		stop(nil)
	}
}
