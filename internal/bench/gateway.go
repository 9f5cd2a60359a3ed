package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream/client"
	"github.com/panlearn/panlearn/stream/client/consent"
	"github.com/panlearn/panlearn/stream/client/filestore"
)

// A gateway is `ingest publish` with a state folder, fed with as many events as it is told.
type gateway struct {
	world  *world
	events chan int
	seen   *latest // rounds whose attempt it knows
}

func (w *world) newGateway(bundle int) (g *gateway, err error) {
	g = &gateway{world: w, events: make(chan int, 1), seen: newLatest()}
	return g, labelled(w.ctx, "device", func(ctx context.Context) error { return g.begin(ctx, bundle) })
}

func (g *gateway) begin(ctx context.Context, bundle int) error {
	w := g.world
	conn, err := w.connect()
	if err != nil {
		return err
	}
	store, err := filestore.Open(filestore.Path(w.path(fmt.Sprintf("devices-%d", len(w.conns))), w.name))
	if err != nil {
		return err
	}
	devices, err := client.New(client.Config{Task: w.name, Records: conn, Reports: conn, Store: store, Bundle: bundle, Limits: conn.Limits(),
		Policy: consent.Policy{LearnerKey: consent.Fingerprint(w.learner), StageKey: consent.Fingerprint(w.stage.Public()), AllowPlaintext: true}, Source: fmt.Sprintf("events of %d", len(w.conns)), Poll: time.Second,
		Progress: func(p client.Progress) {
			if p.Attempt > 0 {
				g.seen.reach(uint64(p.Round))
			}
		}})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	w.role("device", func(ctx context.Context) error {
		_, err := devices.Run(ctx, g.rows(ctx))
		return errors.Join(err, store.Close())
	})
	_, err = devices.Agreement(ctx)
	return err
}

// rows are events as they are asked for. Their content does not matter to speed, but that every coordinate is there does.
func (g *gateway) rows(ctx context.Context) iter.Seq2[task.Row, error] {
	value := make([]float64, g.world.params.Dim)
	for j := range value {
		value[j] = float64(j%7)/3 - 1
	}
	labels := [...]string{"1", "-1"}
	return func(yield func(task.Row, error) bool) {
		var number int64
		for {
			select {
			case <-ctx.Done():
				return
			case n := <-g.events:
				for range n {
					if !yield(task.Row{Number: number, Line: number + 1, Value: value, Label: labels[number%2]}, nil) {
						return
					}
					number++
				}
			}
		}
	}
}

// fill has the gateway answer a round with n events, as many as it takes, and answers how long it took from the first event
// to the batch.
func (g *gateway) fill(round uint64, n int) (time.Duration, error) {
	ctx := g.world.ctx
	if err := g.seen.wait(ctx, round); err != nil {
		return 0, err
	}
	begun := time.Now()
	g.events <- n
	err := g.world.released.wait(ctx, round)
	return time.Since(begun), err
}

// openState opens a learner's state folder, and closes it at the world's end.
func (w *world) openState() (state.Store, error) {
	store, err := pebblestore.Open(w.path("state"), pebblestore.Options{})
	if err == nil {
		w.closers = append(w.closers, store.Close)
	}
	return store, err
}
