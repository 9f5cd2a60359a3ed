// Package runstage wires the shuffle stage of a task together for `ingest shuffle`: the broker, the loop of
// shuffle/stage, metrics and logs.
package runstage

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// Config configures `ingest shuffle`. Records, Reports and Limits are made from the broker.
type Config struct {
	stage.Config
	Broker run.Broker
	HTTP   net.Listener // nil: none; Run closes it
}

// makers names who makes the streams of a task.
const makers = "which learner provision makes, or learner run where its credentials may"

// Run runs a stage until the task ends (nil) or ctx is done.
func Run(ctx context.Context, c Config) error {
	if c.HTTP != nil {
		defer c.HTTP.Close() // where nothing serves it yet
	}
	conn, err := c.Broker.Connect(ctx, "panlearn stage "+string(c.Task), c.Logger)
	if err != nil {
		return err
	}
	defer conn.Close()
	c.Logger = c.Logger.With("task", c.Task)
	c.Logger.Info("looking for the task's streams, " + makers)
	return c.on(ctx, conn, obs.NewRegistry(), uncaught, func(serving context.Context, group *errgroup.Group,
		shown many.Shown) {
		if c.HTTP != nil {
			c.Logger.Info("serving", "http", "http://"+c.HTTP.Addr().String())
			group.Go(func() error { return obs.Serve(serving, c.HTTP, shown.Handler) })
		}
	})
}

// uncaught calls f: a panic ends a process that has one task.
func uncaught(f func() error) error { return f() }

// on runs a stage on a connection, with its metrics in registry, and calls show once it looks at its task. What show
// starts in the group ends with serving. What runs in a goroutine goes through caught.
func (c Config) on(ctx context.Context, conn *natsjs.Conn, registry *prometheus.Registry,
	caught func(func() error) error, show func(serving context.Context, group *errgroup.Group, shown many.Shown)) error {
	metrics, err := obs.NewStage(registry, string(c.Task))
	if err != nil {
		return err
	}
	clock := new(run.Clock)
	if err := obs.NewBroker(registry, string(c.Task), run.Observed(conn, clock)); err != nil {
		return err
	}
	reports := new(obs.Reports)
	c.Observer = observe.All(metrics, stage.Observer{Report: reports.Add}, c.Observer)
	if err := natsadmin.WaitStreams(ctx, conn, c.Task, time.Second); err != nil {
		return err
	}
	reader, err := conn.Reader(ctx, c.Task)
	if err != nil {
		return err
	}
	defer reader.Close() // when the stage has returned, and its last fetch with it
	c.Reports = reader
	c.Records, c.PlaceServer, c.Limits, c.Leader.Exchange = conn, conn, conn.Limits(), conn
	s, err := stage.New(c.Config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // also while the stage drains
	defer stop()
	if err := obs.StatusMetrics(registry, string(c.Task), s.Status); err != nil {
		return err
	}
	begin := func(f func() error) { group.Go(func() error { return caught(f) }) }
	begin(func() error {
		clock.Watch(serving, run.LeaseOf(conn, c.Task), c.Logger)
		return nil
	})
	begin(func() error {
		logWaiting(serving, c.Logger, s.Status, waitingEvery)
		return nil
	})
	show(serving, group, many.Shown{
		Handler: obs.Endpoints(registry, nil, run.Ready(conn.Connected, cmp.Or(c.LeaseTTL, run.Lease),
			func() (string, time.Time) {
				return trouble(s.Status())
			}), obs.Status(s.Status, reports, clock.Ahead)),
		Line:   func() (string, bool) { return line(s.Status()) },
		Status: func() any { return obs.StatusOf(s.Status(), reports) },
	})
	begin(func() error {
		defer stop()
		return s.Run(ctx)
	})
	return group.Wait()
}

// line describes in a sentence what a stage does, and whether somebody has to look.
func line(now stage.Status) (line string, wrong bool) {
	if cause, since := trouble(now); cause != "" {
		return fmt.Sprintf("For %v: %s", time.Since(since).Round(time.Second), cause), true
	}
	if !now.Lease {
		return "Without the lease (" + now.Phase + ")", false
	}
	return cmp.Or(obs.Waiting(now), now.Phase), false
}

// trouble returns the fault that keeps a stage from being ready, and since when.
func trouble(now stage.Status) (cause string, since time.Time) {
	if now.Trouble == "" && now.Lost > 0 {
		return fmt.Sprintf(
			"the broker is %d rounds older than what this stage knows: docs/how-to/runbook.md, state folder and broker of different times", now.Lost), now.LostSince
	}
	return now.Trouble, now.Troubled
}

// waitingEvery is the period at which a waiting round is logged.
const waitingEvery = 30 * time.Second

// logWaiting logs how full the open round is, where that has changed, until ctx is done.
func logWaiting(ctx context.Context, logger *slog.Logger, get func() stage.Status, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s := get()
		if line := obs.Waiting(s); line != "" && line != last {
			last = line
			logger.Info(line, "round", s.Round, "attempt", s.Attempt)
		}
	}
}
