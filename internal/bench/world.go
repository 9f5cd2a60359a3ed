package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"time"

	pipeline "github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A shape is what a task looks like.
type shape struct {
	dim    int
	sealed bool
	cohort int // of each round
	rounds int
	memory bool        // reports in the broker's memory
	store  state.Store // the learner's
}

const declaration = `
version: 1
name: %s
events: {format: libsvm}
features: {vector: {dimension: %d, min: -1, max: 1}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6, seal: %s}
schedule: {users: %d, cohort: %d, minimum_cohort: %d, rounds: {max: %d}, algorithm: psgd, deadline: 24h}
`

// A world is one task in deployment: a learner, a stage, their connections, and a broker elsewhere.
type world struct {
	name    stream.Task
	body    *wire.Task
	params  randomizer.Params
	learner ed25519.PublicKey
	stage   *seal.Identity
	url     string
	dir     string
	conns   []*natsjs.Conn
	closers []func() error // of what the roles use

	opened    *latest // rounds
	released  *latest // rounds
	committed *latest // rounds

	ctx    context.Context // ends with a role
	cancel context.CancelCauseFunc
	roles  sync.WaitGroup
}

// errOver ends a world.
var errOver = errors.New("the measurement is over")

func newWorld(ctx context.Context, l *lab, b *broker, s shape) (w *world, err error) {
	l.worlds++
	name := fmt.Sprintf("bench-%d", l.worlds)
	sealing := "none"
	if s.sealed {
		sealing = "hpke"
	}
	spec, err := task.Parse(fmt.Appendf(nil, declaration, name, s.dim, sealing, s.cohort*s.rounds, s.cohort, s.cohort, s.rounds), nil)
	if err != nil {
		return nil, err
	}
	job, err := pipeline.NewJob(spec)
	if err != nil {
		return nil, err
	}
	w = &world{name: stream.Task(name), url: b.url, opened: newLatest(), released: newLatest(), committed: newLatest()}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.body, err = job.Wire(); err != nil {
		return w, err
	}
	if got := w.body.Plan.Phases[0]; got.Rounds != uint64(s.rounds) || got.Cohort != uint64(s.cohort) {
		return w, fmt.Errorf("planned %d rounds of %d users, want %d of %d", got.Rounds, got.Cohort, s.rounds, s.cohort)
	}
	if w.params, err = manifest.Params(w.body.Plan.Phases[0].Mechanism); err != nil {
		return w, err
	}
	if w.dir, err = l.folder(); err != nil {
		return w, err
	}
	conn, err := w.connect()
	if err != nil {
		return w, err
	}
	if err := pipeline.Provision(w.ctx, conn, w.name, w.body, 1, s.memory); err != nil {
		return w, err
	}
	return w, w.begin(conn, s.store)
}

// connect makes one connection of the world.
func (w *world) connect() (*natsjs.Conn, error) {
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: w.url})
	if err == nil {
		w.conns = append(w.conns, c)
	}
	return c, err
}

// begin starts learner and stage.
func (w *world) begin(conn *natsjs.Conn, store state.Store) error {
	learnerIdentity, err := seal.NewIdentity()
	if err != nil {
		return err
	}
	if w.stage, err = seal.NewIdentity(); err != nil {
		return err
	}
	w.learner = learnerIdentity.Public()
	if store == nil {
		own, err := w.openState()
		if err != nil {
			return err
		}
		store = own
	}
	learns, err := service.New(service.Config{Task: w.name, Records: conn, Store: store, Identity: learnerIdentity, StageKey: w.stage.Public(),
		Prepare: func() (*wire.Task, error) { return w.body, nil }, Build: pipeline.BuildAlgorithm, Observer: watcher{w.committed}})
	if err != nil {
		return err
	}
	w.role("learner", learns.Run)
	return labelled(w.ctx, "stage", w.beginStage)
}

func (w *world) beginStage(ctx context.Context) error {
	conn, err := w.connect()
	if err != nil {
		return err
	}
	reader, err := conn.Reader(ctx, w.name)
	if err != nil {
		return err
	}
	s, err := stage.New(stage.Config{Task: w.name, Records: conn, Reports: reader, Identity: w.stage, Limits: conn.Limits(),
		Observer: stage.Observer{
			Opened:   func(round, _ uint64) { w.opened.reach(round) },
			Released: func(round, _ uint64, _ time.Duration) { w.released.reach(round) },
		}})
	if err != nil {
		return err
	}
	w.role("stage", s.Run)
	return nil
}

// role runs a part of the world until the world ends. Its failure is the world's.
func (w *world) role(name string, run func(context.Context) error) {
	w.roles.Go(func() {
		_ = labelled(w.ctx, name, func(ctx context.Context) error {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				w.cancel(fmt.Errorf("%s: %w", name, err))
			}
			return nil
		})
	})
}

// roleLabel is the label of a CPU profile's samples that says whose work they are.
const roleLabel = "role"

// labelled runs f, and the goroutines that it starts, under a role's name.
func labelled(ctx context.Context, role string, f func(context.Context) error) (err error) {
	pprof.Do(ctx, pprof.Labels(roleLabel, role), func(ctx context.Context) { err = f(ctx) })
	return err
}

// close ends the world; its error is why it had ended before.
func (w *world) close() error {
	w.cancel(errOver)
	w.roles.Wait()
	for _, c := range w.conns {
		c.Close()
	}
	var err error
	for _, release := range w.closers {
		err = errors.Join(err, release())
	}
	if cause := context.Cause(w.ctx); !errors.Is(cause, errOver) {
		err = errors.Join(cause, err)
	}
	return err
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// A watcher tells which round is committed.
type watcher struct{ committed *latest }

func (watcher) Resumed(service.Progress)    {}
func (watcher) Announced(uint64, uint64)    {}
func (w watcher) Applied(a service.Applied) { w.committed.reach(a.Round) }
