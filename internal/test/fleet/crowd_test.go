package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relayclient"
	"github.com/panlearn/panlearn/stream/wire"
)

// A distant device is as far from the broker as a phone is: every message to it and from it takes half of way each way.
// Some die, at a moment that is drawn before.
type distant struct {
	stream.Transport
	way  time.Duration
	dies moment
	dead atomic.Bool

	sent  map[string][16]byte // ids of messages of a device of one event, by subject: written by one goroutine at a time
	twice bool                // two of one attempt differ: a report that is sealed again keeps its id, and one that is drawn has another
}

// A moment is one at which a connection dies for ever.
type moment int

const (
	never      moment = iota
	asking            // before it asks, or publishes where it does not ask
	placed            // it has a place, and the answer is lost
	charged           // before its report leaves
	published         // before its report is acknowledged
	allMoments        // how many there are
)

func (d *distant) travel(ctx context.Context) error {
	if err := device.Until(ctx, time.Now().Add(d.way/2)); err != nil {
		return err
	}
	if d.dead.Load() {
		return stream.ErrDisconnected
	}
	return nil
}

// die ends the connection if this is its moment.
func (d *distant) die(now moment) error {
	if d.dies == now {
		d.dead.Store(true)
	}
	if d.dead.Load() {
		return stream.ErrDisconnected
	}
	return nil
}

func (d *distant) Get(ctx context.Context, subject string) (stream.Message, error) {
	if err := d.travel(ctx); err != nil {
		return stream.Message{}, err
	}
	m, err := d.Transport.Get(ctx, subject)
	return m, errors.Join(err, d.travel(ctx))
}

func (d *distant) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	if err := d.travel(ctx); err != nil {
		return stream.Message{}, err
	}
	m, err := d.Transport.Latest(ctx, pattern)
	return m, errors.Join(err, d.travel(ctx))
}

func (d *distant) Watch(ctx context.Context, of stream.Task) (<-chan stream.Wake, error) {
	near, err := d.Transport.Watch(ctx, of)
	if err != nil {
		return nil, err
	}
	far := make(chan stream.Wake)
	go func() {
		defer close(far)
		for w := range near {
			if d.travel(ctx) != nil {
				continue
			}
			select {
			case far <- w:
			case <-ctx.Done():
			}
		}
	}()
	return far, nil
}

func (d *distant) Place(ctx context.Context, subject string, request []byte) ([]byte, error) {
	if err := errors.Join(d.die(asking), d.travel(ctx)); err != nil {
		return nil, err
	}
	answer, err := d.Transport.Place(ctx, subject, request)
	return answer, errors.Join(err, d.die(placed), d.travel(ctx))
}

func (d *distant) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	if err := errors.Join(d.die(asking), d.die(charged), d.travel(ctx)); err != nil {
		return nil, err
	}
	for _, r := range reports {
		if d.sent == nil {
			break
		}
		before, known := d.sent[r.Subject]
		d.twice = d.twice || known && before != r.ID
		d.sent[r.Subject] = r.ID
	}
	acks, err := d.Transport.Publish(ctx, reports)
	return acks, errors.Join(err, d.die(published), d.travel(ctx))
}

// A crowd counts what a task did to those who were there.
type crowd struct {
	counted, vain, died uint64 // users who lived: counted, and charged and not; those who died
	unknown             uint64 // charged users, not counted, with an unknown outcome
	twice               uint64 // of the single ones, those who sent two reports that differ to one attempt
	released            uint64 // users in the batches
	rounds, full        int
	attempts            int // beyond one a round
	took                time.Duration
	places              stage.Places
}

// tally adds what became of the users of a device that lived.
func (c *crowd) tally(s device.Summary) {
	c.counted, c.vain, c.unknown = c.counted+s.Counted, c.vain+s.ChargedUncounted+s.Unknown, c.unknown+s.Unknown
}

// relay starts a relay for so many devices, and returns its address and what connects one to it.
func (f *fleet) relay(devices int) (url string, connect func() stream.Transport) {
	if devices == 0 {
		return "", nil
	}
	conn, err := natsjs.Connect(natsjs.ConnectConfig{URL: f.broker.url, AckTimeout: time.Minute})
	must(f.t, err)
	f.t.Cleanup(conn.Close)
	r, err := relay.New(relay.Config{Broker: conn, PerAddress: devices + 1, Waiting: devices + 1})
	must(f.t, err)
	f.t.Cleanup(r.Close)
	server := httptest.NewServer(r)
	f.t.Cleanup(server.Close)
	return server.URL, func() stream.Transport {
		c, err := relayclient.New(relayclient.Config{URL: server.URL})
		must(f.t, err)
		f.t.Cleanup(c.Close)
		return c
	}
}

