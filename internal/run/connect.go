package run

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// A Broker is how to reach one.
type Broker struct {
	natsjs.ConnectConfig
	Wait time.Duration // how long a broker that does not answer yet is waited for
}

// Connect connects under a name, and tries for Wait where no broker answers yet: processes that are started together need not be
// started in order. Later losses of the connection are natsjs's business.
func (b Broker) Connect(ctx context.Context, name string, log *slog.Logger) (*natsjs.Conn, error) {
	b.Name, b.Log = name, log
	deadline := time.Now().Add(b.Wait)
	for {
		conn, err := natsjs.Connect(b.ConnectConfig)
		if !errors.Is(err, natsjs.ErrUnreachable) || !time.Now().Before(deadline) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Connected is a check of readiness.
func Connected(conn *natsjs.Conn) obs.Check {
	return func() error {
		if !conn.Connected() {
			return errors.New("no connection to the broker")
		}
		return nil
	}
}
