// Package runadmin is what an administrator does around a task: make and remove its streams, look whether all is well,
// end it, and put its state folder aside and back. None of it decides anything about privacy.
package runadmin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/relayclient"
)

// Config configures `learner provision` and `learner doctor`.
type Config struct {
	Task     stream.Task // empty for a doctor who looks at the broker alone
	Spec     *task.Spec  // nil: the sizes of the task's messages are not known
	Broker   run.Broker
	Replicas int

	MemoryReports bool               // of a new task's streams; see run.Provision
	ReportBytes   int64              // of a new task's reports that wait at the broker; 0: what the plan's reports take
	Role          natsadmin.Role     // doctor: of the credentials, empty to find out
	StateDir      string             // doctor: of the learner; empty: not looked at
	silence       time.Duration      // doctor: how long that learner may take to begin an answer; 0: see statedir.Where
	Routes        []string           // doctor: host:port of the links between the broker's servers; see admin.Expect
	Relay         relayclient.Config // doctor: in front of the broker; without an address: not looked at
	Logger        *slog.Logger
}

// sizes returns the sizes of the task's messages, zero without a task file.
func (c Config) sizes() (manifest.Sizes, error) {
	if c.Spec == nil {
		return manifest.Sizes{}, nil
	}
	job, err := run.NewJob(c.Spec)
	if err != nil {
		return manifest.Sizes{}, err
	}
	body, err := job.Wire()
	if err != nil {
		return manifest.Sizes{}, err
	}
	return manifest.SizesOf(body, stage.ReasonNames())
}

func (c Config) connect(ctx context.Context) (*natsjs.Conn, error) {
	return c.Broker.Connect(ctx, "panlearn administrator", c.Logger)
}

// options returns the options of the streams that provisioning makes.
func (c Config) options(sizes manifest.Sizes) natsadmin.Options {
	return run.Options(sizes, c.Replicas, c.MemoryReports, c.ReportBytes)
}

// Provision creates a task's streams and consumers with an administrator's credentials, and returns all of them. What
// is there already stays, if the guarantees hold on it.
func Provision(ctx context.Context, c Config) ([]natsadmin.StreamState, error) {
	sizes, err := c.sizes()
	if err != nil {
		return nil, err
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := sizes.Fit(conn.Limits()); err != nil {
		return nil, err
	}
	list, err := natsadmin.ProvisionAll(ctx, conn, c.Task, c.options(sizes))
	for _, s := range list {
		if s.PerAttempt > 0 && s.PerAttempt < sizes.Waiting && c.Logger != nil {
			c.Logger.Warn("the stream of reports holds fewer than four cohorts: after a pause of the stage devices are refused, "+
				"and send again; --report-bytes makes a new one larger", "stream", s.Name, "fits", s.PerAttempt,
				"four_cohorts", sizes.Waiting)
		}
	}
	return list, err
}

// Remove deletes a task's streams with an administrator's credentials, and returns which were there. Unless force is
// set the task must have ended, by the word of its own learner.
func Remove(ctx context.Context, c Config, force bool) ([]string, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if !force {
		if err := ended(ctx, conn, c.Task); err != nil && !errors.Is(err, natsjs.ErrNoStream) { // without it there is no task
			return nil, err
		}
	}
	return natsadmin.Remove(ctx, conn, c.Task)
}
