package stage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
)

// overtaken is a connection on which somebody else's claim always comes just before ours.
type overtaken struct {
	stream.Records
	first func(ctx context.Context)
}

func (o overtaken) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	if a, _ := stream.ParseSubject(subject); a.Verb == "claim" {
		o.first(ctx)
	}
	return o.Records.PutOnce(ctx, subject, data)
}

// TestWhoLosesTheClaimReleasesNothing: two attempts come to their claims at the same time. The loser sends no batch,
// not even one that the broker would refuse, and takes the winner's or makes the round void.
func TestWhoLosesTheClaimReleasesNothing(t *testing.T) {
	for _, winner := range []string{"releases", "dies"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 4, rounds: 1, spares: 1})
			w.announce(t.Context())
			var sent wires
			dropped := 0
			c := w.config()
			m := &mortal{Records: c.Records, ReportReader: c.Reports, wires: &sent, times: map[string]int{}}
			c.Reports = m
			c.Records = overtaken{m, func(ctx context.Context) {
				w.put(ctx, w.name.Claim(1), w.sign(w.stage, w.claim(stream.Hash{})))
			}}
			c.Observer.Dropped = func(stream.Round, stream.Attempt) { dropped++ }
			_, stop := w.start(c)
			in := w.invited(t.Context(), 1, 0)
			w.answer(t.Context(), in, w.users(1))
			time.Sleep(5 * time.Second)
			theirs := w.sign(w.stage, w.real())
			if winner == "releases" {
				w.put(t.Context(), w.name.Batch(1), theirs)
			}
			time.Sleep(time.Minute)
			b, standing := w.batch(1)
			if b == nil || b.Void != (winner == "dies") || (!b.Void && string(standing.Data) != string(theirs)) {
				t.Errorf("the winner %s: batch %v", winner, b)
			}
			for subject, all := range sent.sent {
				for data := range all {
					if data != string(standing.Data) {
						t.Errorf("the winner %s: the loser sent another %s", winner, subject)
					}
				}
			}
			if dropped != 1 {
				t.Errorf("%d attempts dropped", dropped)
			}
			_ = stop()
		})
	}
}

// TestShutdownFinishesAClaim: a stop between claim and batch would make the round void, so it is put off, also while it
// is not known whether the claim is on the broker.
func TestShutdownFinishesAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 3})
		w.announce(t.Context())
		c := w.config()
		s := w.new(c)
		ctx, stop := context.WithCancel(t.Context())
		once := false
		w.broker.Inject(func(op memory.Op, subject string) memory.Fault {
			if op == memory.Put && subject == w.name.Claim(1) && !once {
				once = true
				stop()
				return memory.LostAck
			}
			return memory.None
		})
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		in := w.invited(t.Context(), 1, 0)
		w.answer(t.Context(), in, w.users(1))
		if err := <-done; err != context.Canceled {
			t.Errorf("Run: %v", err)
		}
		if real, void := w.audit(); real != 1 || void != 0 {
			t.Errorf("%d real, %d void batches", real, void)
		}
	})
}

// stalled is a connection whose Get, once, takes so long that another process has the lease when it comes back.
type stalled struct {
	stream.Records
	stream.ReportReader
	stall chan func() // at most one, not yet taken
	late  bool        // stall was taken
	acked int         // since then
}

func (s *stalled) Get(ctx context.Context, subject string) (stream.Message, error) {
	select {
	case stall := <-s.stall:
		s.late = true
		stall()
	default:
	}
	return s.Records.Get(ctx, subject)
}

func (s *stalled) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	ds, err := s.ReportReader.Fetch(ctx, max, wait)
	for i := range ds {
		ack := ds[i].Ack
		ds[i].Ack = func() error {
			if s.late {
				s.acked++
			}
			return ack()
		}
	}
	return ds, err
}

