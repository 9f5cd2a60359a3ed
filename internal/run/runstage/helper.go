package runstage

import (
	"context"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// HelperConfig configures `ingest shuffle --role helper`. Records, Exchange and Limits are made from the broker.
type HelperConfig struct {
	helper.Config
	Broker run.Broker
	HTTP   net.Listener // nil: none; RunHelper closes it
}

// RunHelper runs the helper of a task of two operators until the task ends (nil) or ctx is done.
func RunHelper(ctx context.Context, c HelperConfig) error {
	if c.HTTP != nil {
		defer c.HTTP.Close() // where nothing serves it yet
	}
	conn, err := c.Broker.Connect(ctx, "panlearn helper "+string(c.Task), c.Logger)
	if err != nil {
		return err
	}
	defer conn.Close()
	registry, clock := obs.NewRegistry(), new(run.Clock)
	if err := obs.NewBroker(registry, string(c.Task), run.Observed(conn, clock)); err != nil {
		return err
	}
	var h *helper.Helper
	metrics, err := obs.NewHelper(registry, string(c.Task), func() helper.Status { return h.Status() })
	if err != nil {
		return err
	}
	c.Observer = observe.All(metrics, c.Observer)
	c.Logger.Info("looking for the task's streams, which learner provision makes for a task file with privacy.trust: split",
		"task", c.Task)
	if err := natsadmin.WaitStreams(ctx, conn, c.Task, time.Second); err != nil {
		return err
	}
	c.Records, c.Exchange, c.Limits = conn, conn, conn.Limits()
	if h, err = helper.New(c.Config); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	if c.HTTP != nil {
		c.Logger.Info("serving", "http", "http://"+c.HTTP.Addr().String())
		group.Go(func() error {
			return obs.Serve(serving, c.HTTP, obs.Endpoints(registry, nil, run.Ready(conn.Connected, c.Lease,
				func() (string, time.Time) {
					s := h.Status()
					return s.Trouble, s.Troubled
				}), obs.HelperStatus(h.Status, clock.Ahead)))
		})
	}
	group.Go(func() error {
		defer stop()
		return h.Run(ctx)
	})
	return group.Wait()
}