// play runs all rounds of the task with a real stage, for single devices that are 300 ms away, the first ones over a
// relay, and scripted ones in TypeScript, beside a gateway of many rows; a share of the single ones dies.
func (f *fleet) play(single, relayed, scripted, rows, rounds, cohort int, dying float64) (c crowd) {
	ctx, stop := context.WithCancel(f.t.Context())
	defer stop()
	reader, err := f.operator.Reader(ctx, name)
	must(f.t, err)
	mixer, err := stage.New(stage.Config{Task: name, Records: f.operator, Reports: reader, PlaceServer: f.operator,
		Identity: f.stage})
	must(f.t, err)
	config := func(t stream.Transport) device.Settings {
		c := device.Settings{Task: name, Transport: t, Store: participation.NewMemoryStore(), Source: "events",
			Policy: consent.Policy{LearnerKey: consent.Fingerprint(f.learner.Public()),
				StageKey: consent.Fingerprint(f.stage.Public())}}
		// Thousands read the last Close at once, on the cores of one machine: what their share of devices that cannot know is
		// with the wait that devices have is not measured here.
		if longtest.On() {
			c.CloseWait = 10 * device.DefaultCloseWait
		}
		return c
	}
	var group, heard sync.WaitGroup
	heard.Add(single)
	var mu sync.Mutex
	over := make(chan struct{})
	const seed, each = 7, 50
	rng := rand.New(rand.NewPCG(seed, 1))
	var conn stream.Transport
	var devices []*device.Device
	url, relay := f.relay(relayed + scripted)
	for i := range single {
		switch {
		case i < relayed: // a connection of its own, as a phone has
			conn = relay()
		case (i-relayed)%each == 0:
			shared, err := natsjs.Connect(natsjs.ConnectConfig{URL: f.broker.url, AckTimeout: time.Minute})
			must(f.t, err)
			f.t.Cleanup(shared.Close)
			conn = shared
		}
		far := &distant{Transport: conn, way: 300 * time.Millisecond, sent: map[string][16]byte{}}
		if rng.Float64() < dying {
			far.dies = moment(1 + rng.IntN(int(allMoments)-1))
		}
		cfg := config(far)
		var last device.Progress
		cfg.Progress = func(p device.Progress) {
			if last.Round == 0 && p.Round > 0 {
				heard.Done()
			}
			last = p
		}
		dev, err := device.New(cfg)
		must(f.t, err)
		devices = append(devices, dev)
		group.Go(func() {
			answered, wait := make(chan struct{}), ctx
			go func() {
				defer close(answered)
				_, _ = dev.Publish(wait, participation.EventKey(strconv.Itoa(i)),
					convex.Example{Index: []int32{int32(i % 10)}, Value: []float64{0.5}, Label: 1})
			}()
			select {
			case <-answered:
			case <-over:
				if !far.dead.Load() {
					<-answered
				}
			}
			_ = dev.Close()
			mu.Lock()
			defer mu.Unlock()
			if far.twice {
				c.twice++
			}
			if far.dead.Load() {
				c.died++
				return
			}
			c.tally(last.Summary)
		})
	}
	if rows > 0 {
		near, err := natsjs.Connect(natsjs.ConnectConfig{URL: f.broker.url})
		must(f.t, err)
		defer near.Close()
		cfg := config(&distant{Transport: near, way: 20 * time.Millisecond})
		cfg.Rows, cfg.Bundle = true, 16
		gateway, err := device.New(cfg)
		must(f.t, err)
		gateway.Expect(uint64(rows))
		devices = append(devices, gateway)
		group.Go(func() {
			got, err := gateway.Run(ctx, manyRows(rows))
			if err != nil {
				f.t.Error(err)
			}
			f.t.Logf("the gateway: %+v", got)
			mu.Lock()
			defer mu.Unlock()
			c.tally(got)
		})
	}
	script := f.script(url, scripted, dying)
	for _, d := range devices {
		_, err := d.Agreement(ctx)
		must(f.t, err)
	}
	announce := func(r stream.Round) {
		f.put(name.Round(r), f.learner, manifest.RoundOf(f.hash, uint64(r), uint64(r), make([]float64, 10), nil))
	}
	announce(1)
	heard.Wait() // each measures, once, how long a report takes, which on machines of their own they do side by side
	began, mixed := time.Now(), make(chan error, 1)
	go func() { mixed <- mixer.Run(ctx) }()
	for r := stream.Round(1); r <= stream.Round(rounds); r++ {
		if r > 1 {
			announce(r)
		}
		b := f.batch(ctx, r, mixed)
		c.rounds, c.attempts = c.rounds+1, c.attempts+int(b.Attempt)-1
		c.released += b.Users
		if r%8 == 0 {
			f.t.Logf("round %d after %v: %d users in batches; %+v", r, time.Since(began).Round(time.Second), c.released,
				mixer.Status().Places)
		}
		if b.Users >= uint64(cohort) {
			c.full++
		}
	}
	c.took = time.Since(began)
	c.places = mixer.Status().Places
	f.put(name.End(), f.learner, &wire.End{Version: stream.Version, TaskHash: f.hash[:], LastRound: uint64(rounds),
		Reason: "done"})
	must(f.t, <-mixed)
	close(over)
	group.Wait()
	script(&c)
	return c
}

