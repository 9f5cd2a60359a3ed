package natsjs

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// WakePrefix is where Rounds and Attempts republish the headers of what they store; no stream holds it.
func WakePrefix(task stream.Task) string { return stream.Prefix + "." + string(task) + ".wake." }

// A wake is a few header bytes, and one not yet taken stands for all.
const (
	maxWakes     = 1024
	maxWakeBytes = 1 << 20
)

// Watch implements stream.Records. The first wake is there at once, and every reconnection is one.
func (c *Conn) Watch(ctx context.Context, task stream.Task) (<-chan struct{}, error) {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return nil, fmt.Errorf("watch: %w: %w", stream.ErrRefused, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("watch %s: %w", task, err)
	}
	ch := make(chan struct{}, 1)
	ch <- struct{}{}
	c.mu.Lock()
	c.watchers[ch] = true
	c.mu.Unlock()
	sub, err := c.nc.Subscribe(WakePrefix(task)+">", func(*nats.Msg) { c.wake(ch) })
	if err == nil {
		err = sub.SetPendingLimits(maxWakes, maxWakeBytes)
	}
	if err != nil {
		c.unwatch(ch)
		return nil, fmt.Errorf("watch %s: %w", task, explain(err))
	}
	context.AfterFunc(ctx, func() {
		sub.Unsubscribe() // fails only on a closed connection, which has no subscriptions
		c.unwatch(ch)
	})
	return ch, nil
}

// wake holds the lock so that it never sends on a channel that unwatch has closed.
func (c *Conn) wake(ch chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.watchers[ch] {
		return
	}
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (c *Conn) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (c *Conn) unwatch(ch chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watchers, ch)
	close(ch)
}
