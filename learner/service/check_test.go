package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/memory"
)

// TestCheck: a state that agrees with its broker passes, one whose broker has lost everything is refused, an empty one begins
// nothing; and nothing is written.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 3)
		c := w.config()
		stopped, stop := context.WithCancel(t.Context())
		c.Observer = announcing{announced: func(r uint64) {
			if w.answer(t.Context(), r); r == 2 {
				stop()
			}
		}}
		_ = w.new(c).Run(stopped)
		w.reopen()
		if err := w.new(w.config()).Check(t.Context()); err != nil {
			t.Error(err)
		}
		broker, err := memory.New(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		_, at, _ := w.trace()
		w.broker = broker
		if err := w.new(w.config()).Check(t.Context()); !errors.Is(err, ErrBrokerRolledBack) || at.Ended() {
			t.Errorf("an empty broker: %v", err)
		}
		w.store = state.NewMemory()
		if err := w.new(w.config()).Check(t.Context()); !errors.Is(err, state.ErrEmpty) {
			t.Errorf("an empty state: %v", err)
		}
		if n := len(broker.Dump()); n != 0 {
			t.Errorf("%d records were written", n)
		}
	})
}
