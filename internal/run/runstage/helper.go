package runstage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/stream/natsjs"
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
	c.Logger.Info("looking for the task's streams, which learner provision makes for a task file with privacy.trust: split",
		"task", c.Task)
	return c.on(ctx, conn, obs.NewRegistry(), uncaught, func(serving context.Context, group *errgroup.Group,
		shown many.Shown) {
		if c.HTTP != nil {
			c.Logger.Info("serving", "http", "http://"+c.HTTP.Addr().String())
			group.Go(func() error { return obs.Serve(serving, c.HTTP, shown.Handler) })
		}
	})
}

// RunManyHelpers runs a helper for each task of a list until ctx is done, on one connection and with one folder. c is
// what all have in common; its Task is not used. Tasks of one operator are passed over.
func RunManyHelpers(ctx context.Context, c HelperConfig, list many.List) error {
	if c.HTTP != nil {
		defer c.HTTP.Close() // where nothing serves it yet
	}
	conn, err := c.Broker.Connect(ctx, "panlearn helper of many tasks", c.Logger)
	if err != nil {
		return err
	}
	defer conn.Close()
	ofTwo := many.Only(list, func(e many.Entry) bool { return e.Spec.Privacy.Operators != nil })
	fleet := many.New(many.Config{List: ofTwo, Logger: c.Logger,
		Starting: "It looks for the task's streams, " + makers + ".",
		Run: func(ctx context.Context, e many.Entry, seat *many.Seat) error {
			one := c
			one.Task, one.HTTP, one.Logger = e.Name, nil, c.Logger.With("task", e.Name)
			show := func(_ context.Context, _ *errgroup.Group, shown many.Shown) { seat.Show(shown) }
			err := one.on(ctx, conn, seat.Registry, seat.Caught, show)
			if lasting(err) || errors.Is(err, folder.ErrOlder) {
				return many.Lasting(err)
			}
			return err
		}})
	return fleet.Serve(ctx, c.HTTP, "helpers", run.Connected(conn.Connected))
}

// on runs the helper of a task on a connection until ctx is done. show is called once it runs; what show starts in the
// group ends with serving. What runs in a goroutine goes through caught.
func (c HelperConfig) on(ctx context.Context, conn *natsjs.Conn, registry *prometheus.Registry,
	caught func(func() error) error, show func(serving context.Context, group *errgroup.Group, shown many.Shown)) error {
	clock := new(run.Clock)
	if err := obs.NewBroker(registry, string(c.Task), run.Observed(conn, clock)); err != nil {
		return err
	}
	if err := natsadmin.WaitStreams(ctx, conn, c.Task, time.Second); err != nil {
		return err
	}
	var h *helper.Helper
	metrics, err := obs.NewHelper(registry, string(c.Task), func() helper.Status { return h.Status() })
	if err != nil {
		return err
	}
	c.Observer = observe.All(metrics, c.Observer)
	c.Records, c.Exchange, c.Limits = conn, conn, conn.Limits()
	if h, err = helper.New(c.Config); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	trouble := func() (string, time.Time) {
		s := h.Status()
		return s.Trouble, s.Troubled
	}
	show(serving, group, many.Shown{
		Handler: obs.Endpoints(registry, nil, run.Ready(conn.Connected, c.Lease, trouble),
			obs.HelperStatus(h.Status, clock.Ahead)),
		Line: func() (string, bool) {
			if cause, since := trouble(); cause != "" {
				return fmt.Sprintf("For %v: %s", time.Since(since).Round(time.Second), cause), true
			}
			return h.Status().Phase, false
		},
	})
	group.Go(func() error {
		defer stop()
		return caught(func() error { return h.Run(ctx) })
	})
	return group.Wait()
}
