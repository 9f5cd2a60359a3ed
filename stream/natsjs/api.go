package natsjs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Subjects of JetStream's API that we ask by name, to know which of them the broker denied.
const (
	apiStreamInfo     = "$JS.API.STREAM.INFO."
	apiStreamCreate   = "$JS.API.STREAM.CREATE."
	apiStreamPurge    = "$JS.API.STREAM.PURGE."
	apiConsumerInfo   = "$JS.API.CONSUMER.INFO."
	apiConsumerCreate = "$JS.API.CONSUMER.CREATE."
	apiAccountInfo    = "$JS.API.INFO"
)

// api asks JetStream's API: for calls whose wrappers in the client library first ask what a role may not know.
func (c *Conn) api(ctx context.Context, subject string, request, response any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("request %s: %w", subject, err)
	}
	wait, cancel := c.ask(ctx, subject)
	defer cancel()
	m, err := c.nc.RequestWithContext(wait, subject, body)
	if err != nil {
		return explain(c.outcome(ctx, wait, err))
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := errors.Join(json.Unmarshal(m.Data, &failed), json.Unmarshal(m.Data, response)); err != nil {
		return errors.New("the broker's answer is not JSON")
	}
	if failed.Error != nil {
		return explain(failed.Error)
	}
	return nil
}

// call makes one call of the client library whose request goes to subject.
func (c *Conn) call(ctx context.Context, subject string, do func(context.Context) error) error {
	wait, cancel := c.ask(ctx, subject)
	defer cancel()
	return explain(c.outcome(ctx, wait, do(wait)))
}

// streamInfo is a stream's configuration and state; another error than ErrNoStream or ErrDenied may pass.
func (c *Conn) streamInfo(ctx context.Context, name string) (info *jetstream.StreamInfo, err error) {
	err = c.call(ctx, apiStreamInfo+name, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, name)
		if err == nil {
			info = s.CachedInfo()
		}
		return err
	})
	return info, err
}

func (c *Conn) consumerInfo(ctx context.Context, name, durable string) (info *jetstream.ConsumerInfo, err error) {
	err = c.call(ctx, apiConsumerInfo+name+"."+durable, func(ctx context.Context) error {
		consumer, err := c.js.Consumer(ctx, name, durable)
		if err == nil {
			info = consumer.CachedInfo()
		}
		return err
	})
	return info, err
}
