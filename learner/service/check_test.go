package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
)

// TestCheck: a state that agrees with its broker passes, one whose broker has lost everything is refused, an empty one
// begins nothing; and nothing is written.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 3)
		c := w.config()
		stopped, stop := context.WithCancel(t.Context())
		c.Observer = announcing(func(r uint64) {
			if w.answer(t.Context(), r); r == 2 {
				stop()
			}
		}, nil)
		_ = w.new(c).Run(stopped)
		w.reopen()
		if endless, err := w.new(w.config()).Check(t.Context()); err != nil || endless {
			t.Error(endless, err)
		}
		broker, err := memory.New(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		_, at, _ := w.trace()
		w.broker = broker
		if _, err := w.new(w.config()).Check(t.Context()); !errors.Is(err, ErrBrokerRolledBack) || at.Ended() {
			t.Errorf("an empty broker: %v", err)
		}
		w.store = storetest.NewMemory()
		if _, err := w.new(w.config()).Check(t.Context()); !errors.Is(err, state.ErrEmpty) {
			t.Errorf("an empty state: %v", err)
		}
		if n := len(broker.Dump()); n != 0 {
			t.Errorf("%d records were written", n)
		}
	})
}

// TestCheckOfAnEndedTask: the check passes on every copy of its broker; where End is missing, it reports that,
// and Run puts it there.
func TestCheckOfAnEndedTask(t *testing.T) {
	h := recorded(t, newCast(t))
	for what, stands := range map[string]func(stream.Address) bool{
		"all of it":            everything,
		"all but End":          until(stream.Round(h.last), true),
		"an older one":         until(2, false),
		"one that lost it all": func(stream.Address) bool { return false },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := h.at(t, h.last, stands)
			before, _, _ := w.trace()
			if endless, err := w.new(w.config()).Check(t.Context()); err != nil || endless != (what != "all of it") {
				t.Errorf("%s: endless %v, %v", what, endless, err)
			}
			if after, _, _ := w.trace(); len(after) != len(before) {
				t.Errorf("%s: something was written", what)
			}
			if err := w.new(w.config()).Run(t.Context()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if endless, err := w.new(w.config()).Check(t.Context()); err != nil || endless {
				t.Errorf("%s, after a run: endless %v, %v", what, endless, err)
			}
		})
	}
}
