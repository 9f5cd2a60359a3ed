// Package rundevice wires a publisher of reports together for `ingest publish`: rows of a file, or events posted over
// HTTP, a client with its participation and ledger, and the broker.
package rundevice

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/inspection"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/device/statefolder"
	"github.com/panlearn/panlearn/stream/relayclient"
)

// Config configures `ingest publish`. Records, Reports, Store, Ledger and Limits are made from the broker and
// StateDir. Source is the absolute path of Data, "-", or empty if every row is new; see source.Open for patterns.
// Without Spec the announced declaration is used.
type Config struct {
	device.Settings
	Data     string // file, pattern of files, or - for standard input
	Live     bool   // Data are read again in later runs, from another place: rows need keys
	Format   task.Format
	StateDir string // empty: participation is forgotten at the end
	Broker   run.Broker
	Relay    relayclient.Config // instead of Broker, where it has an address
	Metrics  net.Listener       // for /metrics, /healthz and /readyz; nil: none

	shared link              // of a process of many tasks; nil: one of its own
	ledger *filestore.Ledger // of StateDir, in it; nil: opened here
	seat   *many.Seat        // in it
	// Marks is a folder of this machine's, outside of StateDir, that remembers how far state folders were written; see
	// statefolder.MarksFolder. Empty: none does, and a StateDir that is put back from a copy is not noticed.
	Marks string

	Watch *Watch // sees what is done; nil: nobody looks
	// Publish ends with an *ImpatientError when nothing came on for so long, after the end of a stream; 0: never
	Patience time.Duration
}

// ErrNoKey refuses a live stream with rows that cannot be distinguished from rows of an earlier run.
var ErrNoKey = errors.New(
	"--live: the task declares no events.key: rows that come again after a restart would be people again. " +
		"Name the column that identifies an event in events.key, post events to --http under keys of their own, or publish a file by its position")

// ErrNoState refuses a silo without a state folder, which would forget which rows it has reported about, and with how
// much noise: a second run would draw new reports about the same rows.
var ErrNoState = errors.New(
	"--state: name a folder: the task is of organisations, whose rows are in as many reports as it says and no more, over restarts, too; " +
		"the folder keeps which rows were in one, and the noise that hides them")

// Publish sends the rows of Data until they end or the task does. A file with a header that does not match the
// declaration is refused before anything is sent.
func Publish(ctx context.Context, c Config) (summary device.Summary, err error) {
	if c.Watch == nil {
		c.Watch = new(Watch)
	}
	ctx, stop := c.guard(ctx)
	defer func() {
		stop()
		var impatient *ImpatientError
		if errors.As(context.Cause(ctx), &impatient) {
			err = impatient
		} else {
			err = c.explained(err)
		}
	}()
	var rows *source.Reader
	c.Rows = true
	if c.Spec != nil { // check the data before anybody waits for it
		if rows, err = c.open(c.Spec); err != nil {
			return summary, err
		}
		defer rows.Close()
	}
	devices, release, err := c.devices(ctx)
	if err != nil {
		return summary, err
	}
	defer func() { err = errors.Join(err, release()) }()
	defer devices.Close() // Run closes it too; its error is Run's
	if rows == nil {
		agreement, err := devices.Agreement(ctx)
		if err != nil {
			return summary, err
		}
		if rows, err = c.open(agreement.Spec); err != nil {
			return summary, err
		}
		defer rows.Close()
	}
	if err := c.expect(ctx, devices); err != nil {
		return summary, err
	}
	defer c.Watch.end()
	return devices.Run(ctx, c.Watch.rows(advised(rows, c.Logger)))
}

// expect counts the rows of files, so that several publishers share each round. What can be read once alone is not
// counted.
func (c Config) expect(ctx context.Context, devices *device.Device) error {
	agreement, err := devices.Agreement(ctx)
	if err != nil {
		return err
	}
	if s := agreement.Spec; agreement.HasGrants() && s.Events.Key == "" && !s.Privacy.ByUser() {
		return consent.Refuse("grants", "pass", "events.key or user.column, which names the person of a row: the issuer gives "+
			"each person one token")
	}
	n, err := c.count(ctx, agreement.Spec)
	if n > 0 && err == nil {
		devices.Expect(n)
	}
	return err
}

