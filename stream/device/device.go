package device

import (
	"context"
	"errors"
	"sync"

	"github.com/panlearn/panlearn/stream/device/consent"
)

// A Device publishes events of one task. Its methods may be called from any goroutine. Nothing happens before the
// first of them is called.
type Device struct {
	loop   *loop
	desk   *desk // nil: no events are submitted
	start  sync.Once
	cancel context.CancelFunc
	ctx    context.Context
	done   chan struct{} // closed after err is written
	err    error

	closing sync.Once
	release func() error // closes what Open opened; nil: nothing
}

// New makes a client for a command or a gateway; an application opens one with [Open]. It reads and sends nothing yet.
func New(c Settings) (*Device, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &Device{ctx: ctx, cancel: cancel, done: make(chan struct{})}
	if c.Submits {
		store := watched(c.Store)
		d.desk = newDesk(store, c.Logger)
		c.Store, c.Source = store, submitted
		c.Work = func(a *consent.Agreement) (func(), error) {
			p, err := d.desk.use(a)
			if err != nil {
				return nil, err
			}
			return p.work(), nil
		}
	}
	d.loop = newLoop(c)
	return d, nil
}

func (c *Device) run() {
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
func (c *Device) Close() error {
	c.cancel()
	c.run() // a client that never ran has to empty its inbox, too
	<-c.done
	var failed error
	c.closing.Do(func() {
		if c.release != nil {
			failed = c.release()
		}
	})
	if failed != nil {
		return errors.Join(c.err, failed)
	}
	return c.err
}

// Done returns a channel that is closed when the client has ended: after Close, or earlier if the policy refused or the
// store failed. Close then returns the reason.
func (c *Device) Done() <-chan struct{} { return c.done }

// Agreement waits until the task is announced and the policy has agreed to it. The error is a *RefusedError where it
// does not.
func (c *Device) Agreement(ctx context.Context) (*consent.Agreement, error) {
	c.run()
	select {
	case <-c.loop.contract.agreed:
		return c.loop.contract.agreement, nil
	default:
	}
	select {
	case <-c.loop.contract.agreed:
		return c.loop.contract.agreement, nil
	case <-c.done:
		return nil, c.ended()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Device) ended() error {
	if c.err != nil {
		return c.err
	}
	return errEnded
}
