package intrusion

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// The task. User i has feature i alone, so that its clipped gradient is 0.25 or -0.25 in coordinate i: whatever is
// without noise shows it.
const (
	name   = stream.Task("intrusion")
	budget = 8.0
	delta  = 1e-3
	clip   = 0.25

	declaration = `
version: 1
name: intrusion
events: {format: libsvm}
features: {vector: {dimension: %d, min: 0, max: 1, scale: raw}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 1, clip_norm: 0.25}
privacy: {epsilon: 8, delta: 1e-3, trust: shuffle}
schedule: {users: %d, plan: proved}
validation: {off: true}
`
)

// A plan describes the processes and the task of a run.
type plan struct {
	steps, cohort, minimum uint64
	users                  int // fewer than steps x cohort, so that some round is topped up
	suite                  wire.Suite
	copies                 int // between reports, about
	seed                   uint64
}

// params returns the parameters of the mechanism: six bits a coordinate.
func (p plan) params() randomizer.Params {
	return randomizer.Params{Dim: p.users, ClipNorm: clip, Levels: 2, Trials: 40, Coin: randomizer.Fair}
}

func (p plan) spec() (*task.Spec, error) {
	return task.Parse(fmt.Appendf(nil, declaration, p.users, p.steps*p.cohort),
		[]string{fmt.Sprintf("privacy.suite=%d", p.suite)})
}

func (p plan) body() (*wire.Task, error) {
	spec, err := p.spec()
	if err != nil {
		return nil, err
	}
	declared, err := spec.Canonical()
	if err != nil {
		return nil, err
	}
	return &wire.Task{Suite: p.suite, Declaration: declared, Plan: learned(&wire.Plan{
		Algorithm: "psgd", Trust: wire.Trust_TRUST_SHUFFLE, HonestFraction: "1",
		Phases: []*wire.Phase{{Users: p.steps * p.cohort, Rounds: p.steps, Cohort: p.cohort, Minimum: p.minimum,
			Mechanism: manifest.Mechanism(p.params(), 1), RoundsPerUser: 1}},
		Epsilon: budget, Delta: delta, DeadlineMs: 3000, EpsilonBudget: budget,
	}, 1)}, nil
}

// learned gives the phases of a plan the constants of PSGD in a ball.
func learned(p *wire.Plan, radius float64) *wire.Plan {
	p.Set = &wire.Set{Radius: radius}
	for _, f := range p.Phases {
		if f.Statistic == wire.Statistic_STATISTIC_GRADIENT {
			f.Constants = &wire.Phase_Descent{Descent: &wire.Descent{StepSize: 0.3}}
		}
	}
	return p
}

// A world is a run of the whole system in one folder, and what the test knows of it.
type world struct {
	plan
	broken   broken
	dir      string
	learner  *seal.Identity
	stage    *seal.Identity
	registry *prometheus.Registry
	metrics  struct {
		stage   stage.Observer
		learner service.Observer
	}
	logs   lockedBuffer
	rng    *rand.Rand // of the stage's goroutine, as is search
	search *searcher

	mu       sync.Mutex
	copies   []loot
	attempts []*attempt        // in the order in which they were opened
	drawn    map[[16]byte]draw // by report id: what devices drew
	rounds   map[uint64]*wire.Round
	batches  map[uint64]*wire.Batch
	allowed  map[string]bool // values that a learner who sees the batches alone may have on its disk
	kept     [][]byte        // what a broken run holds on to
}

// An attempt holds the actions of the stage in one attempt, seen from outside.
type attempt struct {
	round, number uint64
	public        []byte
	manifest      stream.Hash
	key           *maskedKey       // found in the heap while it was open
	taken         []stream.Message // reports in the order of examination
	accepted      []bool
	kept          bool // found in the heap after its round had a batch
}

// A draw is the report that one user's device made for a round.
type draw struct {
	user   int
	round  uint64
	counts []byte // packed
}

// A lockedBuffer is the log of all processes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) copy() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}

