package device_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A logbook is a log that a test reads.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), s)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// What another key signed, or what is signed for something else, is ignored and logged once.
func TestForgedMessagesAreIgnored(t *testing.T) {
	for _, c := range []struct {
		name  string
		forge func(ctx context.Context, w *world, hash stream.Hash)
	}{
		{"open by the learner", func(ctx context.Context, w *world, hash stream.Hash) {
			w.put(ctx, w.name.Open(1, 1), w.learner, w.openMessage(1, 1, hash))
		}},
		{"open by nobody", func(ctx context.Context, w *world, hash stream.Hash) {
			w.put(ctx, w.name.Open(1, 1), identity(w.t), w.openMessage(1, 1, hash))
		}},
		{"open of another attempt", func(ctx context.Context, w *world, hash stream.Hash) {
			w.put(ctx, w.name.Open(1, 1), w.stage, w.openMessage(1, 2, hash))
		}},
		{"open of another manifest", func(ctx context.Context, w *world, _ stream.Hash) {
			w.open(ctx, 1, 1, stream.Hash{9})
		}},
		{"open of another task", func(ctx context.Context, w *world, hash stream.Hash) {
			m := w.openMessage(1, 1, hash)
			m.TaskHash = make([]byte, 32)
			w.put(ctx, w.name.Open(1, 1), w.stage, m)
		}},
		{"open without encryption", func(ctx context.Context, w *world, hash stream.Hash) {
			m := w.openMessage(1, 1, hash)
			m.Suite, m.PublicKey = wire.Suite_SUITE_NONE, nil
			w.put(ctx, w.name.Open(1, 1), w.stage, m)
		}},
		{"noise", func(ctx context.Context, w *world, _ stream.Hash) {
			_, err := w.broker.PutOnce(ctx, w.name.Open(1, 1), []byte("noise"))
			must(w.t, err)
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			w := newWorld(t, plan{rounds: 1, cohort: 10, sealed: true})
			var log logbook
			cfg := w.config(participation.NewMemoryStore())
			cfg.Logger = log.logger()
			cl := w.client(cfg)
			c.forge(ctx, w, w.announce(ctx, 1))
			waiting, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			got, err := cl.Publish(waiting, participation.EventKey("a"), example(1))
			if got.State != participation.Unknown && got.State != participation.Uncounted ||
				!errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, %v", c.name, got, err)
			}
			must(t, cl.Close())
			if n := w.reports(1, 1); n != 0 {
				t.Errorf("%s: %d reports were sent", c.name, n)
			}
			if n := log.count("does not belong to this task"); n != 1 {
				t.Errorf("%s: logged %d times, want once", c.name, n)
			}
		})
	}
}

// A Close that the stage did not sign for this attempt settles nothing.
func TestForgedCloseSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 1, cohort: 10})
		hash := w.announce(ctx, 1)
		w.open(ctx, 1, 1, hash)
		s := newSpy(t, participation.NewMemoryStore())
		cl := w.client(w.config(s))
		var got device.Outcome
		var group sync.WaitGroup
		group.Go(func() { got, _ = cl.Publish(ctx, participation.EventKey("a"), example(1)) })
		time.Sleep(time.Minute)
		w.put(ctx, w.name.Close(1, 1), identity(t), w.closeMessage(participation.Closed{Round: 1, Attempt: nth(1),
			Manifest: hash}))
		time.Sleep(time.Minute)
		must(t, cl.Close())
		group.Wait()
		parts, err := s.Read([]participation.Key{participation.EventKey("a")})
		must(t, err)
		if got.State != participation.Unknown || parts[0].State != participation.Charged {
			t.Errorf("%v, stored as %v: want unknown, and charged for a later run", got, parts[0].State)
		}
	})
}

// A second run refuses another task under the same name and another source, and does not answer a round that changed.
func TestPinsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 2, cohort: 10})
		store := participation.NewMemoryStore()
		var log logbook
		cfg := w.config(store)
		cfg.Logger = log.logger()
		cl := w.client(cfg)
		w.open(ctx, 1, 1, w.announce(ctx, 1))
		short, stop := context.WithTimeout(ctx, 10*time.Second)
		_, err := cl.Publish(short, participation.EventKey("a"), example(1))
		stop()
		if !errors.Is(err, context.DeadlineExceeded) || w.reports(1, 1) != 1 ||
			log.count("pinned the task at first use") != 1 {
			t.Fatalf("%v, %d reports", err, w.reports(1, 1))
		}
		must(t, cl.Close())

		run := func(w *world, change func(*device.Settings)) error {
			c := w.config(store)
			change(&c)
			sum, err := w.client(c).Run(ctx, rows(5, false))
			checkSum(t, sum)
			return err
		}
		refusal(t, "another source", run(w, func(c *device.Settings) { c.Source = "other.libsvm" }), "source")

		other := newWorld(t, plan{rounds: 2, cohort: 10}) // other keys, so another hash
		other.announce(ctx, 1)
		refusal(t, "another task", run(other, func(*device.Settings) {}), "task hash")

		// The same keys, declaration and plan, started again on emptied streams: round 1 would have the same
		// manifest.
		anew := newWorld(t, plan{rounds: 2, cohort: 10})
		anew.learner, anew.stage, anew.task = w.learner, w.stage, proto.CloneOf(w.task)
		anew.task.Life = bytes.Repeat([]byte{1}, stream.LifeSize)
		anew.hash = taskHash(t, anew.task)
		anew.open(ctx, 1, 1, anew.announce(ctx, 1))
		refusal(t, "a second life of the task", run(anew, func(*device.Settings) {}), "task hash")
		if anew.reports(1, 1) != 0 {
			t.Errorf("%d reports in the second life", anew.reports(1, 1))
		}

		changed := newWorld(t, plan{rounds: 2, cohort: 10})
		changed.learner, changed.stage, changed.task, changed.hash = w.learner, w.stage, w.task, w.hash
		m := changed.round(1, 1)
		m.Point = []float64{1, 1, 1}
		changed.put(ctx, w.name.Task(), w.learner, w.task)
		changed.put(ctx, w.name.Round(1), w.learner, m)
		hash, err := manifest.RoundHash(m)
		must(t, err)
		changed.open(ctx, 1, 1, hash)
		waiting, over := context.WithTimeout(ctx, time.Hour)
		defer over()
		c := changed.config(store)
		c.Logger = log.logger()
		_, err = changed.client(c).Run(waiting, rows(5, false))
		if !errors.Is(err, context.DeadlineExceeded) ||
			log.count("another round stands under a number that this device knows") != 1 {
			t.Errorf("a repeated round at another point: %v, want it said once and waited for a round that is new", err)
		}
		if n := changed.reports(1, 1) + other.reports(1, 1); n != 0 {
			t.Errorf("%d reports were sent", n)
		}
	})
}

