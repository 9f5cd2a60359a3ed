package helper

import (
	"context"
	"errors"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A broker makes the follower's calls of the broker, and waits between them.
type broker struct {
	*Helper
	wake     <-chan stream.Wake // nil: only the timer wakes
	failures int                // in a row

	// The last record that a wake brought, by verb, until it is used. It is verified like a record that was read, and
	// saves the read.
	brought map[string]stream.Message
}

// watch subscribes to wakes. Without them Run acts on its timer.
func (b *broker) watch(ctx context.Context) {
	wake, err := b.Records.Watch(ctx, b.Task)
	if err != nil {
		b.Logger.Warn("no wake-ups from the broker, polling", "error", err, "poll", b.Poll)
		return
	}
	b.wake = wake
}

// call makes one call of the broker, and notes how it ended.
func (b *broker) call(ctx context.Context, name string, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, b.Lease/4)
	defer cancel()
	err := do(limited)
	b.outcome(ctx, name, err)
	return err
}

// get returns the record on a subject; nil where there is none, which decides nothing.
func (b *broker) get(ctx context.Context, subject string) (*stream.Message, error) {
	return b.read(ctx, "get", func(ctx context.Context) (stream.Message, error) { return b.Records.Get(ctx, subject) })
}

// latest returns the newest record of a pattern; nil where there is none.
func (b *broker) latest(ctx context.Context, pattern string) (*stream.Message, error) {
	return b.read(ctx, "latest", func(ctx context.Context) (stream.Message, error) { return b.Records.Latest(ctx, pattern) })
}

func (b *broker) read(ctx context.Context, name string, do func(context.Context) (stream.Message, error)) (
	found *stream.Message, err error) {
	err = b.call(ctx, name, func(ctx context.Context) error {
		m, err := do(ctx)
		if errors.Is(err, stream.ErrNotFound) {
			return nil
		}
		if err == nil {
			found = &m
		}
		return err
	})
	return found, err
}

func (b *broker) put(ctx context.Context, subject string, data []byte) (r stream.PutResult, err error) {
	err = b.call(ctx, "put", func(ctx context.Context) error {
		r, err = b.Records.PutOnce(ctx, subject, data)
		return err
	})
	return r, err
}

// insist makes a call until it works or the context ends.
func (b *broker) insist(ctx context.Context, name string, do func(context.Context) error) error {
	for {
		if err := b.call(ctx, name, do); err == nil {
			return nil
		}
		b.failures++
		if err := b.rest(ctx); err != nil {
			return err
		}
	}
}

// rest waits for a wake or for the poll interval, which is shorter after failures. It keeps a Round or an Open that a
// wake carries for the next turn.
func (b *broker) rest(ctx context.Context) error {
	wait := b.Poll/2 + time.Duration(b.jitter.Int64N(int64(b.Poll)))
	if b.failures > 0 {
		wait = min(wait, b.Lease/64<<min(b.failures, 6))
	}
	over := time.After(wait)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return nil
		case <-b.kick:
			return nil
		case wake, ok := <-b.wake:
			if !ok {
				b.wake = nil
			} else if b.worthALook(wake) {
				return nil
			}
		}
	}
}

// worthALook reports whether the helper may have to act upon a wake: the zero wake, or a record that learner or leader
// put for it.
func (b *broker) worthALook(w stream.Wake) bool {
	a, err := stream.ParseSubject(w.Subject)
	if err != nil {
		return true
	}
	if a.Verb == "round" || a.Verb == "open" {
		b.brought[a.Verb] = stream.Message{Subject: w.Subject, Data: w.Data}
		return true
	}
	return a.Verb == "task" || a.Verb == "end"
}

// taken returns what a wake brought, once; nil: nothing.
func (b *broker) taken(verb string) *stream.Message {
	m, ok := b.brought[verb]
	if delete(b.brought, verb); !ok {
		return nil
	}
	return &m
}
