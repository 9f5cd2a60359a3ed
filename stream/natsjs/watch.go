package natsjs

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// WakePrefix returns the prefix of the subjects on which Rounds and Attempts republish what they store; no stream
// holds them.
func WakePrefix(task stream.Task) string { return stream.Prefix + "." + string(task) + ".wake." }

// What may wait in a process that has no time for it: far beyond what a stream.Wakes holds, and room for some of the
// largest messages. Beyond it the client library drops wakes and reports a slow consumer, which is a zero Wake.
const (
	maxWakes     = 1024
	maxWakeBytes = 8 << 20
)

// Watch implements stream.Records. Every reconnection is a zero Wake.
func (c *Conn) Watch(ctx context.Context, task stream.Task) (<-chan stream.Wake, error) {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return nil, fmt.Errorf("watch: %w: %w", stream.ErrRefused, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("watch %s: %w", task, err)
	}
	w, prefix := stream.NewWakes(), WakePrefix(task)
	c.mu.Lock()
	c.watchers[w] = true
	c.mu.Unlock()
	sub, err := c.nc.Subscribe(prefix+">", func(m *nats.Msg) {
		c.wake(w, stream.Wake{Subject: stream.Prefix + "." + string(task) + "." + strings.TrimPrefix(m.Subject, prefix),
			Data: m.Data})
	})
	if err == nil {
		err = sub.SetPendingLimits(maxWakes, max(maxWakeBytes, 4*int(c.nc.MaxPayload())))
	}
	if err != nil {
		c.unwatch(w)
		return nil, fmt.Errorf("watch %s: %w", task, explain(err))
	}
	context.AfterFunc(ctx, func() {
		sub.Unsubscribe() // fails only on a closed connection, which has no subscriptions
		c.unwatch(w)
	})
	return w.C(), nil
}

// wake holds the lock so that it never sends on a channel that unwatch has closed.
func (c *Conn) wake(w *stream.Wakes, wake stream.Wake) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers[w] {
		w.Put(wake)
	}
}

// wakeAll has every watcher read: wakes may have been lost.
func (c *Conn) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		w.Put(stream.Wake{})
	}
}

func (c *Conn) unwatch(w *stream.Wakes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watchers, w)
	w.Close()
}
