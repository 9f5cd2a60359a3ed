package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// latency measures rounds that are small enough to wait and not to compute: from the moment that a gateway's events are there
// to the moment that the next round is open.
func latency(ctx context.Context, l *lab) error {
	for _, sync := range [...]syncing{syncAlways, syncLazily} {
		if err := latencyOn(ctx, l, sync); err != nil {
			return err
		}
	}
	return nil
}

func latencyOn(ctx context.Context, l *lab, sync syncing) (err error) {
	b, err := startBroker(ctx, l, sync)
	if err != nil {
		return err
	}
	defer b.end()
	rounds := l.of(100, 4)
	const cohort = 16
	w, err := newWorld(ctx, l, b, shape{dim: 10, sealed: true, cohort: cohort, rounds: rounds})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	g, err := w.newGateway(1)
	if err != nil {
		return err
	}
	conn, err := w.connect()
	if err != nil {
		return err
	}
	var round, get, put series
	for r := 1; r < rounds; r++ {
		if err := g.seen.wait(w.ctx, uint64(r)); err != nil {
			return err
		}
		begun := time.Now()
		g.events <- cohort
		if err := g.seen.wait(w.ctx, uint64(r+1)); err != nil {
			return err
		}
		round = append(round, milliseconds(time.Since(begun)))
		begun = time.Now()
		if _, err := conn.Get(w.ctx, w.name.Task()); err != nil {
			return err
		}
		get = append(get, milliseconds(time.Since(begun)))
		begun = time.Now()
		// A subject of a round that does not come: it is written once and nobody reads it.
		if _, err := conn.PutOnce(w.ctx, w.name.Claim(stream.Round(rounds+r)), []byte("x")); err != nil {
			return err
		}
		put = append(put, milliseconds(time.Since(begun)))
	}
	const group = "A round of 16 sealed users, from its events to the next round at the gateway"
	l.add(newRow(group, fmt.Sprintf("over a read, files synced %s", sync), "ms", round).beside("read of a record, ms", round, get))
	l.add(newRow(group, fmt.Sprintf("over a write, files synced %s", sync), "ms", round).beside("write of a record, ms", round, put))
	return nil
}
