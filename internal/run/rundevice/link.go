package rundevice

import (
	"context"
	"time"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/relayclient"
)

// A link reaches the broker for a publisher: by itself, or through a relay.
type link interface {
	stream.Transport
	Connected() bool
	Close()
}

func (c Config) connect(ctx context.Context) (link, error) {
	if c.shared != nil {
		return c.shared, nil
	}
	if c.Relay.URL == "" {
		conn, err := c.Broker.Connect(ctx, "panlearn publisher", c.Logger)
		if err != nil {
			return nil, err // and no link that is a nil connection
		}
		return conn, nil
	}
	c.Relay.Log = c.Logger
	client, err := relayclient.New(c.Relay)
	if err != nil {
		return nil, err
	}
	return client, nil
}

// A lent link is another one's, which closes it.
type lent struct{ link }

// Close does nothing.
func (lent) Close() {}

// observed returns what the metrics show of a link. A relay's certificate is not among it: those who watch web servers watch it.
func observed(conn link, clock *run.Clock) obs.Broker {
	if own, is := conn.(lent); is {
		conn = own.link
	}
	if conn, ok := conn.(*natsjs.Conn); ok {
		return run.Observed(conn, clock)
	}
	return obs.Broker{Connected: conn.Connected, Clock: clock.Ahead,
		Certificates: func() (own time.Time, servers map[string]time.Time) { return own, nil }}
}
