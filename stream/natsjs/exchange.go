package natsjs

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// Bounds of the messages of the exchange that wait in a busy process: twice a full window of the other operator.
// Messages beyond are lost, and sent again.
const (
	maxExchange      = 256
	maxExchangeBytes = 64 << 20
)

// statusHeader is the header of a server's own answer, and noResponders what it holds where nobody listens.
const (
	statusHeader = "Status"
	noResponders = "503"
)

// Exchange implements stream.ExchangeAsker: publishes on the prepare subject with one reply subject for all of them.
func (c *Conn) Exchange(ctx context.Context, subject string, receive func([]byte)) (func([]byte) error, error) {
	if _, err := stream.CheckPrepare(subject); err != nil {
		return nil, err
	}
	inbox := c.nc.NewInbox()
	sub, err := c.listen(ctx, inbox, maxExchange, maxExchangeBytes, func(m *nats.Msg) {
		if len(m.Data) == 0 && m.Header.Get(statusHeader) == noResponders {
			receive(nil)
			return
		}
		receive(m.Data)
	})
	if err != nil {
		return nil, fmt.Errorf("exchange: %w", explain(err))
	}
	return func(message []byte) error {
		if !sub.IsValid() {
			return fmt.Errorf("exchange %s: %w", subject, context.Cause(ctx))
		}
		if err := c.nc.PublishRequest(subject, inbox, message); err != nil {
			return fmt.Errorf("exchange %s: %w", subject, refused(explain(err)))
		}
		return nil
	}, nil
}

// ServeExchange implements stream.ExchangeServer. It subscribes without a queue group: one process of a helper serves
// its task.
func (c *Conn) ServeExchange(ctx context.Context, task stream.Task,
	take func(subject string, message []byte, reply func([]byte))) error {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return fmt.Errorf("exchange: %w: %w", stream.ErrRefused, err)
	}
	err := c.serve(ctx, task.Prepares(), maxExchange, maxExchangeBytes, func(m *nats.Msg) {
		if m.Reply == "" {
			return
		}
		take(m.Subject, m.Data, func(answer []byte) { _ = m.Respond(answer) }) // a lost answer is asked for again
	})
	if err != nil {
		return fmt.Errorf("exchange of %s: %w", task, err)
	}
	return nil
}

// listen subscribes until ctx ends. At most messages messages of bytes bytes in all wait for receive (-1: any number);
// others are lost.
func (c *Conn) listen(ctx context.Context, subject string, messages, bytes int, receive func(*nats.Msg)) (
	*nats.Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sub, err := c.nc.Subscribe(subject, receive)
	if err != nil {
		return nil, err
	}
	unsubscribe := func() {
		_ = sub.Unsubscribe() // fails only on a closed connection, which has no subscriptions
	}
	if err := sub.SetPendingLimits(messages, bytes); err != nil {
		unsubscribe()
		return nil, err
	}
	context.AfterFunc(ctx, unsubscribe)
	return sub, nil
}

// serve listens, and returns an error if the broker does not permit that.
func (c *Conn) serve(ctx context.Context, subject string, messages, bytes int, receive func(*nats.Msg)) error {
	sub, err := c.listen(ctx, subject, messages, bytes, receive)
	if err != nil {
		return explain(err)
	}
	if err := c.permissions.permitted(ctx, "subscription", subject); err != nil {
		_ = sub.Unsubscribe()
		return refused(explain(err))
	}
	return nil
}
