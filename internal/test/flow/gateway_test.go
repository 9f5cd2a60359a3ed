package flow

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/filestore"
)

// A gateway runs `ingest publish` with a state folder. It gets as many events as it is to send, one round's at a time,
// and takes all of them. It reads of a round when it has some.
type gateway struct {
	*deployment
	events chan int
}

func newGateway(b *testing.B, d *deployment, bundle int) *gateway {
	b.Helper()
	g := &gateway{deployment: d, events: make(chan int, 1)}
	if err := d.opened.wait(d.ctx, 1); err != nil {
		b.Fatal(err)
	}
	conn := d.connect(b)
	state := b.TempDir()
	store, err := filestore.Open(filestore.Path(state, taskName))
	if err != nil {
		b.Fatal(err)
	}
	ledger, err := filestore.OpenLedger(state)
	if err != nil {
		b.Fatal(errors.Join(err, store.Close()))
	}
	devices, err := device.New(device.Settings{Task: taskName, Transport: conn, Store: store, Ledger: ledger,
		Bundle: bundle,
		Policy: consent.Policy{LearnerKey: consent.Fingerprint(d.learner.Public()),
			StageKey: consent.Fingerprint(d.stage.Public()), AllowPlaintext: true},
		Source: "events", Poll: time.Second})
	if err != nil {
		b.Fatal(errors.Join(err, store.Close()))
	}
	d.role("gateway", func(ctx context.Context) error {
		_, err := devices.Run(ctx, g.rows(ctx))
		return errors.Join(err, store.Close())
	})
	return g
}

// rows yields events as they are asked for. For the speed their content does not matter, except that every
// coordinate is there.
func (g *gateway) rows(ctx context.Context) iter.Seq2[task.Row, error] {
	value := make([]float64, g.dim)
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

// fill lets the gateway answer a round with n events, as many as it takes, and returns how long it took from
// the first event to the batch.
func (g *gateway) fill(round uint64, n int) (time.Duration, error) {
	if err := g.opened.wait(g.ctx, round); err != nil {
		return 0, err
	}
	begun := time.Now()
	g.events <- n
	err := g.released.wait(g.ctx, round)
	return time.Since(begun), err
}
