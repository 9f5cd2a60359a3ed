package device_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A listener counts the reads of one device, and lets a test speak on its wakes.
type listener struct {
	stream.Transport
	reads atomic.Int64
	deaf  bool             // the broker's wakes do not arrive
	says  chan stream.Wake // after the first
}

func (l *listener) Get(ctx context.Context, subject string) (stream.Message, error) {
	l.reads.Add(1)
	return l.Transport.Get(ctx, subject)
}

func (l *listener) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	l.reads.Add(1)
	return l.Transport.Latest(ctx, pattern)
}

func (l *listener) Watch(ctx context.Context, task stream.Task) (<-chan stream.Wake, error) {
	own, err := l.Transport.Watch(ctx, task)
	if err != nil {
		return nil, err
	}
	all := make(chan stream.Wake)
	go func() {
		defer close(all)
		for ctx.Err() == nil {
			var w stream.Wake
			select {
			case <-ctx.Done():
				return
			case w = <-l.says:
			case got, ok := <-own:
				if w = got; !ok || l.deaf && w.Subject != "" {
					continue
				}
			}
			select {
			case all <- w:
			case <-ctx.Done():
			}
		}
	}()
	return all, nil
}

// listens has a client of the world listen, and publishes an event where one is asked for.
func (w *world) listens(ctx context.Context, c device.Settings, l *listener) (*device.Device,
	func() <-chan device.Outcome) {
	l.Transport, l.says = c.Transport, make(chan stream.Wake)
	c.Transport = l
	cl := w.client(c)
	return cl, func() <-chan device.Outcome {
		outcome := make(chan device.Outcome, 1)
		go func() {
			o, _ := cl.Publish(ctx, participation.EventKey("a"), example(1))
			outcome <- o
		}()
		return outcome
	}
}

// TestIdleDeviceIsQuiet: a device that has agreed to its task and has no event reads less than once in a minute,
// however many rounds there are. An event then costs it the reads of one look, its outcome one more.
func TestIdleDeviceIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 48, cohort: 4})
		w.put(ctx, w.name.Task(), w.learner, w.task)
		var l listener
		cl, publish := w.listens(ctx, w.config(participation.NewMemoryStore()), &l)
		_, err := cl.Agreement(ctx)
		must(t, err)
		began := l.reads.Load()
		var hash stream.Hash
		const rounds = 40
		for r := range stream.Round(rounds) {
			hash = w.announce(ctx, r+1)
			w.open(ctx, r+1, 1, hash)
			time.Sleep(time.Minute)
			if r+1 < rounds {
				w.close(ctx, participation.Closed{Round: r + 1, Attempt: nth(1), Manifest: hash, Cutoff: 1})
			}
		}
		if n := l.reads.Load() - began; n > 1 {
			t.Errorf("%d reads while wakes come, want none", n)
		}
		began = l.reads.Load()
		time.Sleep(3 * time.Hour)
		if n := l.reads.Load() - began; n > 60 || n < 20 {
			t.Errorf("%d reads in three silent hours, want one in five minutes", n)
		}
		before := l.reads.Load()
		outcome := publish()
		time.Sleep(time.Second)
		if n := l.reads.Load() - before; n > 4 || w.reports(rounds, 1) != 1 {
			t.Errorf("%d reads and %d reports of an event that came, want one look and one report", n, w.reports(rounds, 1))
		}
		before = l.reads.Load()
		w.close(ctx, participation.Closed{Round: rounds, Attempt: nth(1), Manifest: hash, Cutoff: 1})
		time.Sleep(time.Second)
		if n := l.reads.Load() - before; n != 1 {
			t.Errorf("%d reads for an outcome, want that of the Open", n)
		}
		if o := soon(t, outcome); o.State != participation.Counted {
			t.Errorf("%v", o)
		}
		must(t, cl.Close())
	})
}

// TestWakesAreEnough: an event waits for a round for a day, and joins it with nothing read.
func TestWakesAreEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 2, cohort: 4, deadline: 10 * time.Minute})
		w.put(ctx, w.name.Task(), w.learner, w.task)
		var l listener
		cl, publish := w.listens(ctx, w.config(participation.NewMemoryStore()), &l)
		outcome := publish()
		time.Sleep(24 * time.Hour)
		// Looks are 150 to 450 s apart, two reads each: 288 of them, with a standard deviation of 5, and 8 before they
		// are so far apart.
		if n := l.reads.Load(); n > 2*(288+8+8*5) {
			t.Errorf("%d reads in a day of waiting, want two in five minutes", n)
		}
		before := l.reads.Load()
		hash := w.announce(ctx, 1)
		w.open(ctx, 1, 1, hash)
		time.Sleep(100 * time.Millisecond)
		if n := l.reads.Load() - before; n != 0 || w.reports(1, 1) != 1 {
			t.Errorf("%d reads and %d reports, want none and one", n, w.reports(1, 1))
		}
		must(t, cl.Close())
		<-outcome
	})
}

// TestARoundThatWakesTellOfIsNotRead: a device that received the Round and the Open of its event's round with wakes
// does not read again for seconds, though the look before them was a moment ago.
func TestARoundThatWakesTellOfIsNotRead(t *testing.T) {
	for range 20 { // times are drawn
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			w := newWorld(t, plan{rounds: 2, cohort: 4, deadline: time.Minute})
			w.put(ctx, w.name.Task(), w.learner, w.task)
			var l listener
			cl, publish := w.listens(ctx, w.config(participation.NewMemoryStore()), &l)
			_, err := cl.Agreement(ctx)
			must(t, err)
			time.Sleep(time.Minute)
			outcome := publish()
			synctest.Wait()
			hash := w.announce(ctx, 1)
			w.open(ctx, 1, 1, hash)
			synctest.Wait()
			before := l.reads.Load()
			time.Sleep(3900 * time.Millisecond)
			if n := l.reads.Load() - before; n != 0 || w.reports(1, 1) != 1 {
				t.Errorf("%d reads and %d reports while the round was open, want none and one", n, w.reports(1, 1))
			}
			must(t, cl.Close())
			<-outcome
		})
	}
}

