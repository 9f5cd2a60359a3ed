package endurance

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/convex"
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
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

const name stream.Task = "endurance"

const (
	dim    = 4
	cohort = 2

	declaration = `
version: 1
name: endurance
events: {format: libsvm}
features: {vector: {dimension: 4, min: 0, max: 1, scale: raw}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 1, clip_norm: 0.25}
privacy: {epsilon: 8, delta: 1e-3, trust: shuffle}
schedule: {users: 20, algorithm: psgd, continuous: constant}
validation: {off: true}
`
)

// body returns a task without an end.
func body(spec *task.Spec) (*wire.Task, error) {
	declared, err := spec.Canonical()
	if err != nil {
		return nil, err
	}
	params := randomizer.Params{Dim: dim, ClipNorm: 0.25, Levels: 2, Trials: 200, Coin: randomizer.Fair}
	return &wire.Task{Suite: wire.Suite_SUITE_X25519, Declaration: declared, Plan: &wire.Plan{
		Algorithm: "psgd", Continuous: wire.Continuous_CONTINUOUS_CONSTANT, Trust: wire.Trust_TRUST_SHUFFLE,
		HonestFraction: "1",
		Phases: []*wire.Phase{{Users: 10 * cohort, Rounds: 10, Cohort: cohort, Minimum: cohort,
			Mechanism:     manifest.Mechanism(params, 1),
			RoundsPerUser: 1, Constants: &wire.Phase_Descent{Descent: &wire.Descent{StepSize: 0.3}}}},
		Set: &wire.Set{Radius: 1}, Epsilon: 8, Delta: 1e-3, EpsilonBudget: 8,
	}}, nil
}

// A thousand holds the cost of some rounds.
type thousand struct {
	last      uint64 // round
	wall, cpu time.Duration
	reads     map[string]uint64 // by role
	looks     map[string]uint64 // of these over a pattern
	heap      uint64            // bytes that live at the end
	stored    uint64            // records of the broker at the end
}

// A counter counts what one role reads.
type counter struct {
	*natsjs.Conn
	reads, looks atomic.Uint64
}

func (c *counter) Get(ctx context.Context, subject string) (stream.Message, error) {
	c.reads.Add(1)
	return c.Conn.Get(ctx, subject)
}

func (c *counter) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	c.reads.Add(1)
	if strings.HasSuffix(pattern, ".round.*") {
		c.looks.Add(1)
	}
	return c.Conn.Latest(ctx, pattern)
}

// endure runs a task for some rounds and reports each stretch of them. The records of a round go when they are older
// than age.
func endure(t *testing.T, rounds, stretch uint64, age time.Duration, tell func(thousand)) {
	t.Helper()
	spec, err := task.Parse([]byte(declaration), nil)
	must(t, err)
	planned, err := body(spec)
	must(t, err)
	dir := t.TempDir()
	server, err := embedded.Start(embedded.Config{StoreDir: filepath.Join(dir, "nats")})
	must(t, err)
	defer server.Shutdown()
	conns := map[string]*natsjs.Conn{}
	roles := map[string]*counter{}
	for _, role := range []string{"learner", "stage", "devices"} {
		conns[role], err = server.Connect(natsjs.ConnectConfig{})
		must(t, err)
		defer conns[role].Close()
		roles[role] = &counter{Conn: conns[role]}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = run.Provision(ctx, conns["learner"], name, run.Streams{Body: planned, Replicas: 1, MemoryReports: true})
	must(t, err)
	store, err := pebblestore.Open(filepath.Join(dir, "state"), pebblestore.Options{})
	must(t, err)
	defer store.Close()
	mixer, err := seal.NewIdentity()
	must(t, err)
	learner, err := seal.NewIdentity()
	must(t, err)

	watch := &pace{stretch: stretch, most: rounds, conn: conns["learner"], roles: roles, tell: tell, over: cancel,
		failed: func(err error) { t.Errorf("%d rounds: how many records stand: %v", rounds, err) }}
	s, err := service.New(service.Config{Task: name, Records: roles["learner"], Store: store, Identity: learner,
		StageKey: mixer.Public(),
		Prepare:  func() (*wire.Task, error) { return planned, nil }, Observer: watch.observer()})
	must(t, err)
	reader, err := conns["stage"].Reader(ctx, name)
	must(t, err)
	mixing, err := stage.New(stage.Config{Task: name, Records: roles["stage"], Reports: reader, Identity: mixer,
		Limits: conns["stage"].Limits()})
	must(t, err)
	devices, err := device.New(device.Settings{Task: name, Transport: roles["devices"],
		Store: newLive(), Spec: spec,
		Policy: consent.Policy{LearnerKey: consent.Fingerprint(learner.Public()),
			StageKey: consent.Fingerprint(mixer.Public())}})
	must(t, err)

	var running sync.WaitGroup
	for role, do := range map[string]func() error{
		"learner": func() error { return s.Run(ctx) },
		"stage":   func() error { return mixing.Run(ctx) },
		"retention": func() error {
			for ctx.Err() == nil {
				if _, err := natsadmin.Retain(ctx, conns["learner"], name, age); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
				case <-time.After(age):
				}
			}
			return nil
		},
	} {
		running.Go(func() {
			if err := do(); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", role, err)
				cancel()
			}
		})
	}
	for user := range 2 * cohort {
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				key := participation.EventKey(fmt.Sprint(user, " ", n))
				x := convex.Example{Index: []int32{int32(user) % dim}, Value: []float64{1}, Label: 1}
				if _, err := devices.Publish(ctx, key, x); err != nil && ctx.Err() == nil {
					t.Errorf("devices: %v", err)
					cancel()
				}
			}
		})
	}
	<-ctx.Done()
	_ = devices.Close()
	running.Wait()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cpu returns the processor time of this process, the server within it included.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// live is the store of events that never come again: what is settled is forgotten, so that its growth is not taken
// for another's.
type live struct {
	*participation.MemoryStore
	mu     sync.Mutex
	rounds map[stream.Round]stream.Hash
	events map[participation.Key]participation.Record
}

func newLive() *live {
	return &live{MemoryStore: participation.NewMemoryStore(), rounds: map[stream.Round]stream.Hash{},
		events: map[participation.Key]participation.Record{}}
}

func (l *live) Manifest(r stream.Round) (stream.Hash, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.rounds[r]
	return h, ok, nil
}

func (l *live) Read(keys []participation.Key) ([]participation.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]participation.Record, len(keys))
	for i, k := range keys {
		if out[i] = l.events[k]; out[i].State == participation.Fresh {
			out[i].Key = k
		}
	}
	return out, nil
}

func (l *live) Charged() iter.Seq2[participation.Record, error] {
	return func(func(participation.Record, error) bool) {}
}

func (l *live) Write(c participation.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r, h := range c.Rounds {
		l.rounds[r] = h
		delete(l.rounds, r-min(r, 16))
	}
	for _, p := range c.Events {
		if l.events[p.Key] = p; p.State != participation.Charged {
			delete(l.events, p.Key)
		}
	}
	if c.Pin != nil {
		return l.MemoryStore.Write(participation.Change{Pin: c.Pin})
	}
	return nil
}
