// Package stage wires the shuffle stage of a task together for `ingest shuffle`: the broker, the loop of shuffle/stage, metrics and logs.
package stage

import (
	"github.com/panlearn/panlearn/internal/run"

	"context"
	"crypto/ed25519"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
)

// Config is `ingest shuffle`.
type Config struct {
	Task       stream.Task
	Broker     natsjs.ConnectConfig
	BrokerWait time.Duration // how long a broker that does not answer yet is waited for
	Identity   *seal.Identity
	LearnerKey ed25519.PublicKey // nil: trust on first use
	Marks      stage.Marks       // nil: in memory
	Lease      time.Duration     // how long a silent stage keeps others waiting; 0: stage.DefaultLeaseTTL
	Drain      time.Duration     // how long an open attempt goes on after ctx is done; see stage.Config
	HTTP       net.Listener      // nil: none; Run closes it
	Fill       func(users, cohort uint64)
	Logger     *slog.Logger
}

// Run runs a stage until the task ends (nil) or ctx is done.
func Run(ctx context.Context, c Config) error {
	if c.HTTP != nil {
		defer c.HTTP.Close() // where nothing serves it yet
	}
	c.Broker.Log, c.Broker.Name = c.Logger, "panlearn stage "+string(c.Task)
	conn, err := run.Connect(ctx, c.Broker, c.BrokerWait)
	if err != nil {
		return err
	}
	defer conn.Close()
	registry := obs.NewRegistry()
	observer, err := obs.NewStage(registry, string(c.Task))
	if err != nil {
		return err
	}
	reports := new(obs.Reports)
	counter := observer.Report
	observer.Report = func(reason stage.Reason) {
		counter(reason)
		reports.Add(reason)
	}
	if c.Fill != nil {
		metric := observer.Fill
		observer.Fill = func(users, cohort uint64) {
			metric(users, cohort)
			c.Fill(users, cohort)
		}
	}
	c.Logger.Info("looking for the task's streams, which learner provision makes, or learner run where its credentials may", "task", c.Task)
	if err := natsjs.WaitStreams(ctx, conn, c.Task, time.Second); err != nil {
		return err
	}
	reader, err := conn.Reader(ctx, c.Task)
	if err != nil {
		return err
	}
	s, err := stage.New(stage.Config{Task: c.Task, Records: conn, Reports: reader, Identity: c.Identity,
		LearnerKey: c.LearnerKey, Marks: c.Marks, Limits: conn.Limits(), LeaseTTL: c.Lease, Observer: observer, Logger: c.Logger,
		Drain: c.Drain})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // also while the stage drains
	defer stop()
	if err := obs.StatusMetrics(registry, string(c.Task), s.Status); err != nil {
		return err
	}
	group.Go(func() error {
		logWaiting(serving, c.Logger, s.Status, waitingEvery)
		return nil
	})
	if c.HTTP != nil {
		c.Logger.Info("serving", "http", "http://"+c.HTTP.Addr().String())
		group.Go(func() error {
			return obs.Serve(serving, c.HTTP, obs.Endpoints(registry, nil, run.Connected(conn), obs.Status(s.Status, reports)))
		})
	}
	group.Go(func() error {
		defer stop()
		return s.Run(ctx)
	})
	return group.Wait()
}

// waitingEvery is how often a round that waits is logged.
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
			logger.Info(line, "task", s.Task, "round", s.Round, "attempt", s.Attempt)
		}
	}
}
