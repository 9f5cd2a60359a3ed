package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A cell is one pipeline to measure.
type cell struct {
	dim    int
	sealed bool
	bundle int
	sync   syncing
	memory bool
}

func (c cell) String() string {
	sealing, form, storage := "unsealed", "single reports", ""
	if c.sealed {
		sealing = "sealed"
	}
	if c.bundle > 1 {
		form = fmt.Sprintf("bundles of %d", c.bundle)
	}
	switch {
	case c.memory:
		storage = ", reports in memory"
	case c.sync == syncAlways:
		storage = ", synced always"
	}
	return fmt.Sprintf("d = %d, %s %s%s", c.dim, sealing, form, storage)
}

// users of a round: enough for some tenths of a second.
func (c cell) users(l *lab) int {
	switch {
	case l.quick:
		return 256
	case c.bundle == 1 && (c.sealed || c.sync == syncAlways):
		return 2048
	case c.dim > 100:
		return 8192
	}
	return 16384
}

// pipelines measures the flow of reports, beside the raw broker with messages of the same size and number.
func pipelines(ctx context.Context, l *lab) error {
	brokers := map[syncing]*broker{}
	for _, sync := range [...]syncing{syncLazily, syncAlways} {
		b, err := startBroker(ctx, l, sync)
		if err != nil {
			return err
		}
		defer b.end()
		brokers[sync] = b
	}
	for _, dim := range dims[:l.of(len(dims), 1)] {
		for _, sealed := range [...]bool{false, true} {
			for _, bundle := range [...]int{1, 64} {
				c := cell{dim: dim, sealed: sealed, bundle: bundle, sync: syncLazily}
				if err := c.measure(ctx, l, brokers[c.sync]); err != nil {
					return fmt.Errorf("%v: %w", c, err)
				}
			}
		}
	}
	for _, c := range [...]cell{
		{dim: 100, bundle: 64, sync: syncAlways}, {dim: 100, sealed: true, bundle: 1, sync: syncAlways},
		{dim: 100, bundle: 64, sync: syncLazily, memory: true}, {dim: 100, sealed: true, bundle: 1, sync: syncLazily, memory: true},
	} {
		if err := c.measure(ctx, l, brokers[c.sync]); err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
	}
	return nil
}

// measure fills rounds in turns: by raw messages, by reports that were made before, by a gateway.
func (c cell) measure(ctx context.Context, l *lab, b *broker) (err error) {
	repeats, users := l.of(5, 1), c.users(l)
	r, err := newRaw(ctx, l, b, c.memory)
	if err != nil {
		return err
	}
	defer r.close()
	w, err := newWorld(ctx, l, b, shape{dim: c.dim, sealed: c.sealed, cohort: users, rounds: 2 * (repeats + 1), memory: c.memory})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	send, err := w.newSender()
	if err != nil {
		return err
	}
	g, err := w.newGateway(c.bundle)
	if err != nil {
		return err
	}
	messages, size := users/c.bundle, w.messageBytes(c.bundle)
	var plain, stage, whole series // bytes a second
	rate := func(took time.Duration) float64 { return float64(messages*size) / took.Seconds() / 1e6 }
	for i := range repeats + 1 {
		raw, err := r.carry(ctx, messages, size)
		if err != nil {
			return err
		}
		made, err := send.fill(uint64(2*i+1), users, c.bundle)
		if err != nil {
			return err
		}
		events, err := g.fill(uint64(2*i+2), users)
		if err != nil {
			return err
		}
		if i > 0 || l.quick { // the first one warms up
			plain, stage, whole = append(plain, rate(raw)), append(stage, rate(made)), append(whole, rate(events))
		}
	}
	note := fmt.Sprintf("%d bytes a message", size)
	yardstick := "raw, MB/s"
	row := newRow("Reports that are made: publish, stage, batch; over the raw broker", c.String(), "MB/s", stage).beside(yardstick, stage, plain)
	if row.Note = note; !c.sealed && c.bundle > 1 {
		row = row.atLeast("at least 0.6", row.Ratio, 0.6)
	}
	l.add(row)
	perEvent := float64(size) / float64(c.bundle) / 1e6
	row = newRow("Events through one gateway: map, gradient, encode, charge, publish, stage, batch; over the raw broker", c.String(), "MB/s", whole).
		beside(yardstick, whole, plain)
	row.Note = fmt.Sprintf("%.0f events/s (made before: %.0f)", whole.median()/perEvent, stage.median()/perEvent)
	l.add(row)
	return nil
}
