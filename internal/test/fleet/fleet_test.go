package fleet

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

const name stream.Task = "fleet"

const (
	cohort = 100
	users  = 10_000 // of the task, each on a device of its own
)

const declaration = `
version: 1
name: fleet
events: {format: libsvm}
features: {vector: {dimension: 10, min: -1, max: 1}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: %d, cohort: %d, minimum_cohort: %d, rounds: {max: %d}, algorithm: psgd, plan: proved, deadline: %v}
validation: {off: true}
`

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A fleet is many devices, each with a connection of its own, and one who plays learner and stage.
type fleet struct {
	t              *testing.T
	broker         *broker
	operator       *natsjs.Conn
	learner, stage *seal.Identity
	body           *wire.Task
	hash           stream.Hash
	conns          []*natsjs.Conn
	devices        []*device.Device
	reads          atomic.Int64 // that all devices asked for, answered or not
	waiting        atomic.Int64 // of them, polls of the first devices, which wait for rounds
}

// A device's records count what it reads.
type counted struct {
	*natsjs.Conn
	reads []*atomic.Int64
}

func (c counted) count() {
	for _, n := range c.reads {
		n.Add(1)
	}
}

func (c counted) Get(ctx context.Context, subject string) (stream.Message, error) {
	c.count()
	return c.Conn.Get(ctx, subject)
}

func (c counted) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	c.count()
	return c.Conn.Latest(ctx, pattern)
}

// newFleet starts a broker with a task for so many users, whose rounds have a deadline.
func newFleet(t *testing.T, users, cohort int, deadline time.Duration, places bool) *fleet {
	t.Helper()
	f := &fleet{t: t, broker: startBroker(t)}
	spec, err := task.Parse(fmt.Appendf(nil, declaration, users, cohort, cohort, users/cohort, deadline), nil)
	must(t, err)
	job, err := run.NewJob(spec)
	must(t, err)
	f.body, err = job.Wire()
	must(t, err)
	f.learner, err = seal.NewIdentity()
	must(t, err)
	f.stage, err = seal.NewIdentity()
	must(t, err)
	f.body.Plan.Places = places
	f.body.Version, f.body.Name = stream.Version, string(name)
	f.body.LearnerKey, f.body.StageKey, f.body.Life = f.learner.Public(), f.stage.Public(), make([]byte, stream.LifeSize)
	body, err := stream.Marshal(f.body)
	must(t, err)
	f.hash = stream.HashOf(body)
	f.operator, err = natsjs.Connect(natsjs.ConnectConfig{URL: f.broker.url})
	must(t, err)
	t.Cleanup(f.operator.Close)
	must(t, natsadmin.Provision(t.Context(), f.operator, name, natsadmin.Options{}))
	f.put(name.Task(), f.learner, f.body)
	return f
}

func (f *fleet) put(subject string, by *seal.Identity, m proto.Message) {
	f.t.Helper()
	data, err := by.Sign(m)
	must(f.t, err)
	_, err = f.operator.PutOnce(f.t.Context(), subject, data)
	must(f.t, err)
}

// grow adds devices that have agreed to the task and wait, and whose reads these count. They end with the test.
func (f *fleet) grow(n int, maxPoll time.Duration, reads ...*atomic.Int64) {
	f.t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	free := make(chan struct{}, 64)
	for range n {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			conn, err := natsjs.Connect(natsjs.ConnectConfig{URL: f.broker.url, Ping: 2 * time.Minute})
			if err != nil {
				f.t.Error(err)
				return
			}
			dev, err := device.New(device.Settings{Task: name, Transport: counted{conn, reads},
				Store:  participation.NewMemoryStore(),
				Source: "events", MaxPoll: maxPoll,
				Policy: consent.Policy{LearnerKey: consent.Fingerprint(f.learner.Public()),
					StageKey: consent.Fingerprint(f.stage.Public())}})
			if err == nil {
				_, err = dev.Agreement(f.t.Context())
			}
			if err != nil {
				f.t.Error(err)
				conn.Close()
				return
			}
			mu.Lock()
			defer mu.Unlock()
			f.conns, f.devices = append(f.conns, conn), append(f.devices, dev)
		})
	}
	group.Wait()
}

func (f *fleet) close() {
	var group sync.WaitGroup
	for i := range f.devices {
		group.Go(func() {
			_ = f.devices[i].Close()
			f.conns[i].Close()
		})
	}
	group.Wait()
}

// used returns the bytes that this process holds: heap, and the stacks of goroutines.
func used() (heap, stacks uint64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.StackInuse
}

