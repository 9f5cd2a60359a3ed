package natsjs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// ErrUnavailable means that the broker is there and cannot answer now: its cluster has no leader, or elects one. It
// will answer later.
var ErrUnavailable = errors.New("the broker has no leader now: it answers when a majority of its cluster runs")

// Transient reports whether waiting may mend an error, without anybody changing anything. A missing stream counts,
// because somebody else may be about to create it.
func Transient(err error) bool {
	return errors.Is(err, ErrNoStream) || errors.Is(err, ErrUnavailable) || errors.Is(err, errNoAnswer) ||
		errors.Is(err, stream.ErrDisconnected) || errors.Is(err, nats.ErrDisconnected) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) ||
		errors.Is(err, nats.ErrTimeout)
}

// Pauses between tries.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// lastInsistence bounds the pause between tries: long enough that many processes do not hurt a broker that comes up.
const lastInsistence = 5 * time.Second

// Retry tries until something other than waiting is needed, or ctx ends: a cluster elects leaders, a node restarts.
// What it tries must be safe to repeat; what names it in log and errors, and worth says which errors waiting may mend.
func (a *Admin) Retry(ctx context.Context, what string, worth func(error) bool, try func() error) error {
	var trouble stream.Trouble
	for pause := firstPause; ; {
		err := try()
		if err == nil || ctx.Err() != nil || !worth(err) {
			return err
		}
		if pause >= lastPause && trouble.Tell(time.Now(), err) { // an election of a second or two is no news
			a.log.Warn("the broker cannot answer yet, trying again", "call", what, "error", err)
		}
		sleep(ctx, pause)
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		}
		pause = min(2*pause, lastInsistence)
	}
}

// Leaderless reports whether an error is a transient one of a stream or consumer that was created.
func Leaderless(err error) bool {
	return Transient(err) && Code(err) != codeStreamNotFound && Code(err) != codeConsumerNotFound
}

// sleep waits for pause, or for ctx, and returns the next pause.
func sleep(ctx context.Context, pause time.Duration) time.Duration {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
	return min(2*pause, lastPause)
}

// reconnects chooses where and when a connection that was lost is made again.
type reconnects struct {
	least time.Duration
	over  atomic.Int64 // nanoseconds, see Spread
}

// Spread implements stream.Spreader. Where a time is set, every try to connect again waits, the first one too, and
// goes to a server by chance: a client library that knows several servers would try the others at once, and so would
// all the clients of the one that died.
func (c *Conn) Spread(over time.Duration) { c.reconnects.over.Store(int64(over)) }

// server chooses where to connect again and when; nil leaves it to the library.
func (r *reconnects) server(pool []nats.Server, _ nats.ServerInfo) (*nats.Server, time.Duration) {
	over := time.Duration(r.over.Load())
	if over <= 4*r.least || len(pool) == 0 {
		return nil, 0
	}
	return &pool[rand.IntN(len(pool))], comeBack(r.least, over)
}

// comeBack returns a pause with jitter.
func comeBack(least, over time.Duration) time.Duration {
	return least + time.Duration(rand.Int64N(int64(max(over, 1))))
}