// count reads the data to their end and returns the number of rows or, if people are protected, of people. It returns
// 0 for data that are not files, which it does not touch. It returns an error if the data break off; then nothing of
// them is sent.
func (c Config) count(ctx context.Context, declared *task.Spec) (n uint64, err error) {
	spec, err := c.reads(declared)
	if err != nil {
		return 0, err
	}
	if files, err := source.Files(c.Data, spec); err != nil || !files {
		return 0, err
	}
	rows, err := c.open(declared)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	people := make(map[string]bool)
	for row, err := range rows.All() {
		var invalid *task.RowError
		if err != nil && !errors.As(err, &invalid) {
			return 0, err
		}
		if declared.Privacy.ByUser() {
			if row.User == "" || people[row.User] {
				continue
			}
			people[row.User] = true
		}
		if n++; n%(1<<16) == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
	return n, nil
}

// advised yields the rows unchanged, and logs columns that none of the first ones has.
func advised(rows *source.Reader, log *slog.Logger) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		n := 0
		for row, err := range rows.All() {
			if n++; n == advisedAfter && len(rows.Unknown()) > 0 {
				log.Warn(
					"no row so far has these columns: are their names right? ingest publish --check looks at data and sends nothing",
					"columns", rows.Unknown())
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// advisedAfter is the number of rows after which the log names columns that no row had.
const advisedAfter = 16

// devices returns the client with its broker, store and ledger; release closes these, after the client.
func (c Config) devices(ctx context.Context) (devices *device.Device, release func() error, err error) {
	closeStore, err := c.openFolder()
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeStore())
		}
	}()
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	if c.shared != nil {
		conn = lent{conn}
	}
	if c.Watch != nil {
		c.watched(conn)
	}
	unobserve, err := c.observe(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	c.Transport, c.Poll = conn, time.Second
	if devices, err = device.New(c.Settings); err != nil {
		conn.Close()
		return nil, nil, errors.Join(err, unobserve())
	}
	return devices, func() error {
		err := unobserve()
		conn.Close()
		return errors.Join(err, closeStore())
	}, nil
}

// watched lets the watch see the client's progress and connection.
func (c *Config) watched(conn link) {
	c.Watch.mu.Lock()
	c.Watch.connected = conn.Connected
	c.Watch.mu.Unlock()
	see, show := c.Watch.progress, c.Progress
	c.Progress = func(p device.Progress) {
		see(p)
		if show != nil {
			show(p)
		}
	}
}

// observe serves the metrics until done is called, and lets the client report its progress to them.
func (c *Config) observe(ctx context.Context, conn link) (done func() error, err error) {
	var registry *prometheus.Registry
	switch {
	case c.seat != nil:
		registry = c.seat.Registry
	case c.Metrics != nil:
		registry = obs.NewRegistry()
	default:
		return func() error { return nil }, nil
	}
	count, err := obs.NewPublisher(registry, string(c.Task))
	if err != nil {
		return nil, err
	}
	clock := new(run.Clock)
	if err := obs.NewBroker(registry, string(c.Task), observed(conn, clock)); err != nil {
		return nil, err
	}
	var last atomic.Pointer[device.Progress]
	last.Store(&device.Progress{})
	show := c.Progress
	c.Progress = func(p device.Progress) {
		last.Store(&p)
		count(p)
		if show != nil {
			show(p)
		}
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // also while the last outcomes come
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		clock.Watch(serving, run.LeaseOf(conn, c.Task), c.Logger)
	}()
	endpoints := obs.Endpoints(registry, nil, run.Ready(conn.Connected, run.Lease, func() (string, time.Time) {
		return unready(last.Load())
	}), nil)
	served := make(chan error, 1)
	if c.seat != nil {
		c.seat.Show(many.Shown{Handler: endpoints, Line: func() (string, bool) { return c.line(last.Load()) },
			Status: func() any { return TaskSummary{c.Task, last.Load().Summary} }})
		served <- nil
	} else {
		go func() { served <- obs.Serve(serving, c.Metrics, endpoints) }()
		c.Logger.Info("serving", "metrics", "http://"+c.Metrics.Addr().String()+"/metrics")
	}
	return func() error {
		stop()
		<-watched
		return <-served
	}, nil
}

// unready returns why a device that is connected can do nothing, and since when; empty: it can.
func unready(p *device.Progress) (cause string, since time.Time) {
	switch {
	case p.Trouble != "":
		return p.Trouble, p.Troubled
	case p.Ahead > 0:
		return aheadText(p), p.AheadSince
	case p.Older > 0:
		return fmt.Sprintf(
			"the broker is older than round %d, which this device knows: docs/how-to/runbook.md, state folder and broker of different times", p.Older), p.OlderSince
	}
	return "", time.Time{}
}

// aheadText explains that nobody is charged, and why.
func aheadText(p *device.Progress) string {
	return fmt.Sprintf(
		"nobody is charged: this machine's clock is %v ahead of the broker's, or no stage has worked for as long: docs/how-to/runbook.md, clocks", p.Ahead.Round(time.Second))
}

// reads returns the declaration in the format in which the data are written.
func (c Config) reads(declared *task.Spec) (*task.Spec, error) {
	if c.Format == "" {
		return declared, nil
	}
	spec, err := declared.ReadAs(c.Format)
	if err != nil {
		return nil, fmt.Errorf("--format: %w", err)
	}
	return spec, nil
}

// Check reports how Data fit the declaration of Spec or, without one, of the announced task. It sends nothing.
func Check(ctx context.Context, c Config) (*inspection.Report, error) {
	declared := c.Spec
	if declared == nil {
		c.StateDir, c.Metrics, c.Source = "", nil, ""
		devices, release, err := c.devices(ctx)
		if err != nil {
			return nil, err
		}
		agreement, err := devices.Agreement(ctx)
		err = errors.Join(err, devices.Close(), release())
		if err != nil {
			return nil, err
		}
		declared = agreement.Spec
	}
	spec, err := c.reads(declared)
	if err != nil {
		return nil, err
	}
	return inspection.Of(c.Data, spec)
}

// open opens the data in the format of c.Format or else of the declaration.
func (c Config) open(declared *task.Spec) (*source.Reader, error) {
	if c.Live && declared.Events.Key == "" && !declared.Privacy.ByUser() {
		return nil, ErrNoKey
	}
	if c.StateDir == "" && declared.Silo != nil {
		return nil, ErrNoState
	}
	spec, err := c.reads(declared)
	if err != nil {
		return nil, err
	}
	features, err := spec.Compile()
	if err != nil {
		return nil, err
	}
	return source.Open(c.Data, features)
}

// openFolder opens the state folder, or a store in memory where there is none.
func (c *Config) openFolder() (close func() error, err error) {
	if c.StateDir == "" {
		c.Logger.Warn("no --state: who took part is forgotten when this run ends, and a second run would send again", "task",
			c.Task)
		c.Store = participation.NewMemoryStore()
		return func() error { return nil }, nil
	}
	f, err := statefolder.Open(statefolder.Config{Dir: c.StateDir, Task: c.Task, Policy: c.Policy, Marks: c.Marks,
		Ledger: c.ledger})
	if err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	c.Store, c.Ledger = f.Store, f.Ledger
	if c.Grants == nil {
		return f.Close, nil
	}
	kept, err := grants.Open(grants.Path(c.StateDir, c.Task))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--state: %w", err), f.Close())
	}
	c.GrantStore = kept
	return func() error { return errors.Join(kept.Close(), f.Close()) }, nil
}
