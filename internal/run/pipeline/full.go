package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// A fullDiskError ends a pipeline whose disk is full: from then on its broker refuses writes, with room or without,
// until the process is started again.
type fullDiskError struct{ err error }

// Error names the cause, and what to do.
func (e *fullDiskError) Error() string {
	cause := e.err.Error()
	if errors.Is(e.err, natsjs.ErrFullDisk) { // which speaks of a server by itself
		cause = "its broker cannot write"
	}
	return fmt.Sprintf(
		"the disk of the state folder is full: %s. Make room: the same command again goes on where this one stopped", cause)
}

func (e *fullDiskError) Unwrap() error { return e.err }

// end ends a pipeline with its first fullDiskError.
type end context.CancelCauseFunc

// look ends the pipeline if a write failed because the disk is full.
func (e end) look(err error) {
	if disk.Full(err) || natsjs.Code(err) != 0 && errors.Is(err, natsjs.ErrFullDisk) {
		e(&fullDiskError{err})
	}
}

// mostSilent bounds the writes in a row without a reply from a broker that replies to reads; a busy machine has some of
// these, too.
const mostSilent = 5

// A conn is a role's connection that checks the outcome of every write of a record. A broker that cannot write does
// not answer reports at all.
type conn struct {
	*natsjs.Conn
	end
	silent *atomic.Int32 // writes in a row without an answer
}

// wrote records the outcome of a write.
func (c conn) wrote(err error) {
	c.look(err)
	if !errors.Is(err, natsjs.ErrFullDisk) {
		c.silent.Store(0)
	} else if c.silent.Add(1) >= mostSilent {
		c.end(&fullDiskError{err})
	}
}

func (c conn) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	r, err := c.Conn.PutOnce(ctx, subject, data)
	c.wrote(err)
	return r, err
}

func (c conn) Swap(ctx context.Context, subject string, expected uint64, data []byte) (uint64, error) {
	sequence, err := c.Conn.Swap(ctx, subject, expected, data)
	c.wrote(err)
	return sequence, err
}

// marks are a stage's, of which every one that is set is looked at.
type marks struct {
	stage.Marks
	end
}

func (m marks) Claim(task stream.Hash, round stream.Round, instance [stream.InstanceSize]byte) (ours bool, err error) {
	ours, err = m.Marks.Claim(task, round, instance)
	m.look(err)
	return ours, err
}
