package runlearner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/dashboard"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/wire"
)

// serverFolder is the folder in which RunMany keeps an embedded server's streams: no task has such a name.
const serverFolder = "nats.server"

// What a learner of many tasks does for each of them now and then is rarer than in a learner of one, for which it is
// most of the work while nobody reports. A reconnection has all streams checked at once.
const (
	manyPeersEvery = 5 * time.Second
	manyMendEvery  = 30 * time.Second
)

// RunMany runs the learners of a list of tasks until ctx is done, on one connection. c is what all have in common: its
// Spec is not used, and StateDir has a folder for each task, of its name. memory reports whether a new task's sealed
// reports stay in the broker's memory.
func RunMany(ctx context.Context, c Config, list many.List, memory func(many.Entry) (bool, error)) error {
	if c.HTTP != nil {
		defer c.HTTP.Close() // where nothing serves it yet
	}
	if c.Relay != nil {
		defer c.Relay.Close()
	}
	broker, err := c.connect(ctx, "of many tasks", filepath.Join(c.StateDir, serverFolder))
	if err != nil {
		return err
	}
	defer broker.close()
	group, ctx := errgroup.WithContext(ctx)
	if err := c.attend(ctx, group, &broker); err != nil {
		return err
	}
	plans := make(chan struct{}, runtime.GOMAXPROCS(0))
	fleet := many.New(many.Config{List: list, Logger: c.Logger, Starting: "It opens its state folder, and plans.",
		Run: func(ctx context.Context, e many.Entry, seat *many.Seat) error {
			err := c.member(ctx, e, seat, broker, plans, memory)
			if lasting(err) {
				return many.Lasting(err)
			}
			return err
		}})
	group.Go(func() error { return fleet.Serve(ctx, c.HTTP, "learners", run.Connected(broker.conn.Connected)) })
	return group.Wait()
}

// member runs the learner of one task of many. plans has room for those that plan at one time: a plan takes much
// memory.
func (c Config) member(ctx context.Context, e many.Entry, place *many.Seat, broker brokerage, plans chan struct{},
	memory func(many.Entry) (bool, error)) (err error) {
	defer func() {
		if errors.Is(err, state.ErrFailed) { // and Pebble may still work on the folder, so that its lock stays
			err = many.Lasting(fmt.Errorf("%w: this process holds the state folder until it ends: see to the disk, and start the process again", err))
		}
	}()
	c.Spec, c.StateDir = e.Spec, filepath.Join(c.StateDir, string(e.Name))
	if c.MemoryReports, err = memory(e); err != nil {
		return many.Lasting(err)
	}
	at := seat{broker: broker, registry: place.Registry, peers: manyPeersEvery, mends: manyMendEvery}
	if c.HTTP != nil {
		at.show = place.Show
	}
	at.caught = place.Caught
	return Hold(ctx, c.StateDir, c.named(), func(ctx, serving context.Context, group *errgroup.Group, store state.Store,
		finish *service.Finisher, history *service.History) error {
		at.serving, at.group, at.store, at.finish, at.history = serving, group, store, finish, history
		return place.Caught(func() error { // here, so that Hold closes the store
			planned, expected, err := c.plan(ctx, store, plans)
			if err != nil {
				return err
			}
			return c.on(ctx, at, planned, expected)
		})
	})
}

// plan plans or resumes, with as many others at a time as plans has room for.
func (c Config) plan(ctx context.Context, store state.Store, plans chan struct{}) (*wire.Task, *dashboard.Expected,
	error) {
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case plans <- struct{}{}:
	}
	defer func() { <-plans }()
	return TaskOf(ctx, store, c.Spec)
}

// lasting reports whether a learner that was started again would fail alike.
func lasting(err error) bool {
	var (
		budget  *state.BudgetError
		version *state.VersionError
		config  *natsjs.ConfigError
	)
	return errors.As(err, &budget) || errors.As(err, &version) || errors.As(err, &config) ||
		errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrPin)
}
