// Package pipeline runs all roles of one task in one process, over an embedded broker and a store: the learner, the
// stage, and one client with everybody's events. The quickstart is it on a synthetic population, and `learner fit` on
// the rows of a file.
//
// What is in Dir and in Store outlives the process: a second run with the same folder, store and identities goes on
// where a first one was killed. The caller keeps other processes out of Dir.
package pipeline

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/dashboard"
	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/shuffle/stage/leaderfile"
	"github.com/panlearn/panlearn/shuffle/stage/markfile"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// Config is a task and all that it runs on. What is not said to have a default is required.
type Config struct {
	Spec  *task.Spec
	Body  *wire.Task
	Dir   string      // of the broker's streams, the client's participation and the stage's marks
	Store state.Store // the learner's

	Learner, Stage *seal.Identity // the same over the task's life
	// MemoryReports keeps sealed reports in the broker's memory: they go with the process, so that no second one can go
	// on.
	MemoryReports bool
	Lease         time.Duration // of the stage; 0: stage.DefaultLeaseTTL
	Relay         bool          // the client reaches the broker over HTTP, through a relay
	// Guests has HTTP, which is of this machine alone, serve the page on which a person takes part from a browser, beside
	// a relay for it, and keeps so many places of the cohorts for them: Offer offers events of fewer users than the plan's.
	Guests  uint64
	Mixer   func() rand.Source // entropy of the stage; anything but nil voids the guarantee
	Finish  *service.Finisher  // nil: the task ends when its plan does
	History *service.History   // of Store; nil: nobody else changes what is kept

	// Client holds the fields that differ from one client to the next: Source, Entropy, MaxBlockRows. The rest is
	// filled in.
	Client device.Settings
	// Offer offers all events, and ends with the client's summary.
	Offer func(context.Context, *device.Device) (device.Summary, error)
	// Done is called when the task has ended, with the summary of what was offered and the time it took. The page is
	// served until Done returns, and then until ctx is done.
	Done func(device.Summary, time.Duration) error

	Watch    service.Observer
	Fill     func(users, cohort uint64) // how full the round is; nil: nobody
	HTTP     net.Listener               // of the page and the endpoints of learner and stage; Run closes it. nil: none
	Shown    state.Store                // what the page shows: Store, or a seeded one
	Expected *dashboard.Expected        // of the model; nil where the plan was not made now
	Curves   string                     // folder of the page's curves; empty: they are not kept
	Logger   *slog.Logger
}