// TestLostWakes: all wakes are lost. The timer finds a round within a few of its deadlines, and its outcome.
func TestLostWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 2, cohort: 4, deadline: time.Minute})
		w.put(ctx, w.name.Task(), w.learner, w.task)
		l := listener{deaf: true}
		cl, publish := w.listens(ctx, w.config(participation.NewMemoryStore()), &l)
		outcome := publish()
		time.Sleep(time.Hour)
		hash := w.announce(ctx, 1)
		w.open(ctx, 1, 1, hash)
		time.Sleep(3 * time.Minute)
		if w.reports(1, 1) != 1 {
			t.Error("no report three deadlines after an Open that no wake told of")
		}
		w.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: hash, Cutoff: 1})
		time.Sleep(3 * time.Minute)
		select {
		case o := <-outcome:
			if o.State != participation.Counted {
				t.Error(o)
			}
		default:
			t.Error("no outcome three deadlines after a Close that no wake told of")
		}
		must(t, cl.Close())
	})
}

// TestHostileWakes checks that somebody who can send wakes cannot end a device, move it back, make it read, or
// keep it from reading.
func TestHostileWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 9, cohort: 4, deadline: time.Minute})
		other := newWorld(t, plan{rounds: 9, cohort: 4}) // of the same name, signed by its own keys
		w.put(ctx, w.name.Task(), w.learner, w.task)
		var said bytes.Buffer
		l := listener{deaf: true}
		c := w.config(participation.NewMemoryStore())
		c.Logger = slog.New(slog.NewTextHandler(&said, nil))
		var at stream.Round
		c.Progress = func(p device.Progress) {
			if p.Round < at {
				t.Errorf("back from round %d to %d", at, p.Round)
			}
			at = p.Round
		}
		cl, publish := w.listens(ctx, c, &l)
		say := func(subject string, data []byte) {
			l.says <- stream.Wake{Subject: subject, Data: data}
			synctest.Wait()
		}
		stored := func(b *memory.Broker, subject string) []byte {
			m, err := b.Get(ctx, subject)
			must(t, err)
			return m.Data
		}
		outcome := publish()
		time.Sleep(time.Second)

		// A task of the same name that somebody else signed is not believed while the first one is there.
		theirs := other.announce(ctx, 7)
		other.open(ctx, 7, 1, theirs)
		other.end(ctx, 7)
		hashes := make(map[stream.Round]stream.Hash)
		for r := range stream.Round(3) {
			hashes[r+1] = w.announce(ctx, r+1)
		}
		w.open(ctx, 1, 1, hashes[1])
		w.open(ctx, 2, 1, hashes[2])
		say(w.name.Round(3), stored(w.broker, w.name.Round(3)))
		if at != 3 {
			t.Fatalf("at round %d, want the 3 that a wake brought", at)
		}
		before, due := l.reads.Load(), time.Now()
		for range 50 {
			say(w.name.Task(), stored(other.broker, w.name.Task()))
			say(w.name.Round(7), stored(other.broker, w.name.Round(7)))
			say(w.name.Round(9), stored(w.broker, w.name.Round(3))) // on another subject than its own
			say(w.name.Open(3, 1), stored(other.broker, w.name.Open(7, 1)))
			say(w.name.End(), stored(other.broker, w.name.End()))
			say(w.name.Close(3, 1), []byte("noise"))
			say("panlearn.another.round.1", nil)
			say("nothing.of.ours", nil)
			say(w.name.Round(1), stored(w.broker, w.name.Round(1))) // genuine, and old
			say(w.name.Round(3), stored(w.broker, w.name.Round(3)))
			say(w.name.Open(1, 1), stored(w.broker, w.name.Open(1, 1)))
			say(w.name.Open(2, 1), stored(w.broker, w.name.Open(2, 1)))
		}
		if n := l.reads.Load() - before; n != 0 || time.Now() != due {
			t.Errorf("%d reads because of them", n)
		}
		if at != 3 || w.reports(1, 1)+w.reports(2, 1) != 0 {
			t.Errorf("at round %d, with reports in rounds 1 and 2", at)
		}
		for _, subject := range []string{w.name.Round(7), w.name.Round(9), w.name.Open(3, 1), w.name.End(),
			w.name.Close(3, 1), "nothing.of.ours"} {
			if n := strings.Count(said.String(), fmt.Sprintf("subject=%s ", subject)); n != 1 {
				t.Errorf("%d lines about %s, want one", n, subject)
			}
		}

		// They go on all the time, and the device reads the record there.
		w.open(ctx, 3, 1, hashes[3])
		for range 3 * 60 {
			say(w.name.Round(7), stored(other.broker, w.name.Round(7)))
			say(w.name.Round(3), stored(w.broker, w.name.Round(3)))
			time.Sleep(time.Second)
		}
		if w.reports(3, 1) != 1 {
			t.Error("no report three deadlines after the Open: wakes keep the device from reading")
		}
		must(t, cl.Close())
		<-outcome
	})
}
