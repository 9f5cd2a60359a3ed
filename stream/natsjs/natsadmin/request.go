package natsadmin

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream/natsjs"
)

// Subjects of JetStream's API that are asked by name, to know which of them the broker denied.
const (
	apiStreamInfo     = "$JS.API.STREAM.INFO."
	apiStreamCreate   = "$JS.API.STREAM.CREATE."
	apiStreamDelete   = "$JS.API.STREAM.DELETE."
	apiStreamPurge    = "$JS.API.STREAM.PURGE."
	apiConsumerInfo   = "$JS.API.CONSUMER.INFO."
	apiConsumerCreate = "$JS.API.CONSUMER.CREATE."
	apiAccountInfo    = "$JS.API.INFO"
	directGet         = "$JS.API.DIRECT.GET."
)

// forbidden returns natsjs.ErrDenied if, by the broker's word, these credentials may not publish on a subject, so that
// the attempt leaves no violation in its log.
func forbidden(ctx context.Context, c *natsjs.Conn, subject string) error {
	if c.Permissions().Forbidden(ctx, subject) {
		return fmt.Errorf("%w: publish to %s", natsjs.ErrDenied, subject)
	}
	return nil
}

// streamInfo returns a stream's configuration and state; another error than natsjs.ErrNoStream or natsjs.ErrDenied may
// pass.
func streamInfo(ctx context.Context, c *natsjs.Conn, name string) (info *jetstream.StreamInfo, err error) {
	if err := forbidden(ctx, c, apiStreamInfo+name); err != nil {
		return nil, err
	}
	err = c.Admin().Call(ctx, apiStreamInfo+name, func(ctx context.Context) error {
		s, err := c.Admin().JetStream().Stream(ctx, name)
		if err == nil {
			info = s.CachedInfo()
		}
		return err
	})
	return info, err
}

func consumerInfo(ctx context.Context, c *natsjs.Conn, name string) (info *jetstream.ConsumerInfo, err error) {
	request := apiConsumerInfo + name + "." + natsjs.Durable
	if err := forbidden(ctx, c, request); err != nil {
		return nil, err
	}
	err = c.Admin().Call(ctx, request, func(ctx context.Context) error {
		consumer, err := c.Admin().JetStream().Consumer(ctx, name, natsjs.Durable)
		if err == nil {
			info = consumer.CachedInfo()
		}
		return err
	})
	return info, err
}
