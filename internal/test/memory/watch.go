package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/stream"
)

// Watch implements stream.Records.
func (b *Broker) Watch(ctx context.Context, task stream.Task) (<-chan stream.Wake, error) {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return nil, fmt.Errorf("watch: %w: %w", stream.ErrRefused, err)
	}
	if err := b.enter(ctx, "watch "+string(task), 0); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	w, t := stream.NewWakes(), b.tenant(task)
	t.watchers = append(t.watchers, w)
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.watchers = slices.DeleteFunc(t.watchers, func(other *stream.Wakes) bool { return other == w })
		w.Close()
	})
	return w.C(), nil
}

// announce wakes the watchers of a task where its stream is watched; b.mu is held.
func (b *Broker) announce(t *tenant, s stream.Stream, m *stream.Message) {
	if s == stream.Rounds || s == stream.Attempts || s == stream.Joins {
		t.wake(stream.Wake{Subject: m.Subject, Data: m.Data}, func() Fault { return b.fault(Wake, m.Subject) })
	}
}

// wake gives every watcher bytes of its own, as a network does.
func (t *tenant) wake(wake stream.Wake, fault func() Fault) {
	for _, w := range t.watchers {
		if fault() != Lost {
			w.Put(stream.Wake{Subject: wake.Subject, Data: bytes.Clone(wake.Data)})
		}
	}
}
