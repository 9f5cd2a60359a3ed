package runstage

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// RunMany runs a stage for each task of a list until ctx is done, on one connection. c is what all have in common; its
// Task is not used, and its folders have files of their own for each task.
func RunMany(ctx context.Context, c Config, list many.List) error {
	if c.HTTP != nil {
		defer c.HTTP.Close() // where nothing serves it yet
	}
	conn, err := c.Broker.Connect(ctx, "panlearn stage of many tasks", c.Logger)
	if err != nil {
		return err
	}
	defer conn.Close()
	fleet := many.New(many.Config{List: list, Logger: c.Logger,
		Starting: "It looks for the task's streams, " + makers + ".",
		Run: func(ctx context.Context, e many.Entry, seat *many.Seat) error {
			one := c
			one.Poll = cmp.Or(c.Poll, c.LeaseTTL/4) // wakes tell what is new; the lease needs as much care
			one.Task, one.HTTP, one.Logger = e.Name, nil, c.Logger.With("task", e.Name)
			show := func(_ context.Context, _ *errgroup.Group, shown many.Shown) { seat.Show(shown) }
			err := one.on(ctx, conn, seat.Registry, seat.Caught, show)
			if lasting(err) {
				return many.Lasting(err)
			}
			return err
		}})
	return fleet.Serve(ctx, c.HTTP, "shuffle stages", run.Connected(conn.Connected))
}

// lasting reports whether a stage that was started again would fail alike.
func lasting(err error) bool {
	var config *natsjs.ConfigError
	return errors.Is(err, stage.ErrFolder) || errors.Is(err, stage.ErrHidden) || errors.As(err, &config) ||
		errors.Is(err, fs.ErrNotExist)
}
