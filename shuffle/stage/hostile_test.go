package stage

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestFullQueue: the queue is full of garbage to its last byte before a stage is there, and again when the attempt is
// open. The first is purged unseen; then devices are refused and try again, the stage drains the queue, and everybody
// is counted, though the flood goes on.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users = 24
		w := newWorld(t, plan{cohort: users, suite: wire.Suite_SUITE_X25519, broker: memory.Config{MaxReportBytes: 64 << 10,
			Window: 256}})
		w.announce(t.Context())
		garbage := func() stream.Outgoing {
			return stream.Outgoing{Subject: w.name.Report(1, 1), ID: randomID(), Data: bytes.Repeat([]byte{7}, 1000)}
		}
		full := func() bool {
			acks, err := w.broker.Publish(t.Context(), []stream.Outgoing{garbage()})
			if err != nil {
				t.Fatal(err)
			}
			return acks[0].Status == stream.Refused
		}
		fill := func() (filled int) {
			for !full() {
				filled++
			}
			return filled
		}
		before := fill()
		c := w.config()
		gate := &gated{c.Reports, make(chan struct{})}
		c.Reports = gate
		s := w.new(c)
		running := make(chan error, 1)
		go func() { running <- s.Run(t.Context()) }()
		in := w.invited(t.Context(), 1, 0) // the attempt is open, and the stage has taken nothing yet
		filled := fill()
		flooding, stop := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		flood.Go(func() {
			for flooding.Err() == nil {
				if full() {
					time.Sleep(time.Millisecond) // as fast as there is room
				}
			}
		})
		refused := 0
		for u := range uint64(users) {
			report := stream.Outgoing{Subject: w.name.Report(in.round, in.attempt), ID: randomID(),
				Data: w.seal(in, [][16]byte{randomID()}, w.plaintext(u))}
			for {
				acks, err := w.broker.Publish(t.Context(), []stream.Outgoing{report})
				if err != nil {
					t.Fatal(err)
				}
				if acks[0].Status == stream.Stored {
					break
				}
				if refused++; refused == 3 {
					close(gate.open)
				}
				time.Sleep(7 * time.Millisecond)
			}
		}
		b, _ := w.await(t.Context(), 1)
		stop()
		flood.Wait()
		w.end(t.Context(), 1)
		if err := <-running; err != nil {
			t.Error(err)
		}
		if real, void := w.audit(); real != 1 || void != 0 || b.Users != users {
			t.Errorf("%d real, %d void batches, %d users", real, void, b.Users)
		}
		if filled != before {
			t.Errorf("%d reports fill the open attempt's queue, %d filled it before: they are not purged", filled, before)
		}
		if refused < 3 || filled < 10 || len(b.Rejects) != 1 || b.Rejects[0].Count < uint64(filled) {
			t.Errorf("%d times refused, filled with %d, rejects %v: the queue was not full", refused, filled, b.Rejects)
		}
	})
}

// gated hands out no report before it is opened.
type gated struct {
	stream.ReportReader
	open chan struct{}
}

// Fetch implements stream.ReportReader.
func (g *gated) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	select {
	case <-g.open:
		return g.ReportReader.Fetch(ctx, max, wait)
	case <-time.After(wait):
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestSlowPublishers: devices that connect and never send, that send the first half of a report, that send half of the
// cohort and fall silent, and one that keeps sending garbage without end: none of them holds the round past its
// deadline by more than one fetch.
func TestSlowPublishers(t *testing.T) {
	for name, slow := range map[string]func(*world, context.Context, *invitation){
		"nothing": func(*world, context.Context, *invitation) {},
		"halves of reports": func(w *world, ctx context.Context, in *invitation) {
			whole := w.seal(in, [][16]byte{randomID()}, w.plaintext(20))
			w.send(ctx, in, whole[:len(whole)/2], whole[:1], whole[len(whole)/2:])
		},
		"half of a bundle": func(w *world, ctx context.Context, in *invitation) {
			// Two ids, and what one of them has to say.
			r := w.seal(in, [][16]byte{randomID(), randomID()}, w.plaintext(20))
			w.send(ctx, in, r)
		},
		"a drop at a time": func(w *world, ctx context.Context, in *invitation) {
			for ctx.Err() == nil { // below the rate at which the cohort would fill
				time.Sleep(9 * time.Second)
				w.send(ctx, in, []byte("drop"))
			}
		},
		"garbage without end": func(w *world, ctx context.Context, in *invitation) {
			for ctx.Err() == nil {
				w.send(ctx, in, bytes.Repeat([]byte{1}, 100))
				time.Sleep(20 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const deadline = time.Minute
				w := newWorld(t, plan{cohort: 24, minimum: 12, deadline: deadline, suite: wire.Suite_SUITE_X25519, bundle: 2,
					broker: memory.Config{MaxReportBytes: 1 << 20}})
				w.bundle = 1
				w.announce(t.Context())
				c := w.config()
				s := w.new(c)
				running := make(chan error, 1)
				go func() { running <- s.Run(t.Context()) }()
				in := w.invited(t.Context(), 1, 0)
				opened := time.Now()
				ctx, stop := context.WithCancel(t.Context())
				var others sync.WaitGroup
				others.Go(func() { slow(w, ctx, in) })
				w.answer(t.Context(), in, w.users(1)[:15])
				b, _ := w.await(t.Context(), 1)
				took := time.Since(opened)
				stop()
				others.Wait()
				w.end(t.Context(), 1)
				if err := <-running; err != nil {
					t.Error(err)
				}
				// The stage looks at the clock after each fetch; the test looks for the batch every 300 ms.
				if b.Void || b.Users != 15 || b.NoiseTrials != 24 || took < deadline-time.Second || took > deadline+c.Poll+
					time.Second {
					t.Errorf("%v: %d users, %d trials, after %v", fmt.Sprint(b.Void), b.Users, b.NoiseTrials, took)
				}
			})
		})
	}
}
