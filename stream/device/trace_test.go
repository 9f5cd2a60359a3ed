package device_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/wire"
)

// A scene is a situation whose trace is kept in testdata: a device, and a test that plays learner, stage and broker.
// Lines with a bar are what the test does; the others are effects that the device's machines asked for, outcomes that it
// told, and what it logged. Times count from the beginning; lots and waits are the same in every run.
type scene struct {
	*world
	ctx    context.Context
	config device.Settings
	lives  byte
	ahead  atomic.Int64 // by which the machine's clock is ahead
	device *device.Device
	hashes map[stream.Round]stream.Hash

	trace golden.Trace

	mu     sync.Mutex // guards all below
	faults map[memory.Op]memory.Fault
	places func(stream.PlaceRequest) stream.PlaceAnswer // nil: nobody gives places
	answer func(*stream.Ack)                            // nil: the broker's reply is passed on unchanged
}

func newScene(t *testing.T, p plan) *scene { return newWorld(t, p).scene() }

// scene returns a scene in a world.
func (w *world) scene() *scene {
	s := &scene{world: w, ctx: w.t.Context(), hashes: make(map[stream.Round]stream.Hash),
		faults: make(map[memory.Op]memory.Fault)}
	w.broker.Inject(func(op memory.Op, _ string) memory.Fault {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.faults[op]
	})
	s.config = s.dear(inOrder{participation.NewMemoryStore()})
	s.config.Transport = player{s.config.Transport, s}
	s.config.Logger = golden.LogLines(s.say)
	return s
}

// An inOrder is a store that lists events in the order of their keys.
type inOrder struct{ participation.Store }

func (s inOrder) Charged() iter.Seq2[participation.Record, error] {
	return func(yield func(participation.Record, error) bool) {
		var all []participation.Record
		for r, err := range s.Store.Charged() {
			if err != nil {
				yield(r, err)
				return
			}
			all = append(all, r)
		}
		slices.SortFunc(all, func(a, b participation.Record) int { return bytes.Compare(a.Key[:], b.Key[:]) })
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// say appends a line.
func (s *scene) say(line string) { s.trace.Say("", line) }

// does records what the test does next, does it, and waits.
func (s *scene) does(what string, wait time.Duration, f func()) {
	s.say("| " + what)
	f()
	time.Sleep(wait)
	synctest.Wait()
}

// waits lets time go by.
func (s *scene) waits(d time.Duration) { s.does(fmt.Sprintf("%v go by", d), d, func() {}) }

// begins starts a device on the scene's store.
func (s *scene) begins() {
	s.does("a device begins", time.Second, func() {
		s.lives++
		s.device = s.client(s.config)
		device.SetChance(s.device, s.lives)
		device.SetClock(s.device, func() time.Time { return time.Now().Round(0).Add(time.Duration(s.ahead.Load())) })
		device.OnEffect(s.device, func(k participation.Key) string {
			for name := 'a'; name <= 'z'; name++ {
				if participation.EventKey(string(name)) == k {
					return string(name)
				}
			}
			return "block" // of all rows
		}, s.say, func(early string) { s.t.Error(early) })
		device.Begin(s.device)
	})
}

// dies closes the device.
func (s *scene) dies() {
	s.does("the device is closed", 0, func() { must(s.t, s.device.Close()) })
}

// offers hands over an event of each letter.
func (s *scene) offers(names string) {
	s.does("events are submitted: "+names, time.Second, func() {
		for _, name := range names {
			name := string(name)
			must(s.t, device.Offer(s.ctx, s.device, participation.EventKey(name),
				func(o device.Outcome) { s.say(o.Tell(name)) }))
		}
	})
}

// runs publishes the rows of files until they are settled or the device is closed, and says what came of them.
func (s *scene) runs(parts ...part) {
	s.does("all rows are published", 3*time.Second, func() {
		dev := s.device
		go func() {
			got, err := dev.Run(s.ctx, files(parts...))
			s.say(fmt.Sprintf("Run returns: %d counted, %d unknown, %v", got.Counted, got.Unknown, err))
		}()
	})
}

// announces puts a round of the step of its number.
func (s *scene) announces(r stream.Round) {
	s.does(fmt.Sprintf("the learner announces round %d", r), time.Second, func() { s.hashes[r] = s.announce(s.ctx, r) })
}

// opens puts an attempt, as open changes it.
func (s *scene) opens(r stream.Round, a stream.Attempt, open func(*wire.Open)) {
	s.does(fmt.Sprintf("the stage opens %d.%d", r, a), 5*time.Second, func() {
		m := s.openMessage(r, a, s.hashes[r])
		m.StartedUnixMs = time.Now().UnixMilli()
		if open != nil {
			open(m)
		}
		s.put(s.ctx, s.name.Open(r, a), s.stage, m)
	})
}

const everything = 1 << 40

// closes puts the Close of an attempt.
func (s *scene) closes(r stream.Round, a stream.Attempt, cutoff uint64) {
	what := "which counts no report"
	if cutoff > 0 {
		what = "which counts its reports"
	}
	s.does(fmt.Sprintf("the stage closes %d.%d, %s", r, a, what), 10*time.Second, func() {
		s.close(s.ctx, participation.Closed{Round: r, Attempt: nth(a), Manifest: s.hashes[r], Cutoff: cutoff})
	})
}

func (s *scene) ends(last stream.Round) {
	s.does("the learner ends the task", 30*time.Second, func() { s.end(s.ctx, last) })
}

// A player is the way to the broker of a scene.
type player struct {
	stream.Transport
	s *scene
}

func (p player) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := p.Transport.Publish(ctx, reports)
	p.s.mu.Lock()
	answer := p.s.answer
	p.s.mu.Unlock()
	for i := range acks {
		if answer != nil {
			answer(&acks[i])
		}
	}
	return acks, err
}

// Get reads the lease as renewed now, in a scene with a ledger.
func (p player) Get(ctx context.Context, subject string) (stream.Message, error) {
	if p.s.config.Ledger != nil && subject == p.s.name.Lease() {
		return stream.Message{Subject: subject, Time: time.Now()}, nil
	}
	return p.Transport.Get(ctx, subject)
}

func (p player) Place(ctx context.Context, subject string, data []byte) ([]byte, error) {
	r, err := stream.ParsePlaceRequest(data)
	must(p.s.t, err)
	p.s.mu.Lock()
	answer := p.s.places
	p.s.mu.Unlock()
	if answer == nil {
		return nil, errSilent
	}
	a := answer(r)
	a.ID = r.ID
	return a.Record(), nil
}

// TestTraces plays each situation and compares what the device decided, in which order and when, with its trace. In all
// of them an event is charged in the ledger before it is in the store, and there before it is published.
func TestTraces(t *testing.T) {
	const dir = "testdata/traces"
	golden.Count(t, dir, len(scenes))
	for name, play := range scenes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := play(t)
				must(t, s.device.Close())
				s.trace.Compare(t, dir, name)
			})
		})
	}
}