// takeLease plays another process, which is never seen again: it has the lease for a minute.
func (w *world) takeLease(t *testing.T) {
	m, err := w.broker.Get(t.Context(), w.name.Lease())
	if err != nil {
		t.Error(err)
	}
	other := newLease("", randomID(), 10*time.Second, time.Second)
	if _, err := w.broker.Swap(t.Context(), w.name.Lease(), m.Sequence, other.record(time.Minute)); err != nil {
		t.Error(err)
	}
}

// TestAStalledProcessDoesNothing: it wakes up with reports in its hands, a full minimum and a deadline behind it, but
// the lease is another's: it acknowledges nothing, claims nothing and drops its attempt.
func TestAStalledProcessDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 4, minimum: 2, deadline: 30 * time.Second, spares: 1})
		w.announce(t.Context())
		c := w.config()
		slow := &stalled{Records: c.Records, ReportReader: c.Reports, stall: make(chan func(), 1)}
		c.Records, c.Reports = slow, slow
		examined, dropped := 0, 0
		c.Observer.Report = func(Reason) { examined++ }
		c.Observer.Dropped = func(stream.Round, stream.Attempt) { dropped++ }
		_, stop := w.start(c)
		in := w.invited(t.Context(), 1, 0)
		w.answer(t.Context(), in, w.users(1)[:2])
		time.Sleep(2 * time.Second)
		slow.stall <- func() {
			w.answer(t.Context(), in, w.users(1)[2:3])
			time.Sleep(40 * time.Second)
			w.takeLease(t)
		}
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if _, err := w.broker.Get(t.Context(), w.name.Claim(1)); err == nil || examined != 2 || slow.acked != 0 ||
			dropped != 1 {
			t.Errorf("claim: %v, %d examined, %d acknowledged, %d dropped", err, examined, slow.acked, dropped)
		}
		// The other process was never seen again, so the round is opened again after its lease.
		if again := w.invited(t.Context(), 1, 1); again == nil || again.attempt != 2 {
			t.Errorf("invited again: %v", again)
		}
		_ = stop()
	})
}

// TestNoClaimIsBegunWithoutTheLease checks that nothing is claimed if another process gets the lease while the report
// that completes the cohort is examined, and that the round is opened again after that lease.
func TestNoClaimIsBegunWithoutTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		w := newWorld(t, plan{cohort: 2})
		w.announce(ctx)
		c := w.config()
		c.Workers = 1
		examined, dropped := 0, 0
		c.Observer.Report = func(Reason) {
			if examined++; examined == 2 {
				time.Sleep(c.LeaseTTL + time.Second)
				w.takeLease(t)
			}
		}
		c.Observer.Dropped = func(stream.Round, stream.Attempt) { dropped++ }
		_, stop := w.start(c)
		w.answer(ctx, w.invited(ctx, 1, 0), w.users(1))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if _, err := w.broker.Get(ctx, w.name.Claim(1)); err == nil || examined != 2 || dropped != 1 {
			t.Errorf("claim: %v, %d examined, %d dropped", err, examined, dropped)
		}
		if again := w.invited(ctx, 1, 1); again != nil {
			w.answer(ctx, again, w.users(1))
			w.get(ctx, w.name.Batch(1))
		}
		if b, _ := w.batch(1); b == nil || b.Void || b.Attempt != 2 || b.Users != 2 {
			t.Errorf("batch %v: want that of attempt 2", b)
		}
		_ = stop()
	})
}

// TestBundlesStopAtTheCohort: a fetch may bring more users than a cohort has room for. The bundle that completes the
// cohort is the last that is opened.
func TestBundlesStopAtTheCohort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 10, bundle: 4})
		w.announce(t.Context())
		c := w.config()
		opened := 0
		c.Observer.Report = func(Reason) { opened++ }
		_, stop := w.start(c)
		in := w.invited(t.Context(), 1, 0)
		w.answer(t.Context(), in, make([]uint64, 24))
		time.Sleep(10 * time.Second)
		if b, _ := w.batch(1); b == nil || b.Users != 12 || b.NoiseTrials != 12 || b.Cutoff != 3 || len(b.Rejects) != 0 ||
			opened != 3 {
			t.Errorf("%d bundles opened, batch %v", opened, b)
		}
		_ = stop()
	})
}