// batch waits for the batch of a round.
func (f *fleet) batch(ctx context.Context, r stream.Round, mixed <-chan error) *wire.Batch {
	f.t.Helper()
	for {
		select {
		case err := <-mixed:
			f.t.Fatalf("the stage ended: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		m, err := f.operator.Get(ctx, name.Batch(r))
		if err != nil { // it is not there yet, or the broker is busy
			continue
		}
		var signed wire.Signed
		var b wire.Batch
		must(f.t, errors.Join(stream.Unmarshal(m.Data, &signed), stream.Unmarshal(signed.Body, &b)))
		return &b
	}
}

func manyRows(n int) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for i := range n {
			if !yield(task.Row{Line: int64(i) + 1, Number: int64(i), Index: []int32{int32(i % 10)}, Value: []float64{1},
				Label: "1"}, nil) {
				return
			}
		}
	}
}

// TestCrowd: devices that are far away, beside a gateway and alone, over NATS and a relay, more than the rounds take.
// With places all rounds fill and hardly anybody pays in vain, though some connections die; the same without places is
// shown beside it.
func TestCrowd(t *testing.T) {
	type scene struct {
		single, relayed, rows, cohort, rounds int
		deadline                              time.Duration
	}
	scenes, both := []scene{{400, 100, 1000, 200, 6, time.Minute}}, []bool{true}
	if longtest.Run(t, "3,000 devices beside a gateway of 100,000 rows, alone, or with 3,000 over a relay, and the same without places") {
		scenes, both = []scene{{3000, 0, 100_000, 2000, 48, time.Minute}, {3000, 0, 0, 300, 9, time.Minute},
			{6000, 3000, 100_000, 2000, 48, 5 * time.Minute}}, []bool{true, false}
	}
	for _, s := range scenes {
		for _, places := range both {
			for _, dying := range []float64{0, 0.05} {
				t.Run(fmt.Sprintf("rows=%d/relayed=%d/places=%t/dying=%v", s.rows, s.relayed, places, dying), func(t *testing.T) {
					f := newFleet(t, s.single+s.rows, s.cohort, s.deadline, places)
					f.play(s.single, s.relayed, 0, s.rows, s.rounds, s.cohort, dying).judge(t, places)
				})
			}
		}
	}
}

// judge fails where places did not do what they are for, and logs what happened.
func (c crowd) judge(t *testing.T, places bool) {
	share := float64(c.vain) / float64(c.counted+c.vain)
	t.Logf("%d of %d rounds full, %d opened again, in %v; %d in batches, %d counted, %d charged and not (%.2f %%, %d of them unknown), %d died; %+v",
		c.full, c.rounds, c.attempts, c.took.Round(100*time.Millisecond), c.released, c.counted, c.vain, 100*share, c.unknown,
		c.died,
		c.places)
	if c.twice > 0 {
		t.Errorf("%d drew twice", c.twice)
	}
	if c.full != c.rounds {
		t.Errorf("%d of %d rounds filled", c.full, c.rounds)
	}
	if places && c.places.Flooded {
		t.Log("the machine is so busy that places ended before devices could use them, and were turned off")
	} else if places && share > 0.01 {
		t.Errorf("%.2f %% of those who paid were not counted: want 1 %% at most", 100*share)
	}
	if places && c.places.Granted == 0 {
		t.Error("no place was given")
	}
}
