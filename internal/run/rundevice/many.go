package rundevice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// Placeholder is replaced by the name of a task in the Data, and in the issuer's address, of a publisher of many tasks.
const Placeholder = "{task}"

// A TaskSummary holds what became of the rows of a task.
type TaskSummary struct {
	Task stream.Task `json:"task"`
	device.Summary
}

// PublishMany publishes for each task of a list, on one link and with one StateDir, until ctx is done. c is what all
// have in common: its Task and Spec are not used, and its Data and its issuer's URL name the task by Placeholder. ended
// is called with the summary of a task after all its rows are settled. It closes c.Metrics.
func PublishMany(ctx context.Context, c Config, list many.List, ended func(TaskSummary)) error {
	return c.each(ctx, list, ended, "It reads the task and its data.", "All its rows are settled.", Publish)
}

// each runs publish for each task of a list, with what all have in common and what is the task's own. starting and over
// are of many.Config.
func (c Config) each(ctx context.Context, list many.List, ended func(TaskSummary), starting, over string,
	publish func(context.Context, Config) (device.Summary, error)) error {
	if c.Metrics != nil {
		defer c.Metrics.Close() // where nothing serves it yet
	}
	if c.StateDir == "" {
		return ErrNoState
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ofGrants := c.Grants
	books := &books{dir: c.StateDir}
	fleet := many.New(many.Config{List: list, Logger: c.Logger, Starting: starting, Over: over,
		Run: func(ctx context.Context, e many.Entry, seat *many.Seat) error {
			one := c
			one.Task, one.Spec, one.Logger = e.Name, e.Spec, c.Logger.With("task", e.Name)
			one.shared, one.seat, one.Metrics, one.Watch, one.Grants = conn, seat, nil, new(Watch), nil
			one.Data = strings.ReplaceAll(c.Data, Placeholder, string(e.Name))
			if asks, is := ofGrants.(grants.Gateway); is && e.Spec.Grants.Needed() {
				asks.URL = strings.ReplaceAll(asks.URL, Placeholder, string(e.Name))
				one.Grants = asks
			}
			var err error
			if one.Data != "" {
				if one.Source, err = filepath.Abs(one.Data); err != nil {
					return err
				}
			}
			if one.ledger, err = books.open(); err != nil {
				return fmt.Errorf("--state: %w", err)
			}
			summary, err := publish(ctx, one)
			if err != nil && ctx.Err() == nil {
				books.drop(one.ledger) // it may have failed, and is then of no more use
			}
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case lasting(err):
				return many.Lasting(err)
			case err == nil:
				ended(TaskSummary{e.Name, summary})
			}
			return err
		}})
	return fleet.Serve(ctx, c.Metrics, "publishers", func() error {
		if !conn.Connected() {
			return natsjs.ErrUnreachable
		}
		return nil
	})
}

// Books hold the ledger of a state folder, which all tasks of a process share: hundreds that lock its file from each
// other would wait for longer than any of them is patient.
type books struct {
	dir    string
	mu     sync.Mutex
	ledger *filestore.Ledger
}

func (b *books) open() (*filestore.Ledger, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ledger != nil {
		return b.ledger, nil
	}
	var err error
	b.ledger, err = filestore.OpenLedger(b.dir) // nil on error
	return b.ledger, err
}

// drop has the next task open the ledger again, where that is the one in use.
func (b *books) drop(ledger *filestore.Ledger) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ledger == ledger {
		b.ledger = nil
	}
}

// lasting reports whether a publisher that was started again would fail alike.
func lasting(err error) bool {
	var (
		refused *consent.RefusedError
		schema  *source.SchemaError
		field   *task.FieldError
		config  *natsjs.ConfigError
	)
	return errors.As(err, &refused) || errors.As(err, &schema) || errors.As(err, &field) || errors.As(err, &config) ||
		errors.Is(err, ErrNoKey)
}

// line describes in a sentence what a publisher of many does, and whether somebody has to look.
func (c *Config) line(p *device.Progress) (line string, wrong bool) {
	if cause, since := unready(p); cause != "" {
		return fmt.Sprintf("For %v: %s", time.Since(since).Round(time.Second), cause), true
	}
	c.Watch.mu.Lock()
	waits, _ := c.Watch.waits(time.Now())
	c.Watch.mu.Unlock()
	return fmt.Sprintf("%d of %d events counted. %s", p.Summary.Counted, p.Summary.Events, cmp.Or(waits, "It sends.")),
		false
}
