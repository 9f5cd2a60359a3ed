package device_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// blind is a store that can no more be read.
type blind struct{ participation.Store }

func (blind) Read([]participation.Key) ([]participation.Record, error) { return nil, errBlind }

var errBlind = errors.New("blind")

// A client that stops before it took an event in says of it what the store knows: an earlier process may have sent it,
// and had it counted. Where nobody can tell, nobody says that it was not.
func TestStoppedClientKnowsWhatTheStoreKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 1})
		store, key := participation.NewMemoryStore(), participation.EventKey("ann")
		w.play(t.Context(), func(ctx context.Context) {
			cl := w.client(w.config(store))
			got, err := cl.Publish(ctx, key, example(1))
			must(t, err)
			if got.State != participation.Counted {
				t.Fatalf("%v, want counted", got)
			}
			must(t, cl.Close())
		})
		stop := func(s participation.Store) (device.Outcome, error) {
			w.broker.Disconnect() // no round has room: the event stays where it is
			defer w.broker.Connect()
			cl := w.client(w.config(s))
			go func() {
				time.Sleep(time.Minute)
				_ = cl.Close()
			}()
			return cl.Publish(t.Context(), key, example(1))
		}
		if got, err := stop(store); err != nil || got.State != participation.Counted || got.Round != 1 {
			t.Errorf("the next client, stopped: %v, %v; want counted in round 1", got, err)
		}
		if got, _ := stop(blind{store}); got.State != participation.Unknown {
			t.Errorf("with a store that cannot be read: %v, want unknown", got)
		}
	})
}

// TestTheTaskWasEndedBefore checks that a device sends nothing to a round that will have no Close, if the device
// starts after the task was ended instead of closing that round: its event is not charged for a round that nobody
// releases.
func TestTheTaskWasEndedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		w := newWorld(t, plan{rounds: 2, cohort: 4})
		w.pass(ctx, 1, 1)
		w.end(ctx, 0)
		store := participation.NewMemoryStore()
		c := w.client(w.config(store))
		o, err := c.Publish(ctx, participation.EventKey("a"), example(1))
		must(t, err)
		if n := w.reports(1, 1); o.State != participation.Uncounted || n != 0 {
			t.Errorf("%v, %d reports to the round that was given up", o.State, n)
		}
		must(t, c.Close())
	})
}

// TestCloseOfARoundGivenUp checks that a Close counts nobody if the End that gave its round up was read before: the
// learner applies no batch of it.
func TestCloseOfARoundGivenUp(t *testing.T) {
	for _, first := range []string{"End", "Close"} {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				w := newWorld(t, plan{rounds: 2, cohort: 4})
				hash := w.announce(ctx, 1)
				w.open(ctx, 1, 1, hash)
				c := w.client(w.config(participation.NewMemoryStore()))
				ended := make(chan device.Outcome)
				go func() {
					o, err := c.Publish(ctx, participation.EventKey("a"), example(1))
					must(t, err)
					ended <- o
				}()
				for w.reports(1, 1) == 0 {
					time.Sleep(100 * time.Millisecond)
				}
				want := participation.Counted
				if first == "End" {
					want = participation.Unknown
					w.end(ctx, 0)
					time.Sleep(10 * time.Second)
				}
				w.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: hash, Cutoff: 1 << 40})
				if o := <-ended; o.State != want {
					t.Errorf("%v, want %v", o, want)
				}
				must(t, c.Close())
			})
		})
	}
}

// A broker at a distance stores at once, and its answer is on its way for a while.
type distant struct{ stream.Transport }

func (d distant) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := d.Transport.Publish(ctx, reports)
	select {
	case <-time.After(500 * time.Millisecond):
		return acks, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestAStopHearsTheAnswers: a client that is stopped while the broker's replies are on their way takes them, so that
// the next one knows who was counted, though the round closed meanwhile and takes nothing again.
func TestAStopHearsTheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 8})
		store := participation.NewMemoryStore()
		w.play(t.Context(), func(ctx context.Context) {
			c := w.config(store)
			c.Transport = distant{c.Transport}
			life, stop := context.WithCancel(ctx)
			go func() {
				for w.reports(1, 1) < 6 {
					time.Sleep(10 * time.Millisecond)
				}
				stop()
			}()
			began := time.Now()
			sum, _ := w.client(c).Run(life, rows(6, false))
			if sum.Open != 6 || time.Since(began) > 10*time.Second {
				t.Errorf("%+v after %v, want 6 whose round is open", sum, time.Since(began))
			}
			others := w.config(participation.NewMemoryStore())
			others.Source = "others"
			_, err := w.client(others).Run(ctx, rows(2, false))
			must(t, err)
			sum, err = w.client(w.config(store)).Run(ctx, rows(6, false))
			must(t, err)
			if sum.Counted != 6 {
				t.Errorf("%+v, want 6 counted", sum)
			}
		})
	})
}

// TestAStopDoesNotWaitForABrokerThatIsAway: replies that do not come delay no stop.
func TestAStopDoesNotWaitForABrokerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 8})
		w.play(t.Context(), func(ctx context.Context) {
			c := w.config(participation.NewMemoryStore())
			c.Transport = silent{c.Transport}
			life, stop := context.WithCancel(ctx)
			go func() {
				time.Sleep(5 * time.Second)
				stop()
			}()
			began := time.Now()
			_, _ = w.client(c).Run(life, rows(6, false))
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("it ended %v after it was stopped", took-5*time.Second)
			}
		})
	})
}

// silent is a broker that never replies.
type silent struct{ stream.Transport }

func (silent) Publish(ctx context.Context, _ []stream.Outgoing) ([]stream.Ack, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
