package device_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestPutBackTask: learner and broker are put back to round 1, so that rounds 2 and 3 come again, with other points,
// and are void. A client that goes on running, and one that is started again on the same folder, answer neither, say
// why, and answer the first round that is new to them, of a step that they had answered before the loss.
func TestPutBackTask(t *testing.T) {
	for name, restarts := range map[string]bool{"running": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				w := newWorld(t, plan{rounds: 6, cohort: 3})
				store, log := participation.NewMemoryStore(), new(logbook)
				var progress device.Progress
				start := func(w *world) *device.Device {
					c := w.config(store)
					c.Logger, c.Progress = log.logger(), func(p device.Progress) { progress = p }
					return w.client(c)
				}
				cl := start(w)
				var asks sync.WaitGroup
				publish := func(cl *device.Device, key string) {
					asks.Go(func() {
						limited, stop := context.WithTimeout(ctx, time.Hour)
						defer stop()
						_, _ = cl.Publish(limited, participation.EventKey(key), example(1))
					})
				}
				var first []stream.Hash
				for r := stream.Round(1); r <= 3; r++ {
					first = append(first, w.announce(ctx, r))
					w.open(ctx, r, 1, first[r-1])
					publish(cl, string(rune('a'+r)))
					time.Sleep(time.Minute)
					if w.reports(r, 1) != 1 {
						t.Fatalf("round %d: %d reports", r, w.reports(r, 1))
					}
				}
				for r := stream.Round(2); r <= 3; r++ {
					w.broker.Lose(w.name.Round(r))
					w.broker.Lose(w.name.Open(r, 1))
				}
				if restarts {
					must(t, cl.Close())
					cl = start(w)
				} else {
					w.broker.Disconnect()
					w.broker.Connect()
				}
				before := w.reports(2, 1) + w.reports(3, 1)
				publish(cl, "z")
				time.Sleep(2 * time.Minute)
				another := func(r stream.Round, step uint64) *wire.Round {
					m := w.round(r, stream.Step(step))
					m.Point[0] = .25
					return m
				}
				for r := stream.Round(2); r <= 3; r++ {
					m := another(r, 2)
					w.put(ctx, w.name.Round(r), w.learner, m)
					hash, err := manifest.RoundHash(m)
					must(t, err)
					if r == 3 { // a stage without marks
						w.open(ctx, r, 1, hash)
					}
					time.Sleep(time.Minute)
				}
				if n := w.reports(2, 1) + w.reports(3, 1) - before; n != 0 {
					t.Errorf("%d reports to rounds in the place of answered ones", n)
				}
				if n := log.count(map[bool]string{true: "another round stands under",
					false: "no longer shows the newest round"}[restarts]); n == 0 {
					t.Error("it is not said that the broker is older")
				}
				if progress.Older != 3 {
					t.Errorf("progress: older %d, want 3", progress.Older)
				}
				publish(cl, "y")
				m := another(4, 2)
				w.put(ctx, w.name.Round(4), w.learner, m)
				hash, err := manifest.RoundHash(m)
				must(t, err)
				w.open(ctx, 4, 1, hash)
				time.Sleep(2 * time.Minute)
				if w.reports(4, 1) == 0 {
					t.Errorf("%d reports to the first new round, want some", w.reports(4, 1))
				}
				if progress.Older != 0 {
					t.Errorf("progress: older %d in a new round", progress.Older)
				}
				if t.Failed() {
					t.Log(log.buf.String())
				}
				_ = cl.Close()
				asks.Wait()
			})
		})
	}
}
