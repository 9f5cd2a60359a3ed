package run

import (
	"context"
	"errors"
	"time"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// Connect connects to a broker, and tries for wait where none answers yet: processes that are started together need not be
// started in order. Later losses of the connection are natsjs's business.
func Connect(ctx context.Context, c natsjs.ConnectConfig, wait time.Duration) (*natsjs.Conn, error) {
	deadline := time.Now().Add(wait)
	for {
		conn, err := natsjs.Connect(c)
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
