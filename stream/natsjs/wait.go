package natsjs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"
)

// Pauses of ConnectWait: between tries, and between the times that it says so.
const (
	tryAgain  = 200 * time.Millisecond
	sayAgain  = time.Minute
	sayLonger = time.Second // a broker that is starting is worth no line
)

// ConnectWait connects to a broker as Connect does, and waits for one that does not answer until ctx ends, which it says
// in the log. When its time is over, the error of the last try is returned, else the error of ctx. A configuration that
// cannot work, and a broker that refuses us, are errors at once.
func ConnectWait(ctx context.Context, c ConnectConfig) (*Conn, error) {
	said := time.Now().Add(sayLonger - sayAgain)
	for {
		conn, err := Connect(c)
		if !errors.Is(err, ErrUnreachable) {
			return conn, err
		}
		if time.Since(said) >= sayAgain {
			said = time.Now()
			cmp.Or(c.Log, slog.New(slog.DiscardHandler)).Warn("waiting for the broker", "error", err)
		}
		select {
		case <-time.After(tryAgain):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, err
			}
			return nil, ctx.Err()
		}
	}
}
