package natsjs

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// probeStream is a stream that nobody has: a message that expects it is stored nowhere, and a request that names it finds
// nothing.
const probeStream = "PANLEARN_probe"

// probe asks whether we may publish on a subject that a stream listens on, and stores nothing: the message expects another
// stream, so the one that is there refuses it. nil: we may.
func (c *Conn) probe(ctx context.Context, subject string) error {
	err := c.call(ctx, subject, func(ctx context.Context) error {
		m := nats.NewMsg(subject)
		m.Header.Set(jetstream.ExpectedStreamHeader, probeStream)
		_, err := c.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		return err
	})
	switch {
	case code(err) == codeStreamMismatch:
		return nil
	case err == nil:
		return fmt.Errorf("probe of %s: a stream stored what expects another stream", subject)
	}
	return err
}
