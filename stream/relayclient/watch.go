package relayclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

// Pauses of a watch after a failed request: the first, and the longest. The watch waits for a random part of a pause.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 30 * time.Second
	// soonest is the shortest time between two requests of a watch.
	soonest = 100 * time.Millisecond
)

// Watch implements stream.Reader: one request after the other waits until the newest records change, and those are then
// read by their hash. Records that came and went between two responses are in no wake: a zero Wake is sent for them.
func (c *Client) Watch(ctx context.Context, task stream.Task) (<-chan stream.Wake, error) {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return nil, fmt.Errorf("watch: %w: %w", stream.ErrRefused, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("watch %s: %w", task, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("watch %s: %w", task, stream.ErrDisconnected)
	}
	w := &watch{client: c, task: task, wakes: stream.NewWakes()}
	<-w.wakes.C() // the zero Wake is for when all that comes later is in a wake
	c.working.Go(func() {
		defer w.wakes.Close()
		both, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.ctx, cancel)()
		w.run(both)
	})
	return w.wakes.C(), nil
}

type watch struct {
	client *Client
	task   stream.Task
	wakes  *stream.Wakes

	state relayhttp.State
	known bool // a request was answered
	lost  bool // the last one was not
}

func (w *watch) run(ctx context.Context) {
	pause := firstPause
	var trouble stream.Trouble
	for ctx.Err() == nil {
		begun, seen := time.Now(), ""
		if w.known {
			seen = w.state.Tag()
		}
		s, err := w.client.state(ctx, w.task, "rounds/"+relayhttp.Latest, seen)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, stream.ErrNotFound): // no such task yet
			err, pause = nil, min(2*pause, maxPause/8)
			w.take(ctx, relayhttp.State{})
			wait(ctx, around(pause))
			continue
		case err != nil:
			w.lost = true
			w.client.config.Log.Log(ctx, trouble.Level(time.Now(), err), "the relay does not answer", "task", w.task, "err", err)
			wait(ctx, w.client.later(pause))
			pause = min(2*pause, maxPause)
			continue
		}
		if trouble.Over() {
			w.client.config.Log.Info("the relay answers again", "task", w.task)
		}
		pause = firstPause
		w.take(ctx, s)
		if time.Since(begun) < soonest {
			wait(ctx, soonest) // otherwise a relay that replies at once would be requested without end
		}
	}
}

// take wakes the watcher to what is new in a state.
func (w *watch) take(ctx context.Context, s relayhttp.State) {
	old, known, lost := w.state, w.known, w.lost
	w.state, w.known, w.lost = s, true, false
	if !known || lost || skipped(&old, &s) {
		w.wakes.Put(stream.Wake{})
	}
	if !known {
		return
	}
	// In the order in which they are written: a Close before the Round after it.
	for _, one := range []struct {
		was, is relayhttp.Mark
		subject string
	}{
		{old.Task, s.Task, w.task.Task()},
		{old.Claim, s.Claim, w.task.Claim(s.Claim.Round)},
		{old.Close, s.Close, w.task.Close(s.Close.Round, s.Close.Attempt)},
		{old.Round, s.Round, w.task.Round(s.Round.Round)},
		{old.Open, s.Open, w.task.Open(s.Open.Round, s.Open.Attempt)},
		{old.Join, s.Join, w.task.Join(s.Join.Round, s.Join.Attempt)},
		{old.End, s.End, w.task.End()},
	} {
		if one.is.Sequence == 0 || one.is == one.was {
			continue
		}
		data, err := w.client.hashed(ctx, one.subject, one.is.Hash)
		if err != nil {
			w.wakes.Put(stream.Wake{}) // it is there, and has to be read
			continue
		}
		w.wakes.Put(stream.Wake{Subject: one.subject, Data: data})
	}
}

// skipped reports whether a watcher of all records has to read: some were written between two states, or the broker
// has an earlier one now, or another under the same numbers.
func skipped(old, s *relayhttp.State) bool {
	if s.Round.Round > old.Round.Round+1 || s.Close.Round > old.Close.Round+1 && old.Close.Round > 0 {
		return true
	}
	was, is := old.Marks(), s.Marks()
	for i := range was {
		if was[i].Sequence == 0 || *is[i] == *was[i] {
			continue
		}
		back := is[i].Round < was[i].Round || is[i].Round == was[i].Round && is[i].Attempt <= was[i].Attempt
		// a new round has no attempt yet
		fresh := (is[i] == &s.Open || is[i] == &s.Join) && is[i].Sequence == 0 && s.Round != old.Round
		if back && !fresh {
			return true
		}
	}
	return false
}

// later returns how long a client waits before it tries again: together with all others that lost the same relay.
func (c *Client) later(pause time.Duration) time.Duration {
	if spread := time.Duration(c.spread.Load()); spread > pause {
		return rand.N(spread)
	}
	return around(pause)
}

// around returns a random time with mean d.
func around(d time.Duration) time.Duration { return d/2 + rand.N(d) }

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
