// Package runlearner wires a task's learner together for `learner run`: the state folder and its control socket, the
// broker, which may be embedded, the service that learns, and the page and endpoints that show it.
package runlearner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/dashboard"
	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/run/runrelay"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/wire"
)

// Config configures `learner run`. Task, Records, Store, Prepare, Build and Finish are set by Run.
type Config struct {
	service.Config
	Spec     *task.Spec
	StateDir string

	// Broker is used unless Embedded; then the server keeps its streams in StateDir/nats and listens on Listen, a
	// loopback host:port, or on nothing if that is empty; Broker's TLS files are then the listener's.
	Broker        run.Broker
	Embedded      bool
	Listen        string
	Relay         net.Listener // of a relay in this process, on loopback; nil: none; Run closes it
	Replicas      int
	MemoryReports bool  // see run.Provision
	ReportBytes   int64 // see run.Streams

	HTTP net.Listener // nil: none; Run closes it
	// Stages are the stage processes that the page polls; nil: the page shows only what the broker has.
	Stages       *dashboard.Stages
	ExitWhenDone bool
}

// lingerForPeers is the time for which an embedded broker outlives its task, so that stage and publishers can read
// End.
const lingerForPeers = 30 * time.Second

// Run runs one task until it ends and ExitWhenDone is set, or ctx is done. A task also ends if its budget refuses a
// later round; with HTTP its page and its model continue to be served. Resources are taken in the order of ownership:
// the state folder's lock first, then its control socket, then the embedded server, whose own folder nothing locks.
// Run closes c.HTTP. An error that wraps a *state.BudgetError means that the task has ended, or never began, because
// of its budget.
func Run(ctx context.Context, c Config) (err error) {
	if c.HTTP != nil {
		defer c.HTTP.Close() // where nothing serves it yet
	}
	if c.Relay != nil {
		defer c.Relay.Close()
	}
	if err := c.pins(); err != nil {
		return err
	}
	return Hold(ctx, c.StateDir, c.named(), c.run)
}

// named returns the logger of what does not name the task itself, as the service does and what looks after streams.
func (c Config) named() *slog.Logger {
	if c.Logger == nil {
		return nil
	}
	return c.Logger.With("task", c.Spec.Name)
}

