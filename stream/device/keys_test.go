package device_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

const keyedDeclaration = `
version: 1
name: churn
events: {format: jsonl, key: id}
features:
  columns:
    - {column: x0, kind: numeric, min: -0.5, max: 0.5, scale: raw}
    - {column: x1, kind: numeric, min: -0.5, max: 0.5, scale: raw}
    - {column: x2, kind: numeric, min: -0.5, max: 0.5, scale: raw}
intercept: 0
label: {column: "y", positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 4, delta: 1e-3, trust: shuffle, seal: none}
schedule: {users: 30, plan: proved}
validation: {off: true}
`

// keyed has a world declare events with keys.
func (w *world) keyed() {
	var err error
	w.spec, err = task.Parse([]byte(keyedDeclaration), nil)
	must(w.t, err)
	w.task.Declaration, err = w.spec.Canonical()
	must(w.t, err)
	w.hash = taskHash(w.t, w.task)
}

// events returns lines of people by their numbers.
func events(people ...int) string {
	var b strings.Builder
	for _, i := range people {
		fmt.Fprintf(&b, `{"id": "p%d", "x0": 0.1, "x1": 0.%d, "x2": 0, "y": 1}`+"\n", i, i%5)
	}
	return b.String()
}

// upTo returns 0 to n-1.
func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// A stream that is read again from its beginning, or in another order, has each person in one batch: their rows are
// known by their keys.
func TestStreamThatIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 3, cohort: 10, deadline: time.Hour})
		w.keyed()
		store := participation.NewMemoryStore()
		backwards := upTo(30)
		slices.Reverse(backwards)
		w.play(t.Context(), func(ctx context.Context) {
			for run, people := range [][]int{upTo(10), append([]int{3, 3}, upTo(20)...), backwards} {
				c := w.config(store)
				c.Source, c.Rows = "", true
				features, err := w.spec.Compile()
				must(t, err)
				rows, err := source.New(strings.NewReader(events(people...)+`{"x0": 0.1, "y": 1}`+"\n"+`{"id": null}`+"\n"),
					features)
				must(t, err)
				sum, err := w.client(c).Run(ctx, rows.All())
				must(t, err)
				checkSum(t, sum)
				if sum.Counted != uint64(len(people)) || sum.Keyless != 2 || sum.Invalid != 0 {
					t.Errorf("run %d: %+v, want all %d answered as counted, and 2 without a key", run+1, sum, len(people))
				}
			}
		})
		for r := range stream.Round(3) {
			if n := w.reports(r+1, 1); n != 10 {
				t.Errorf("round %d has %d reports, want 10", r+1, n)
			}
		}
	})
}

// A store of keys is of no file, and one of a file of no keys; a device that was not made for rows does not run them.
func TestStoreOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 1, cohort: 10})
		w.keyed()
		hash := w.announce(ctx, 1)
		w.open(ctx, 1, 1, hash)
		store := participation.NewMemoryStore()
		c := w.config(store)
		c.Source = "/data/a.jsonl"
		if _, err := w.client(c).Run(ctx, rows(1, false)); err == nil || !strings.Contains(err.Error(), "events.key") {
			t.Errorf("rows of a device that is none for rows: %v", err)
		}
		c.Rows = true
		first := w.client(c)
		_, err := first.Agreement(ctx)
		must(t, err)
		short, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		_, _ = first.Publish(short, participation.EventKey("p1"), example(1))
		must(t, first.Close())
		pin, pinned, err := store.Pin()
		must(t, err)
		if !pinned || pin.Source != "keys of id" {
			t.Errorf("pinned to %q", pin.Source)
		}
		c.Source = "/data/b.jsonl"
		other := w.client(c)
		if _, err := other.Agreement(ctx); err != nil {
			t.Errorf("rows of another file with the same keys: %v", err)
		}
		must(t, other.Close())
		c.Rows = false
		posted := w.client(c)
		if _, err := posted.Agreement(ctx); err == nil || !strings.Contains(err.Error(), "keys of id") {
			t.Errorf("events of another kind: %v", err)
		}
		var refused *consent.RefusedError
		if err := posted.Close(); !errors.As(err, &refused) {
			t.Errorf("not refused: %v", err)
		}
	})
}