// After a refusal all waiting callers get exit code 3's error.
func TestRefusalAnswersWaitingRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 1, cohort: 10})
		cl := w.client(w.config(participation.NewMemoryStore()))
		w.put(ctx, w.name.Task(), w.learner, w.task)
		var sum device.Summary
		var err error
		var group sync.WaitGroup
		group.Go(func() { sum, err = cl.Run(ctx, rows(7, false)) })
		time.Sleep(time.Minute)
		m := proto.CloneOf(w.round(1, 1))
		m.Step = 2
		w.put(ctx, w.name.Round(1), w.learner, m)
		group.Wait()
		refusal(t, "a step ahead of its round", err, "parameters")
		if want := (device.Summary{Events: 7, Units: 7, Refused: 7}); sum != want {
			t.Errorf("%+v, want %+v", sum, want)
		}
		got, err := cl.Publish(ctx, participation.EventKey("late"), example(1))
		refusal(t, "after the refusal", err, "parameters")
		if got.State != participation.Refused {
			t.Errorf("%v, want refused", got)
		}
	})
}

func TestFirstUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 1, cohort: 10})
		w.announce(ctx, 1)
		agreement := func(change func(*consent.Policy)) error {
			c := w.config(participation.NewMemoryStore())
			c.Policy.ForbidFirstUse = true
			change(&c.Policy)
			cl := w.client(c)
			_, err := cl.Agreement(ctx)
			if closed := cl.Close(); !errors.Is(closed, err) {
				t.Errorf("Close: %v, want %v", closed, err)
			}
			return err
		}
		refusal(t, "nobody pins", agreement(func(*consent.Policy) {}), "task hash")
		refusal(t, "one key is not enough",
			agreement(func(p *consent.Policy) { p.StageKey = consent.Fingerprint(w.stage.Public()) }), "task hash")
		must(t, agreement(func(p *consent.Policy) { p.TaskHash = w.hash[:] }))
		must(t, agreement(func(p *consent.Policy) { p.TaskHashes = []consent.Fingerprint{w.hash[:]} }))
		must(t, agreement(func(p *consent.Policy) {
			p.StageKey, p.LearnerKey = consent.Fingerprint(w.stage.Public()), consent.Fingerprint(w.learner.Public())
		}))
	})
}

// TestARowPins: data that the reader refuses before the first row leave the store free for other data; the first row
// that a round has room for binds it to its source.
func TestARowPins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 10})
		w.open(t.Context(), 1, 1, w.announce(t.Context(), 1))
		store := participation.NewMemoryStore()
		run := func(source string, of iter.Seq2[task.Row, error]) error {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			c := w.config(store)
			c.Source = source
			sum, err := w.client(c).Run(ctx, of)
			checkSum(t, sum)
			return err
		}
		pinned := func() string {
			pin, found, err := store.Pin()
			must(t, err)
			if found != (pin.Source != "") || found && pin.Task != w.hash {
				t.Errorf("pin %+v, found %t", pin, found)
			}
			return pin.Source
		}
		broken := errors.New("no such column")
		err := run("wrong.csv", func(yield func(task.Row, error) bool) { yield(task.Row{}, broken) })
		if !errors.Is(err, broken) || pinned() != "" {
			t.Errorf("%v, pinned to %q: want nothing", err, pinned())
		}
		if err := run("right.csv", rows(1, false)); !errors.Is(err, context.DeadlineExceeded) || pinned() != "right.csv" {
			// nobody closes
			t.Errorf("%v, pinned to %q: want right.csv", err, pinned())
		}
		refusal(t, "another source", run("wrong.csv", rows(1, false)), "source")
		if pinned() != "right.csv" || w.reports(1, 1) != 1 {
			t.Errorf("pinned to %q, %d reports", pinned(), w.reports(1, 1))
		}
	})
}