// Hold runs do with a learner's state folder, made if missing: with its lock, and with its control socket, which is
// served until do returns. Goroutines that do starts in the group end with serving.
func Hold(ctx context.Context, dir string, log *slog.Logger,
	do func(ctx, serving context.Context, group *errgroup.Group, store state.Store, finish *service.Finisher,
		history *service.History) error) (err error) {
	store, err := statedir.Open(ctx, dir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	control, remove, err := statedir.ListenControl(dir)
	if err != nil {
		return err
	}
	defer remove()
	finish, history := service.NewFinisher(), service.NewHistory(store)
	group, running := errgroup.WithContext(ctx)
	serving, stop := context.WithCancel(running)
	group.Go(func() error { return obs.Serve(serving, control, statedir.ControlHandler(store, finish, history)) })
	group.Go(func() error {
		defer stop()
		return do(running, serving, group, store, finish, history)
	})
	return group.Wait()
}

// run plans or resumes, and learns. What it starts in the group ends with serving.
func (c Config) run(ctx, serving context.Context, group *errgroup.Group, store state.Store, finish *service.Finisher,
	history *service.History) error {
	planned, expected, err := TaskOf(ctx, store, c.Spec)
	if err != nil {
		return err
	}
	broker, err := c.connect(ctx, c.Spec.Name, filepath.Join(c.StateDir, "nats"))
	if err != nil {
		return err
	}
	defer broker.close()
	if err := c.attend(serving, group, &broker, stream.Task(c.Spec.Name)); err != nil {
		return err
	}
	at := seat{broker: broker, registry: obs.NewRegistry(), serving: serving, group: group, store: store, finish: finish,
		history: history}
	if c.HTTP != nil {
		at.show = func(shown many.Shown) {
			c.Logger.Info("serving", "http", "http://"+c.HTTP.Addr().String())
			group.Go(func() error { return obs.Serve(serving, c.HTTP, shown.Handler) })
		}
	}
	return c.on(ctx, at, planned, expected)
}

// attend watches over an embedded server, and relays for some tasks, or all without any, if there is a listener for it.
// What it starts in the group ends with serving.
func (c Config) attend(serving context.Context, group *errgroup.Group, broker *brokerage, tasks ...stream.Task) error {
	if broker.embedded != nil {
		group.Go(func() error { return latched(serving, broker.embedded, broker.folder) })
	}
	if c.Relay == nil {
		return nil
	}
	c.Logger.Info("relaying", "http", "http://"+c.Relay.Addr().String())
	relayed, serve, err := runrelay.Local(c.Relay, broker.conn, c.Logger, tasks...)
	if err != nil {
		return err
	}
	broker.relayed = relayed
	group.Go(func() error { return serve(serving) })
	return nil
}

// A seat holds what a task's learner runs on: the broker, the state folder that is held, the registry of its metrics,
// and the group of what it starts beside, which ends with serving.
type seat struct {
	broker   brokerage
	registry *prometheus.Registry
	serving  context.Context
	group    *errgroup.Group
	store    state.Store
	finish   *service.Finisher
	history  *service.History
	show     func(many.Shown)         // nil: nothing is shown
	peers    time.Duration            // between looks at the page's peers; 0: peersEvery
	mends    time.Duration            // between checks of the streams; 0: the interval of run.Streams
	caught   func(func() error) error // nil: a panic ends the process
}

// troubledFor is the time for which calls fail before somebody has to look.
const troubledFor = 10 * time.Second

// begin starts f in the group.
func (s seat) begin(f func() error) {
	s.group.Go(func() error {
		if s.caught == nil {
			return f()
		}
		return s.caught(f)
	})
}

// on learns a planned task.
func (c Config) on(ctx context.Context, at seat, planned *wire.Task, expected *dashboard.Expected) error {
	metrics, err := obs.NewLearner(at.registry, c.Spec.Name)
	if err != nil {
		return err
	}
	clock, conn := new(run.Clock), at.broker.conn
	if err := obs.NewBroker(at.registry, c.Spec.Name, run.Observed(conn, clock)); err != nil {
		return err
	}
	at.begin(func() error {
		clock.Watch(at.serving, run.RoundsOf(conn, stream.Task(c.Spec.Name)), c.named())
		return nil
	})
	done := new(atomic.Bool)
	trouble := new(troubled)
	watch := []service.Observer{metrics.Observer(), {Trouble: trouble.begins}, c.Observer}
	ended := func(context.Context, error) {}
	if at.show != nil {
		site, err := NewSite(c.Spec, planned, at.store, c.StateDir, expected, Reach{Relayed: c.Relay != nil})
		if err != nil {
			return err
		}
		site.Log = c.named()
		defer site.Close()
		watch = append(watch, site.Board.Observer())
		ended = site.Ended
		peers := Peers{Conn: conn, Clock: clock, Every: cmp.Or(at.peers, peersEvery), Stage: onBroker(site.Board, conn,
			stream.Task(c.Spec.Name))}
		if c.Stages != nil {
			peers.Stage = func(ctx context.Context) { c.Stages.Tell(ctx, site.Board) }
		}
		at.begin(func() error { return site.Watch(at.serving, peers) })
		at.show(many.Shown{Line: func() (string, bool) {
			if cause, since := trouble.now(); cause != "" && time.Since(since) > troubledFor {
				return fmt.Sprintf("For %v: %s", time.Since(since).Round(time.Second), cause), true
			}
			return site.Board.Line()
		}, Handler: c.endpoints(at.registry, at.store,
			run.Ready(conn.Connected, run.Lease, trouble.now), done, site.Handler())})
	}
	err = c.learn(ctx, at, planned, metrics, observe.All(watch...))
	ended(ctx, err)
	var refused *state.BudgetError
	if err != nil && !(errors.As(err, &refused) && refused.Round > 1) { // otherwise the broker has the End
		return err
	}
	done.Store(true)
	if c.ExitWhenDone || err != nil && at.show == nil {
		at.broker.linger(ctx, c.named())
		return err
	}
	c.Logger.Info("the task has ended; serving snapshots until interrupted", "task", c.Spec.Name, "budget_refused",
		err != nil)
	<-ctx.Done()
	return err
}

// TaskOf returns the body of the task: the stored one, if it is what the file declares, or a new plan, with what that
// expects.
func TaskOf(ctx context.Context, store state.Store, spec *task.Spec) (*wire.Task, *dashboard.Expected, error) {
	view, err := statedir.Look(ctx, store)
	if errors.Is(err, state.ErrEmpty) {
		job, err := run.NewJob(spec)
		if err != nil {
			return nil, nil, many.Lasting(err)
		}
		body, err := job.Wire()
		return body, Expected(job), many.Lasting(err)
	}
	if err != nil {
		return nil, nil, err
	}
	declared, err := spec.Canonical()
	if err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(declared, view.Task.Declaration) {
		return nil, nil,
			many.Lasting(fmt.Errorf("the state folder belongs to task %q with another declaration (%s); a task never changes: "+
				"give the changed one a new name and another --state", view.Task.Name,
				task.DifferenceText(task.Differences(declared, view.Task.Declaration))))
	}
	return view.Task, nil, nil
}

func (c Config) learn(ctx context.Context, at seat, planned *wire.Task, metrics *obs.Learner,
	watch service.Observer) error {
	conn := at.broker.conn
	name, err := stream.ParseTask(c.Spec.Name)
	if err != nil {
		return err
	}
	streams := run.Streams{Body: planned, Replicas: c.Replicas, MemoryReports: c.MemoryReports, ReportBytes: c.ReportBytes,
		Every: at.mends}
	administers, err := run.Provision(ctx, conn, name, streams)
	if err != nil {
		return err
	}
	streams.Administers = administers
	defer run.KeepProvisioned(ctx, conn, name, streams, c.Logger)()
	if age := manifest.Retention(planned.Plan); administers && age > 0 {
		defer run.KeepRemoving(ctx, conn, name, age, c.Logger)()
	}
	c.Task, c.Records, c.Store, c.Observer = name, conn, metrics.Timed(at.store), watch
	c.Finish, c.History = at.finish, at.history
	kept := c.Spec.Kept()
	c.Snapshots = service.Retention{Rounds: kept.Every.Rounds, Every: kept.Every.Time, Newest: kept.Keep}
	c.Prepare = func() (*wire.Task, error) { return planned, nil }
	if o := c.Spec.Privacy.Operators; o != nil {
		c.StageKey, _, _ = o.Keys() // which Run has compared
		c.Operators = true
	}
	s, err := service.New(c.Config)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// ErrPin is returned by Run if the leader that a task file of two operators names is not the one that was pinned.
var ErrPin = errors.New("the leader is not pinned")

// pins refuses a task of two operators unless the leader that its file names is the one that was pinned: the file may
// have been written by somebody who chose both.
func (c Config) pins() error {
	o := c.Spec.Privacy.Operators
	if o == nil {
		return nil
	}
	leader, _, _ := o.Keys() // the declaration is valid
	switch {
	case c.StageKey == nil:
		return fmt.Errorf("--stage-key: pin the leader of trust split, as its operator told the key; nobody is trusted at first "+
			"use. privacy.operators.leader is %x, which the file's writer chose: %w", []byte(leader), ErrPin)
	case !c.StageKey.Equal(leader):
		return fmt.Errorf("--stage-key %x: privacy.operators.leader is %x: %w", []byte(c.StageKey), []byte(leader), ErrPin)
	}
	return nil
}

// endpoints returns the health endpoints: healthy while the store is, and ready while the broker is there too or the
// task is done.
func (c Config) endpoints(g prometheus.Gatherer, store state.Store, broker obs.Check, done *atomic.Bool,
	more http.Handler) http.Handler {
	healthy := func() error {
		select {
		case <-store.Failed():
			return state.ErrFailed
		default:
			return nil
		}
	}
	ready := func() error {
		if err := healthy(); err != nil {
			return err
		}
		if done.Load() {
			return nil
		}
		return broker()
	}
	return obs.Endpoints(g, healthy, ready, more)
}

// latchEvery is the period at which the embedded server's health is checked.
const latchEvery = 2 * time.Second

// latched returns an error once the embedded server cannot write any more, which only a new start mends; the error
// ends the learner. It names the cause and the free space. latched returns nil when ctx is done.
func latched(ctx context.Context, server *embedded.Server, folder string) error {
	ticker := time.NewTicker(latchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := server.Failed()
		if err == nil {
			continue
		}
		room := "its room is not known"
		if free, err := pebblestore.Free(folder); err == nil {
			room = fmt.Sprintf("%.1f MB are free there", float64(free)/1e6)
		}
		return fmt.Errorf("%w (folder %s, %s): make room, and start the learner again", err, folder, room)
	}
}

// A brokerage is a connection and the server behind it, if it is ours.
type brokerage struct {
	conn     *natsjs.Conn
	embedded *embedded.Server
	folder   string       // of its streams
	relayed  *relay.Relay // in this process; nil: none
}

// peers reports whether somebody else is connected to a broker of ours, or waits at our relay.
func (b brokerage) peers() bool {
	return b.embedded.Clients() > 1 || b.relayed != nil && b.relayed.Waiting() > 0
}

func (b brokerage) close() {
	b.conn.Close()
	if b.embedded != nil {
		b.embedded.Shutdown()
	}
}

// relayLinger is the number of looks, a tenth of a second apart, at which nobody waits at a relay of ours before all
// are taken to have left.
const relayLinger = 30

// linger gives peers of an embedded server the time to read End.
func (b brokerage) linger(ctx context.Context, log *slog.Logger) {
	if b.embedded == nil || b.embedded.URL() == "" && b.relayed == nil {
		return
	}
	deadline := time.NewTimer(lingerForPeers)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	// A device that a record has woken does not wait at the relay for a moment: it reads, and comes back.
	for away := 0; b.peers() || b.relayed != nil && away < relayLinger; away++ {
		if b.peers() {
			away = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-deadline.C:
			log.Warn("stopping the embedded broker while clients are connected", "clients", b.embedded.Clients()-1,
				"waiting_at_the_relay", b.relayed != nil && b.relayed.Waiting() > 0)
			return
		case <-tick.C:
		}
	}
}

// connect connects to the broker, which it starts with its streams in dir if it is embedded. of names the task, or the
// tasks.
func (c Config) connect(ctx context.Context, of, dir string) (brokerage, error) {
	name := "panlearn learner " + of
	if !c.Embedded {
		conn, err := c.Broker.Connect(ctx, name, c.Logger)
		return brokerage{conn: conn}, err
	}
	server, err := embedded.Start(embedded.Config{
		StoreDir: dir, Listen: c.Listen, SyncAlways: true, Log: c.Logger,
		TLSCert: c.Broker.TLSCert, TLSKey: c.Broker.TLSKey, TLSCA: c.Broker.TLSCA})
	if err != nil {
		return brokerage{}, err
	}
	c.Broker.Name, c.Broker.Log = name, c.Logger
	conn, err := server.Connect(c.Broker.ConnectConfig)
	if err != nil {
		server.Shutdown()
		return brokerage{}, err
	}
	if url := server.URL(); url != "" {
		c.Logger.Info("embedded broker listens", "url", url)
		c.Logger.Info(
			"learner and broker are one party to the devices: they trust it not to fill cohorts with its own reports (docs/why/privacy.md)")
	}
	return brokerage{conn: conn, embedded: server, folder: dir}, nil
}
