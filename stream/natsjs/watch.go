package natsjs

import (
	"context"
	"fmt"
	"strings"
	"sync"

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
	w, prefix := c.watchers.add(), WakePrefix(task)
	_, err := c.listen(ctx, prefix+">", maxWakes, max(maxWakeBytes, 4*int(c.nc.MaxPayload())), func(m *nats.Msg) {
		subject := stream.Prefix + "." + string(task) + "." + strings.TrimPrefix(m.Subject, prefix)
		c.watchers.wake(w, stream.Wake{Subject: subject, Data: m.Data})
	})
	if err != nil {
		c.watchers.drop(w)
		return nil, fmt.Errorf("watch %s: %w", task, explain(err))
	}
	context.AfterFunc(ctx, func() { c.watchers.drop(w) })
	return w.C(), nil
}

// watchers are the readers of a connection's wakes.
type watchers struct {
	mu  sync.Mutex
	all map[*stream.Wakes]bool
}

func (s *watchers) add() *stream.Wakes {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := stream.NewWakes()
	s.all[w] = true
	return w
}

// wake holds the lock so that it never sends on a channel that drop has closed.
func (s *watchers) wake(w *stream.Wakes, wake stream.Wake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[w] {
		w.Put(wake)
	}
}

// wakeAll has every watcher read: wakes may have been lost.
func (s *watchers) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.all {
		w.Put(stream.Wake{})
	}
}

func (s *watchers) drop(w *stream.Wakes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, w)
	w.Close()
}
