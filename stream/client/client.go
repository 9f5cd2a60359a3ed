package client

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream/client/consent"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// A Client publishes events of one task. Its methods may be called from any goroutine. Nothing happens before the
// first of them is called.
type Client struct {
	loop   *loop
	start  sync.Once
	cancel context.CancelFunc
	ctx    context.Context
	done   chan struct{} // closed after err is written
	err    error
}

// New makes a client. It reads and sends nothing yet.
func New(c Config) (*Client, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Client{loop: newLoop(c), ctx: ctx, cancel: cancel, done: make(chan struct{})}, nil
}

func (c *Client) run() {
	c.start.Do(func() {
		go func() {
			defer close(c.done)
			c.err = c.loop.run(c.ctx)
		}()
	})
}

// Close stops the client and waits for it. Events that wait are answered: charged ones as Unknown, though a
// later client with the same store may learn more. The error is why the client had ended before, a *RefusedError where
// it refused.
func (c *Client) Close() error {
	c.cancel()
	c.run() // a client that never ran answers its inbox, too
	<-c.done
	return c.err
}

// Done is closed when the client has ended: after Close, or before it where it refused or its store failed. Close then
// tells why.
func (c *Client) Done() <-chan struct{} { return c.done }

// Agreement waits until the task is announced and the policy has agreed to it. The error is a *RefusedError where it
// does not.
func (c *Client) Agreement(ctx context.Context) (*consent.Agreement, error) {
	c.run()
	select {
	case <-c.loop.agreed:
		return c.loop.agreement, nil
	default:
	}
	select {
	case <-c.loop.agreed:
		return c.loop.agreement, nil
	case <-c.done:
		return nil, c.ended()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Client) ended() error {
	if c.err != nil {
		return c.err
	}
	return errEnded
}

// Publish sends one event and waits until its outcome is known: a round that takes it has closed, or the task has
// ended. key names the user's event; a key that took part before, in this process or an earlier one, is answered and not
// sent again. An example that is not one of the task is sent as the zero vector (Agreement.Valid tells).
//
// With an error nothing more than the Outcome is known: Unknown if ctx ended while the event was under way, and Publish
// with the same key asks again. Where the policy refuses, the Outcome is Refused and the error a *RefusedError.
func (c *Client) Publish(ctx context.Context, key participation.Key, e convex.Example) (Outcome, error) {
	x := convex.Example{Index: slices.Clone(e.Index), Value: slices.Clone(e.Value), Label: e.Label}
	return c.PublishFunc(ctx, key, func() convex.Example { return x })
}

// PublishFunc is Publish of an example that is worked out when the event joins a round. Its report leaves on a tick after
// that, so that must be as quick for any event as for any other, within half of a tick (beat.go), or when a report leaves tells of content. The function is called at most once, from another goroutine.
func (c *Client) PublishFunc(ctx context.Context, key participation.Key, e func() convex.Example) (Outcome, error) {
	c.run()
	if key == (participation.Key{}) {
		refused := consent.Refuse("key", "zero", "RowKey or participation.EventKey").(*consent.RefusedError)
		return Outcome{State: participation.Refused, Refused: refused}, refused
	}
	answer := make(chan Outcome, 1)
	asked := &event{record: participation.Record{Key: key}, rows: 1, work: func() block.Block { return block.Of(e()) }, callbacks: []func(Outcome){func(o Outcome) { answer <- o }}}
	if err := c.loop.inbox.put(ctx, asked); err != nil {
		if !errors.Is(err, errEnded) {
			return Outcome{State: participation.Uncounted}, err
		}
		<-c.done
		var refused *consent.RefusedError
		if errors.As(c.err, &refused) {
			return Outcome{State: participation.Refused, Refused: refused}, c.err
		}
		return Outcome{State: participation.Uncounted}, c.ended()
	}
	select {
	case got := <-answer:
		if got.State == participation.Refused {
			return got, got.Refused
		}
		return got, nil
	case <-ctx.Done():
		return Outcome{State: participation.Unknown}, ctx.Err()
	}
}
