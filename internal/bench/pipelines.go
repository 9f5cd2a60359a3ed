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

// users of a round of reports that are made before: enough for some thousand messages, so that what a round costs beside
// its reports does not count.
func (c cell) users(l *lab) int {
	switch {
	case l.quick:
		return 256
	case c.sealed && c.bundle == 1:
		return 2048
	case c.bundle == 1 || c.sync == syncAlways:
		return 16384
	case c.dim > 100:
		return 65536
	}
	return 131072
}

// events of a round that a gateway answers.
func (c cell) events(l *lab) int {
	switch {
	case l.quick:
		return 256
	case c.bundle == 1:
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

// measure fills rounds in turns with raw messages: first by reports that were made before, then by a gateway.
func (c cell) measure(ctx context.Context, l *lab, b *broker) error {
	r, err := newRaw(ctx, l, b, c.memory)
	if err != nil {
		return err
	}
	defer r.close()
	made, err := c.inTurns(ctx, l, b, r, c.users(l), func(w *world) (filler, error) {
		s, err := w.newSender()
		return func(round uint64) (time.Duration, error) { return s.fill(round, c.users(l), c.bundle) }, err
	})
	if err != nil {
		return err
	}
	row := newRow("Reports made before: publish, stage, batch; over the raw broker", c.String(), "MB/s", made.rates).
		beside("raw, MB/s", made.rates, made.raw)
	row.Note = fmt.Sprintf("%.0f events/s in messages of %d bytes", made.events(), made.size)
	if !c.sealed && c.bundle > 1 {
		row = row.atLeast("at least 0.6", row.Ratio, 0.6)
	}
	l.add(row)
	events, err := c.inTurns(ctx, l, b, r, c.events(l), func(w *world) (filler, error) {
		g, err := w.newGateway(c.bundle)
		return func(round uint64) (time.Duration, error) { return g.fill(round, c.events(l)) }, err
	})
	if err != nil {
		return err
	}
	row = newRow("Events of one gateway: map, gradient, encode, charge, publish, stage, batch; over the raw broker", c.String(), "MB/s", events.rates).
		beside("raw, MB/s", events.rates, events.raw)
	row.Note = fmt.Sprintf("%.0f events/s", events.events())
	l.add(row)
	return nil
}

// A filler fills a round and answers how long that took.
type filler func(round uint64) (time.Duration, error)

// A flow is how many megabytes of messages a second went through a pipeline, and through the raw broker in turns with it.
type flow struct {
	rates, raw   series
	size, bundle int // of a message in bytes, in users
}

func (f flow) events() float64 { return f.rates.median() * 1e6 / float64(f.size) * float64(f.bundle) }

func (c cell) inTurns(ctx context.Context, l *lab, b *broker, r *raw, users int, fill func(*world) (filler, error)) (f flow, err error) {
	repeats := l.of(6, 1)
	w, err := newWorld(ctx, l, b, shape{dim: c.dim, sealed: c.sealed, cohort: users, rounds: repeats + 1, memory: c.memory})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	pipe, err := fill(w)
	if err != nil {
		return f, err
	}
	messages := users / c.bundle
	f = flow{size: w.messageBytes(c.bundle), bundle: c.bundle}
	rate := func(took time.Duration) float64 { return float64(messages*f.size) / took.Seconds() / 1e6 }
	for i := range repeats + 1 {
		raw, err := r.carry(ctx, messages, f.size)
		if err != nil {
			return f, err
		}
		took, err := pipe(uint64(i + 1))
		if err != nil {
			return f, err
		}
		if i > 0 { // the first one warms up
			f.raw, f.rates = append(f.raw, rate(raw)), append(f.rates, rate(took))
		}
	}
	return f, nil
}