// Run runs the task to its end.
func Run(ctx context.Context, c Config) (err error) {
	if c.HTTP != nil {
		defer c.HTTP.Close() // where nothing serves it yet
	}
	server, err := embedded.Start(embedded.Config{StoreDir: filepath.Join(c.Dir, "nats"), SyncAlways: true, Log: c.Logger})
	if err != nil {
		return err
	}
	defer server.Shutdown()
	outer := ctx
	ctx, full := context.WithCancelCause(outer)
	defer full(nil)
	defer func() { // roles that it ended say that they were interrupted
		if cause := (*fullDiskError)(nil); outer.Err() == nil && errors.As(context.Cause(ctx), &cause) {
			err = cause
		}
	}()
	conns := make([]conn, 4) // one a role, as in separate processes
	for i := range conns {
		c, err := server.Connect(natsjs.ConnectConfig{Log: c.Logger})
		if err != nil {
			return err
		}
		defer c.Close()
		conns[i] = conn{c, end(full), new(atomic.Int32)}
	}
	name, err := stream.ParseTask(c.Spec.Name)
	if err != nil {
		return err
	}
	if _, err := run.Provision(ctx, conns[0].Conn, name, run.Streams{Body: c.Body, Replicas: 1,
		MemoryReports: c.MemoryReports}); err != nil {
		return err
	}
	show, err := c.open(ctx, name, conns[0].Conn, conns[2])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, show.close(ctx, err)) }()
	begun := time.Now()
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := c.learn(running, name, conns[0], c.Stage.Public(), observe.All(c.Watch, show.learner))
		show.site.Ended(ctx, err)
		return err
	})
	group.Go(func() error { return c.mix(running, name, conns[1], show) })
	if len(c.Body.HelperKey) > 0 {
		group.Go(func() error { return c.help(running, name, conns[3]) })
	}
	var sent device.Summary
	group.Go(func() (err error) {
		sent, err = c.reach(running, name, conns[2])
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := c.Done(sent, time.Since(begun)); err != nil || c.HTTP == nil {
		return err
	}
	<-ctx.Done() // how it ended is shown until then
	return nil
}

func (c Config) learn(ctx context.Context, name stream.Task, conn conn, stageKey ed25519.PublicKey,
	watch service.Observer) error {
	s, err := service.New(service.Config{Task: name, Records: conn, Store: c.Store, Identity: c.Learner,
		StageKey: stageKey, Operators: len(c.Body.HelperKey) > 0, Finish: c.Finish, History: c.History,
		Prepare:  func() (*wire.Task, error) { return c.Body, nil },
		Observer: watch, Logger: c.Logger})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func (c Config) mix(ctx context.Context, name stream.Task, conn conn, show *exhibit) error {
	reader, err := conn.Reader(ctx, name)
	if err != nil {
		return err
	}
	files, err := markfile.Open(filepath.Join(c.Dir, "marks"))
	if err != nil {
		return err
	}
	config := stage.Config{Task: name, Records: conn, Reports: reader, PlaceServer: conn, Identity: c.Stage,
		LearnerKey: c.Learner.Public(), Limits: conn.Limits(),
		LeaseTTL: c.Lease, Marks: marks{files, conn.end}, Entropy: c.Mixer, Observer: show.stage, Logger: c.Logger}
	if len(c.Body.HelperKey) > 0 {
		config.Leader = stage.Leader{HelperKey: c.Body.HelperKey, Exchange: conn}
		if config.Leader.Folder, err = leaderfile.Open(leaderFolder(c.Dir), c.Stage.Public()); err != nil {
			return err
		}
	}
	s, err := stage.New(config)
	if err != nil {
		return err
	}
	status := s.Status
	show.status.Store(&status)
	return s.Run(ctx)
}

// helperPin returns the fingerprint of a task's helper, empty where it has none.
func helperPin(body *wire.Task) consent.Fingerprint {
	if len(body.HelperKey) == 0 {
		return nil
	}
	return consent.Fingerprint(body.HelperKey)
}

// leaderFolder and helperFolder return the folders of both operators, in a pipeline's.
func leaderFolder(dir string) string { return filepath.Join(dir, "marks") }
func helperFolder(dir string) string { return filepath.Join(dir, "helper") }

// Operators makes the folders of both operators in a pipeline's, and returns what a declaration of trust split says of it and the
// stage. In one process they are one operator: it shows how the task runs, and protects from nobody who can look into
// the process.
func Operators(dir string, stage *seal.Identity) (*task.Operators, error) {
	key, _, err := folder.Create(helperFolder(dir))
	if err == nil {
		err = leaderfile.Make(leaderFolder(dir), stage.Public())
	}
	if err != nil {
		return nil, err
	}
	return &task.Operators{Leader: hex.EncodeToString(stage.Public()), Helper: hex.EncodeToString(key), One: true}, nil
}

// help runs the second operator of trust split.
func (c Config) help(ctx context.Context, name stream.Task, conn conn) error {
	f, err := folder.Open(helperFolder(c.Dir), time.Second)
	if err != nil {
		return err
	}
	defer f.Close()
	h, err := helper.New(helper.Config{Task: name, Records: conn, Exchange: conn, Folder: f, Identity: f.Identity(),
		LeaderKey: c.Stage.Public(), LearnerKey: c.Learner.Public(), Limits: conn.Limits(), Lease: c.Lease, Logger: c.Logger})
	if err != nil {
		return err
	}
	return h.Run(ctx)
}

func (c Config) publish(ctx context.Context, name stream.Task, way stream.Transport) (sent device.Summary, err error) {
	store, err := filestore.Open(filestore.Path(filepath.Join(c.Dir, "devices"), name))
	if err != nil {
		return device.Summary{}, err
	}
	defer store.Close()
	k := c.Client
	k.Task, k.Transport, k.Store, k.Spec, k.Logger = name, way, store, c.Spec, c.Logger
	k.Policy = consent.Policy{LearnerKey: consent.Fingerprint(c.Learner.Public()),
		StageKey: consent.Fingerprint(c.Stage.Public()), HelperKey: helperPin(c.Body)}
	if c.Spec.Grants.Needed() {
		asks, stop, err := c.issue(name)
		if err != nil {
			return sent, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		kept, err := grants.Open(grants.Path(filepath.Join(c.Dir, "devices"), name))
		if err != nil {
			return sent, err
		}
		defer kept.Close()
		k.Grants, k.GrantStore = asks, kept
	}
	devices, err := device.New(k)
	if err != nil {
		return device.Summary{}, err
	}
	defer devices.Close()
	return c.Offer(ctx, devices)
}
