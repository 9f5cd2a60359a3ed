package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/stream"
)

// Watch implements stream.Records. The first wake is there at once: something may have been written already.
func (b *Broker) Watch(ctx context.Context, task stream.Task) (<-chan struct{}, error) {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return nil, fmt.Errorf("watch: %w: %w", stream.ErrRefused, err)
	}
	if err := b.enter(ctx, "watch "+string(task), 0); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	ch := make(chan struct{}, 1)
	ch <- struct{}{}
	t := b.tenant(task)
	t.watchers = append(t.watchers, ch)
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.watchers = slices.DeleteFunc(t.watchers, func(c chan struct{}) bool { return c == ch })
		close(ch)
	})
	return ch, nil
}

// announce wakes the watchers of a task where its stream is watched; b.mu is held.
func (b *Broker) announce(t *tenant, s stream.Stream, subject string) {
	if s == stream.Rounds || s == stream.Attempts {
		t.wake(func() Fault { return b.fault(Wake, subject) })
	}
}

// wake merges wakes that nobody has taken yet.
func (t *tenant) wake(fault func() Fault) {
	for _, ch := range t.watchers {
		if fault() == Lost {
			continue
		}
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
