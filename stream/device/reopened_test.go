package device_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/wire"
)

// A forgetter is a broker that lost the Open of an attempt, so that another one took its number.
type forgetter struct {
	stream.Transport
	pattern, subject string

	mu    sync.Mutex
	other *stream.Message // guarded by mu; nil: nothing is lost yet
}

func (f *forgetter) read(ctx context.Context, subject string, read func(context.Context, string) (stream.Message,
	error)) (stream.Message, error) {
	f.mu.Lock()
	other := f.other
	f.mu.Unlock()
	if other != nil && (subject == f.subject || subject == f.pattern) {
		return *other, nil
	}
	return read(ctx, subject)
}

func (f *forgetter) Get(ctx context.Context, subject string) (stream.Message, error) {
	return f.read(ctx, subject, f.Transport.Get)
}

func (f *forgetter) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	return f.read(ctx, pattern, f.Transport.Latest)
}

// forgets has the first attempt at a round be another one from now on.
func (f *forgetter) forgets(w *world, open *wire.Open) {
	open.Instance[0]++ // another process
	data, err := w.stage.Sign(open)
	must(w.t, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.other = &stream.Message{Subject: f.subject, Data: data, Sequence: 1}
}

// soon returns an outcome that comes within an hour.
func soon(t *testing.T, outcome <-chan device.Outcome) (o device.Outcome) {
	t.Helper()
	select {
	case o = <-outcome:
	case <-time.After(time.Hour):
		t.Error("no outcome")
	}
	return o
}

// TestAnotherOpenOfTheSameNumber checks what devices do after the broker lost the Open of an attempt that died and
// the stage gave its number to another. Where somebody may have looked at the dead attempt, its users do not send
// again, not after a restart either; elsewhere they send the same counts sealed again. The Close of the other
// attempt never proves that the dead one did not count somebody.
func TestAnotherOpenOfTheSameNumber(t *testing.T) {
	for _, c := range []struct {
		trust   accounting.Trust
		restart bool
		sent    int64 // publishes to attempt 1, whichever it is
	}{
		{accounting.Shuffle, false, 2}, {accounting.Shuffle, true, 2},
		{accounting.Pan, false, 1}, {accounting.Pan, true, 1},
		{accounting.ShufflePan, false, 1}, {accounting.ShufflePan, true, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			w := newWorld(t, plan{rounds: 2, cohort: 2, trust: c.trust})
			s := newSpy(t, participation.NewMemoryStore())
			config := w.config(s)
			records := &forgetter{Transport: config.Transport, pattern: w.name.Opens(1), subject: w.name.Open(1, 1)}
			config.Transport = records
			sent := &dawdler{Transport: config.Transport, wait: func(int64) time.Duration { return 0 }}
			config.Transport = sent
			outcome := make(chan device.Outcome, 2)
			begin := func() *device.Device {
				cl := w.client(config)
				go func() {
					o, _ := cl.Publish(ctx, participation.EventKey("a"), example(1))
					outcome <- o
				}()
				return cl
			}
			cl := begin()
			hash := w.announce(ctx, 1)
			w.open(ctx, 1, 1, hash)
			time.Sleep(time.Minute)
			if n := sent.calls.Load(); n != 1 {
				t.Fatalf("%d publishes, want 1", n)
			}
			if c.restart {
				must(t, cl.Close())
				soon(t, outcome)
				records.forgets(w, w.openMessage(1, 1, hash))
				cl = begin()
			} else {
				records.forgets(w, w.openMessage(1, 1, hash))
			}
			time.Sleep(2 * device.DefaultMaxPoll) // no wake announces it
			if n := sent.calls.Load(); n != c.sent {
				t.Errorf("%v, restart %t: %d publishes, want %d", c.trust, c.restart, n, c.sent)
			}
			w.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: hash}) // nothing was opened in it
			time.Sleep(time.Minute)
			second := w.announce(ctx, 2)
			w.open(ctx, 2, 1, second)
			time.Sleep(time.Minute)
			if o := soon(t, outcome); o.State != participation.Unknown || w.reports(2, 1) != 0 {
				t.Errorf("%v, restart %t: %v, and %d reports in round 2; want unknown and none", c.trust, c.restart, o,
					w.reports(2, 1))
			}
			must(t, cl.Close())
			s.audit(w)
		})
	}
}
