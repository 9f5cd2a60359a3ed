package stage

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A flood is a device that sends whatever its credentials let it, as fast as the broker takes it: to the open attempt,
// to past and later ones, to a new attempt with each message, to subjects without numbers; small and large; with
// headers that look like the broker's own.
type flood struct {
	conn *nats.Conn
	task stream.Task
	rng  *rand.Rand
	sent int
	full chan struct{} // closed when a quarter was sent
}

func (f *flood) send(t *testing.T) {
	f.sent++
	at := f.task.Report(stream.Round(f.rng.Uint64N(4)+1), stream.Attempt(f.rng.Uint64N(3)+1))
	switch f.sent % 8 {
	case 0:
		at = f.task.Report(stream.Round(f.sent), stream.Attempt(f.sent))
	case 1:
		at = strings.Replace(f.task.Report(1, 1), "1.1", "a.b", 1)
	case 2:
		at = f.task.Report(1<<63, 1)
	}
	m := nats.NewMsg(at)
	m.Data = make([]byte, f.rng.IntN(200))
	if f.sent%500 == 0 {
		m.Data = make([]byte, 30_000)
	}
	if f.sent%5 == 0 {
		m.Header.Set("Status", []string{"100", "404", "409", "503"}[f.sent/5%4])
	}
	if err := f.conn.PublishMsg(m); err != nil {
		t.Error(err)
	}
}

// TestNobodyIsHeldUpByAFlood: a device floods the task while a round is open, and until the stream is full of what it
// sent when the round has closed. Who sends to the next round is refused nothing and counted at once; while it lasts,
// log and status say what goes on.
func TestNobodyIsHeldUpByAFlood(t *testing.T) {
	n := 20_000
	if longtest.Run(t, "a flood of a million messages; 20,000 are sent") {
		n = 1_000_000
	}
	const users, rounds = 24, 2
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	conns := onNATS(t, 3, embedded.Config{}) // stage, flood, devices
	w := newWorld(t, plan{rounds: rounds, cohort: users, suite: wire.Suite_SUITE_X25519})
	check(t, natsadmin.Provision(ctx, conns[0], w.name, natsadmin.Options{MaxReportBytes: int64(n) * 30,
		MaxPerSubject: 1024}))
	put := func(subject string, data []byte) {
		_, err := conns[2].PutOnce(ctx, subject, data)
		check(t, err)
	}
	put(w.name.Task(), w.sign(w.learner, w.task))
	put(w.name.Round(1), w.sign(w.learner, w.round(1, 1)))
	var log logged
	c := w.config()
	c.Records, c.Poll, c.LeaseTTL, c.Limits = conns[0], 200*time.Millisecond, 3*time.Second, conns[0].Limits()
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	reader, err := conns[0].Reader(ctx, w.name)
	check(t, err)
	valve := &valve{ReportReader: reader}
	c.Reports = valve
	var examined atomic.Uint64
	c.Observer.Report = func(Reason) { examined.Add(1) }
	running := make(chan error, 1)
	s := w.new(c)
	go func() { running <- s.Run(ctx) }()

	round := func(r stream.Round) (refused int, took time.Duration) {
		in := w.opened(ctx, t, conns[2], r)
		begun := time.Now()
		for _, u := range w.users(r) {
			refused += insist(ctx, t, conns[2], stream.Outgoing{Subject: w.name.Report(r, 1), ID: randomID(),
				Data: w.seal(in, [][16]byte{randomID()}, w.plaintext(u))})
		}
		valve.shut.Store(false)
		b := &wire.Batch{}
		_, err := seal.Verify(poll(ctx, t, conns[2], w.name.Batch(r)), w.stage.Public(), b)
		check(t, err)
		for _, u := range w.users(r) {
			if b.Totals[u] != 1 {
				t.Errorf("round %d: user %d is counted %d times", r, u, b.Totals[u])
			}
		}
		return refused, time.Since(begun)
	}
	// The flood goes on until so much was sent and the round is over, and then until the stream takes no more.
	var over atomic.Bool
	var flooding sync.WaitGroup
	f := &flood{conn: conns[1].NATS(), task: w.name, rng: rand.New(rand.NewPCG(1, 2)), full: make(chan struct{})}
	begun := time.Now()
	poll(ctx, t, conns[2], w.name.Open(1, 1))
	flooding.Go(func() {
		for after := 0; after < n/2 && ctx.Err() == nil; {
			f.send(t)
			if f.sent == n/4 {
				close(f.full)
			}
			if f.sent >= n/2 && over.Load() {
				after++
			}
			if f.sent%256 == 0 {
				if err := f.conn.FlushTimeout(time.Minute); err != nil {
					t.Error(err)
				}
			}
		}
	})
	<-f.full
	refused, took := round(1)
	over.Store(true)
	flooding.Wait()
	flooded, drained := time.Since(begun), examined.Load()
	if s := s.Status(); s.Strange == 0 || s.Queue.MaxBytes == 0 {
		t.Errorf("status after the flood: %+v", s)
	}
	// answered when the server is through with all before
	_, err = conns[1].Publish(ctx, []stream.Outgoing{{Subject: w.name.Report(1, 2)}})
	check(t, err)
	before, err := reader.Queue(ctx)
	check(t, err)
	valve.shut.Store(true) // reports to the next round are sent before the stage has taken one
	put(w.name.Round(2), w.sign(w.learner, w.round(2, 2)))
	again, next := round(2)
	put(w.name.End(), w.sign(w.learner, &wire.End{Version: stream.Version, TaskHash: w.hash[:], LastRound: rounds,
		Reason: "done"}))
	check(t, <-running)
	if again != 0 || before.Messages < 100 {
		t.Errorf("%d publishes were refused in the round after the flood, which left %d messages", again, before.Messages)
	}
	for _, want := range []string{"most reports do not count", "the stream of reports fills up", "attempt"} {
		if !log.has(want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	fmt.Printf(
		"flood: %d messages in %v, %.0f a second; %d examined meanwhile; the round took %v, %d publishes were refused in it; "+
			"%+v were left. The next round took %v\n", f.sent, flooded.Round(time.Millisecond), float64(f.sent)/flooded.Seconds(),
		drained,
		took.Round(time.Millisecond), refused, before, next.Round(time.Millisecond))
}

// logged is a log that a test reads while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// A valve hands out nothing while it is shut.
type valve struct {
	stream.ReportReader
	shut atomic.Bool
}

// Fetch implements stream.ReportReader.
func (v *valve) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	if v.shut.Load() {
		<-time.After(5 * time.Millisecond)
		return nil, nil
	}
	return v.ReportReader.Fetch(ctx, max, wait)
}
