package service

import (
	"context"
	"testing"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestEveryBeginningIsAnotherTask: with the same identity, stage, declaration and plan, a state folder that was emptied
// begins another task. Its rounds have other manifests, so no device answers them with counts of the first life, and a
// device that pinned the first life refuses the second.
func TestEveryBeginningIsAnotherTask(t *testing.T) {
	w := newWorld(t, newCast(t), 2)
	begun := map[state.Hash]bool{}
	for range 3 {
		w.store = storetest.NewMemory()
		c := w.config()
		c.Prepare = func() (*wire.Task, error) {
			body, err := w.body()
			body.Life = nil // as the planner leaves it
			return body, err
		}
		if err := w.new(c).first(context.Background()); err != nil {
			t.Fatal(err)
		}
		at, err := w.store.Load(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		begun[at.Cursor.TaskHash] = true
	}
	if len(begun) != 3 {
		t.Errorf("%d task hashes of 3 beginnings", len(begun))
	}
}
