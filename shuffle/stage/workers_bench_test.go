package stage

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// BenchmarkWorkers is a round of sealed reports from the moment they lie at the broker to its batch, with one worker and
// with two. Sealing is done before. With less than two free cores the two say nothing:
//
//	go test ./shuffle/stage -run '^$' -bench Workers -benchtime 3x -cpu 2
func BenchmarkWorkers(b *testing.B) {
	const cohort = 60_000
	for workers := 1; workers <= 2; workers++ {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			var counting time.Duration
			for range b.N {
				counting += oneRound(b, workers, cohort)
			}
			b.ReportMetric(float64(b.N)*cohort/counting.Seconds(), "reports/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func oneRound(b *testing.B, workers int, cohort uint64) time.Duration {
	w := newWorld(b, plan{cohort: cohort, suite: wire.Suite_SUITE_X25519})
	w.params = randomizer.Params{Dim: 124, ClipNorm: 1, Levels: 1, Trials: 1, Coin: randomizer.Fair}
	w.task.Plan.Phases[0].Mechanism = manifest.Mechanism(w.params, 1)
	body, err := stream.Marshal(w.task)
	if err != nil {
		b.Fatal(err)
	}
	w.hash = stream.HashOf(body)
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { w.learn(ctx) })
	for range workers {
		running.Go(func() { w.life(ctx, "", false, new(wires), w.shared(workers, nil)) })
	}
	in := w.invited(ctx, 1, 0)
	if len(in.keys) != workers {
		b.Fatalf("%d shards, want %d", len(in.keys), workers)
	}
	plaintext := w.params.Pack(nil, make([]uint32, w.params.Dim))
	all := make([]stream.Outgoing, cohort)
	var sealing sync.WaitGroup
	for part := range 2 {
		sealing.Go(func() {
			for i := part; i < len(all); i += 2 {
				id := randomID()
				c, subject := in.of(w.name, id)
				r, err := seal.Seal(in.suite, c, w.hash, [][16]byte{id}, plaintext)
				if err != nil {
					b.Error(err)
					return
				}
				all[i] = stream.Outgoing{Subject: subject, ID: id, Data: w.encode(r)}
			}
		})
	}
	sealing.Wait()
	began := time.Now()
	w.deliver(ctx, all)
	w.get(ctx, w.name.Batch(1))
	took := time.Since(began)
	if got, _ := w.batch(1); got.Users != cohort || got.Attempt != in.attempt {
		b.Fatalf("%d users in attempt %d", got.Users, got.Attempt)
	}
	stop()
	running.Wait()
	return took
}