// round lets so many of the devices take part in a round, and returns how much all of them read for that.
func (f *fleet) round(number stream.Round, of int) (reads int64) {
	f.t.Helper()
	began := f.waiting.Load()
	outcomes := make(chan device.Outcome, of)
	ctx, stop := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer stop()
	for i := range of {
		go func() {
			o, err := f.devices[i].Publish(ctx, participation.EventKey(fmt.Sprintf("%d of round %d", i, number)),
				convex.Example{Index: []int32{int32(i % 10)}, Value: []float64{0.5}, Label: 1})
			if err != nil {
				f.t.Error(err)
			}
			outcomes <- o
		}()
	}
	m := manifest.RoundOf(f.hash, uint64(number), uint64(number), make([]float64, 10), nil)
	f.put(name.Round(number), f.learner, m)
	hash, err := manifest.RoundHash(m)
	must(f.t, err)
	key, err := seal.NewRoundKey(f.body.Suite)
	must(f.t, err)
	f.put(name.Open(number, 1), f.stage, &wire.Open{Version: stream.Version, TaskHash: f.hash[:], Round: uint64(number),
		Attempt: 1, ManifestHash: hash[:],
		Suite: f.body.Suite, PublicKey: key.Public(), Instance: make([]byte, stream.InstanceSize),
		StartedUnixMs: time.Now().UnixMilli()})
	for {
		s, err := f.operator.Admin().JetStream().Stream(ctx, name.Name(stream.Reports))
		must(f.t, err)
		if n := s.CachedInfo().State.Msgs; n >= uint64(of)*uint64(number) {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	f.put(name.Close(number, 1), f.stage, &wire.Close{Version: stream.Version, TaskHash: f.hash[:], Round: uint64(number),
		Attempt: 1, ManifestHash: hash[:],
		BatchHash: make([]byte, stream.HashSize), Cutoff: 1 << 40})
	for range of {
		if o := <-outcomes; o.State != participation.Counted {
			f.t.Errorf("%v, want counted", o)
		}
	}
	return f.waiting.Load() - began
}

// TestFleet: devices with a connection each cost the broker next to nothing while they have nothing to do, a round of
// some of them the reads of those, and a restart of the broker brings them back over a time that follows from their
// number.
func TestFleet(t *testing.T) {
	n, maxPoll, idle := 500, 4*time.Second, 4*time.Second
	if longtest.Run(t, "a fleet of 10,000 devices, about six minutes") {
		n, maxPoll, idle = users, device.DefaultMaxPoll, time.Minute
	}
	f := newFleet(t, users, cohort, time.Minute, false)
	defer f.close()
	bare := f.broker.read()
	heap, stacks := used()
	first := min(n, 1000)
	f.grow(cohort, device.DefaultMaxPoll, &f.reads, &f.waiting) // what they read does not depend on how long a round takes
	f.grow(first-cohort, maxPoll, &f.reads)
	h, s := used()
	per := int64(h-heap) / int64(first)
	t.Logf("%d devices: %d B of heap and %d B of stacks each", first, per, int64(s-stacks)/int64(first))
	if per > 100<<10 {
		t.Errorf("a device holds %d B, want less than 100 KiB", per)
	}
	began := time.Now()
	f.grow(n-first, maxPoll, &f.reads)
	all := f.broker.read()
	t.Logf("%d devices: agreed in %v, %.1f reads each; %d B of the broker's memory each", len(f.devices),
		time.Since(began).Round(time.Millisecond),
		float64(f.reads.Load())/float64(n), (all.Resident-bare.Resident)/int64(n))

	// A round that a hundred of them wait for.
	before := f.broker.read()
	reads := f.round(1, cohort)
	<-time.After(2 * time.Second) // wakes on their way
	after := f.broker.read()
	t.Logf(
		"a round of %d: %d reads; %d messages and %d B to the broker, %d and %d from it, %.0f B each; %v of its processor",
		cohort, reads, after.In-before.In, after.BytesIn-before.BytesIn, after.Out-before.Out, after.BytesOut-before.BytesOut,
		float64(after.BytesOut-before.BytesOut)/float64(after.Out-before.Out), after.CPU-before.CPU)
	if reads > 8*cohort {
		t.Errorf("%d reads for %d devices that waited, want at most 8 each", reads, cohort)
	}

	// Nothing. Devices look again half of maxPoll after the last wake at the earliest. Those of the round look more
	// seldom.
	<-time.After(maxPoll / 2)
	before = f.broker.read()
	asked := f.reads.Load()
	<-time.After(idle) // what is measured is this time
	after = f.broker.read()
	span := after.At.Sub(before.At)
	rate := float64(f.reads.Load()-asked) / span.Minutes() / float64(n-cohort)
	t.Logf("idle for %v: %.2f reads a minute each, %d messages to the broker, %.1f ms of its processor a second",
		span.Round(time.Second), rate,
		after.In-before.In, (after.CPU-before.CPU).Seconds()*1e3/span.Seconds())
	if most := 1.5 * float64(time.Minute) / float64(maxPoll); rate > most || rate == 0 {
		t.Errorf("%.2f reads a minute, want at most %.2f and some", rate, most)
	}

	// The broker is started again.
	spread := min(users*time.Second/1000, maxPoll)
	asked = f.reads.Load()
	readings := f.broker.restart(2*spread+5*time.Second, n+1)
	back := make(map[int]int) // new connections by second
	last := 0
	for _, r := range readings {
		back[int(r.At.Sub(readings[0].At).Seconds())] += r.Clients - last
		last = r.Clients
	}
	seconds := slices.Sorted(func(yield func(int) bool) {
		for s := range back {
			if !yield(s) {
				return
			}
		}
	})
	for _, s := range seconds {
		t.Logf("second %2d: %5d came back", s, back[s])
		if most := 2*n*int(time.Second)/int(spread) + 50; back[s] > most {
			t.Errorf("%d devices came back within second %d, want at most %d", back[s], s, most)
		}
	}
	end := readings[len(readings)-1]
	t.Logf("restart: spread over %v, %d of %d back, %d reads, %v of the broker's processor", spread, end.Clients, n+1,
		f.reads.Load()-asked, end.CPU-after.CPU)
	if end.Clients < n*99/100 {
		t.Errorf("%d of %d devices are back", end.Clients, n)
	}
}
