package natsjs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// ErrUnavailable says that the broker is there and cannot answer now: its cluster has no leader, or elects one. It answers
// later.
var ErrUnavailable = errors.New("the broker has no leader now: it answers when a majority of its cluster runs")

// transient says whether waiting may mend an error: nobody has to change anything. A stream that is not there counts,
// because somebody else may be about to create it.
func transient(err error) bool {
	return errors.Is(err, ErrNoStream) || errors.Is(err, ErrUnavailable) || errors.Is(err, errNoAnswer) ||
		errors.Is(err, stream.ErrDisconnected) || errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrReconnectBufExceeded) ||
		errors.Is(err, nats.ErrTimeout)
}

// lastInsistence bounds the pause between tries: long enough that many processes do not hurt a broker that comes up.
const lastInsistence = 5 * time.Second

// insist tries until something other than waiting is needed, or ctx ends: a cluster elects leaders, a node restarts.
// What it tries must be safe to repeat.
func (c *Conn) insist(ctx context.Context, what string, wanted func(error) bool, try func() error) error {
	var trouble stream.Trouble
	for pause := firstPause; ; {
		err := try()
		if err == nil || ctx.Err() != nil || !wanted(err) {
			return err
		}
		if pause >= lastPause && trouble.Tell(time.Now(), err) { // an election of a second or two is no news
			c.config.Log.Warn("the broker cannot answer yet, trying again", "call", what, "error", err)
		}
		sleep(ctx, pause)
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		}
		pause = min(2*pause, lastInsistence)
	}
}

// leaderless is a transient error of what is there: its stream or consumer was created.
func leaderless(err error) bool {
	return transient(err) && code(err) != codeStreamNotFound && code(err) != codeConsumerNotFound
}
