package stage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// shared makes a stage process one of several workers.
func (w *world) shared(workers int, change func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Workers = workers
		c.ShardReader = func(_ context.Context, shard uint32) (stream.ReportReader, error) {
			return w.broker.ShardReader(w.name, shard)
		}
		if change != nil {
			change(c)
		}
	}
}

// opened is the number of shards of an attempt, 0 if there is no such attempt.
func (w *world) opened(r, a uint64) int {
	m, err := w.broker.Get(context.Background(), w.name.Open(r, a))
	if err != nil {
		return 0
	}
	o := w.openOf(m)
	return len(stream.ShardKeys(o))
}

// TestWorkersShareARound: two and three workers count each user once, and the cohort exactly.
func TestWorkersShareARound(t *testing.T) {
	for _, p := range []plan{
		{rounds: 3, cohort: 40}, {rounds: 2, cohort: 41, suite: 2}, {rounds: 2, cohort: 60, bundle: 4}, {rounds: 2, cohort: 2},
	} {
		for workers := 2; workers <= 3; workers++ {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, p)
				var sent wires
				var stages []func(context.Context)
				for range workers {
					stages = append(stages, func(ctx context.Context) { w.life(ctx, "", false, &sent, w.shared(workers, nil)) })
				}
				began := time.Now()
				w.run(t.Context(), stages...)
				sent.audit(t, w)
				real, void := w.audit()
				t.Logf("%d workers, %+v: %v", workers, p.cohort, time.Since(began))
				if real != int(p.rounds) || void != 0 {
					t.Errorf("%d workers: %d real, %d void batches", workers, real, void)
				}
				for r := uint64(1); r <= p.rounds; r++ {
					want := workers
					if p.cohort < uint64(workers) {
						want = int(p.cohort)
					}
					if got := w.opened(r, 1); got != want || w.opened(r, 2) != 0 {
						t.Errorf("round %d of %d: %d shards, want %d, or a second attempt", r, p.cohort, got, want)
					}
					if b, _ := w.batch(r); b != nil && b.Users != p.cohort {
						t.Errorf("round %d: %d users of %d", r, b.Users, p.cohort)
					}
				}
			})
		}
	}
}