func (w *world) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(&w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// wholeLife runs the system in a new folder and returns its world: the learner dies gracefully after its
// first round and goes on, so that its states lie in tables and in a log.
func wholeLife(t *testing.T, p plan, b broken) *world {
	t.Helper()
	w := &world{plan: p, broken: b, dir: t.TempDir(), registry: obs.NewRegistry(), drawn: map[[16]byte]draw{},
		rounds: map[uint64]*wire.Round{}, batches: map[uint64]*wire.Batch{}, allowed: map[string]bool{},
		rng: rand.New(rand.NewPCG(p.seed, 1)), search: newSearcher(p.suite)}
	var err error
	w.learner, _, err = seal.LoadOrCreateIdentity(filepath.Join(w.dir, "keys", "learner.key"))
	must(err)
	w.stage, _, err = seal.LoadOrCreateIdentity(filepath.Join(w.dir, "keys", "stage.key"))
	must(err)
	w.metrics.stage, err = obs.NewStage(w.registry, string(name))
	must(err)
	learning, err := obs.NewLearner(w.registry, string(name))
	must(err)
	w.metrics.learner = learning.Observer()
	server, err := embedded.Start(embedded.Config{StoreDir: filepath.Join(w.dir, "state", "nats"),
		Log: w.log()})
	must(err)
	defer server.Shutdown()
	body, err := p.body()
	must(err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	conns := make([]*natsjs.Conn, 3)
	for i := range conns {
		conns[i], err = server.Connect(natsjs.ConnectConfig{Log: w.log()})
		must(err)
		defer conns[i].Close()
	}
	_, err = run.Provision(ctx, conns[0], name, run.Streams{Body: body, Replicas: 1})
	must(err)
	var running sync.WaitGroup
	for role, f := range map[string]func(context.Context) error{
		"learner": func(ctx context.Context) error { return w.learn(ctx, conns[0]) },
		"stage":   func(ctx context.Context) error { return w.mix(ctx, conns[1]) },
		"devices": func(ctx context.Context) error { return w.publish(ctx, conns[2]) },
	} {
		running.Go(func() {
			if err := f(ctx); err != nil {
				t.Errorf("%s: %v", role, err)
				cancel()
			}
		})
	}
	running.Wait()
	if t.Failed() {
		t.Fatalf("the run failed; its log:\n%s", w.logs.copy())
	}
	w.steal("at the end, while the broker runs")
	w.replay(conns[0])
	server.Shutdown()
	w.steal("when all is over")
	return w
}

// learn runs the learner's two lives.
func (w *world) learn(ctx context.Context, conn *natsjs.Conn) error {
	for life := range 2 {
		store, err := pebblestore.Open(filepath.Join(w.dir, "state"), pebblestore.Options{Logger: w.log()})
		if err != nil {
			return err
		}
		living, die := context.WithCancel(ctx)
		s, err := service.New(service.Config{Task: name, Records: conn, Store: w.broken.wrap(w, store), Identity: w.learner,
			StageKey: w.stage.Public(), Prepare: w.body, Snapshots: keeps, Logger: w.log(), Poll: 50 * time.Millisecond,
			Observer: w.watching(func(a service.Applied) {
				if life == 0 && a.Round == 1 {
					die()
				}
			})})
		if err != nil {
			die()
			return errors.Join(err, store.Close())
		}
		err = s.Run(living)
		over := living.Err() == nil
		die()
		if err := errors.Join(store.Close()); err != nil {
			return err
		}
		if over || ctx.Err() != nil {
			return err
		}
	}
	return errors.New("the learner lived twice and did not end")
}

// watching returns an observer that copies the disk at what the learner announces and commits.
func (w *world) watching(applied func(service.Applied)) service.Observer {
	return observe.All(w.metrics.learner, service.Observer{
		Announced: func(r, _ uint64) { w.steal(fmt.Sprint("when round ", r, " is announced")) },
		Applied:   func(a service.Applied) { w.steal(fmt.Sprint("when round ", a.Round, " is committed")); applied(a) },
	})
}

// steal copies everything, the logs and metrics as they are now among it.
func (w *world) steal(when string) {
	l := steal(when, w.dir)
	l.files["logs"] = w.logs.copy()
	answer := httptest.NewRecorder()
	obs.Endpoints(w.registry, nil, nil, nil).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	l.files["metrics"] = answer.Body.Bytes()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copies = append(w.copies, l)
}

// publish runs all devices.
func (w *world) publish(ctx context.Context, conn *natsjs.Conn) error {
	spec, err := w.spec()
	if err != nil {
		return err
	}
	c, err := device.New(device.Settings{Task: name, Transport: conn,
		Store: &drawing{participation.NewMemoryStore(), w},
		Spec:  spec, Source: source, Poll: 250 * time.Millisecond, Logger: w.log(),
		Policy: consent.Policy{LearnerKey: consent.Fingerprint(w.learner.Public()),
			StageKey: consent.Fingerprint(w.stage.Public())}})
	if err != nil {
		return err
	}
	_, err = c.Run(ctx, w.rows())
	return err
}

const source = "users.libsvm"

func (w *world) rows() iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for i := range w.users {
			row := task.Row{Line: int64(i) + 1, Number: int64(i), Index: []int32{int32(i)}, Value: []float64{1}, Label: "-1"}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// drawing is the devices' store, which sees what they draw.
type drawing struct {
	participation.Store
	w *world
}

// Write implements participation.Store.
func (s *drawing) Write(c participation.Change) error {
	s.w.mu.Lock()
	for _, e := range c.Events {
		if e.State != participation.Charged {
			continue
		}
		for i := range s.w.users {
			if participation.RowKey(source, int64(i)) == e.Key {
				s.w.drawn[e.Draw.Report] = draw{user: i, round: uint64(e.Draw.Round), counts: bytes.Clone(e.Draw.Counts)}
			}
		}
	}
	s.w.mu.Unlock()
	return s.Store.Write(c)
}
