package stage

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
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
	m, err := w.broker.Get(context.Background(), w.name.Open(stream.Round(r), stream.Attempt(a)))
	if err != nil {
		return 0
	}
	o := w.openOf(m)
	return len(stream.ShardKeys(o))
}

// TestWorkersShareARound: two and three workers count each user once, and the cohort exactly.
func TestWorkersShareARound(t *testing.T) {
	for _, p := range []plan{
		{rounds: 2, cohort: 41, suite: wire.Suite_SUITE_X25519}, {rounds: 2, cohort: 60, bundle: 4}, {rounds: 2, cohort: 2},
	} {
		for workers := 2; workers <= 3; workers++ {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, p)
				var sent wires
				var stages []func(context.Context)
				for range workers {
					stages = append(stages, func(ctx context.Context) { w.life(ctx, "", false, &sent, w.shared(workers, nil)) })
				}
				w.run(t.Context(), stages...)
				sent.audit(t, w)
				real, void := w.audit()
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

// flock is a crowd of extra users that come to shards of a test's choice: their coordinates lie above the plan's.
func (w *world) flock(ctx context.Context, in *invitation, shard uint32, users ...uint64) {
	var data [][]byte
	for _, u := range users {
		id := randomID()
		for stream.ShardOf(id, len(in.keys)) != shard {
			id = randomID()
		}
		data = append(data, w.seal(in, [][16]byte{id}, w.plaintext(u)))
	}
	w.send(ctx, in, data...)
}

// TestUsersOfOneShard: the worst that ids can do. All users lie in one shard, first come exactly as many as the cohort
// wants, of whom none may be left out; then, in the next round, twice as many, of whom not one more may be taken.
func TestUsersOfOneShard(t *testing.T) {
	for shard := uint32(1); shard <= 2; shard++ {
		synctest.Test(t, func(t *testing.T) {
			const n = 50
			w := newWorld(t, plan{rounds: 2, cohort: n, spares: 1})
			ctx, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			group.Go(func() { w.learn(ctx) })
			for range 2 {
				group.Go(func() { w.life(ctx, "", false, new(wires), w.shared(2, nil)) })
			}
			var all [][]uint64
			for _, round := range [][2]uint64{{0, n}, {n, 3 * n}} {
				var users []uint64
				for u := round[0]; u < round[1]; u++ {
					users = append(users, u)
				}
				all = append(all, users)
			}
			for r, users := range all {
				in := w.invited(ctx, uint64(r+1), 0)
				began := time.Now()
				// A few come late, one by one.
				w.flock(ctx, in, shard, users[:n-5]...)
				for _, u := range users[n-5:] {
					time.Sleep(700 * time.Millisecond)
					w.flock(ctx, in, shard, u)
				}
				w.get(ctx, w.name.Batch(stream.Round(uint64(r+1))))
				b, _ := w.batch(uint64(r + 1))
				if b.Users != n || slices.Max(b.Totals) != 1 || in.attempt != 1 {
					t.Errorf("shard %d, round %d: %d users, at most %d times, attempt %d", shard, r+1, b.Users, slices.Max(b.Totals), in.attempt)
				}
				t.Logf("shard %d, round %d: %v", shard, r+1, time.Since(began))
			}
			stop()
			group.Wait()
		})
	}
}

// TestSharedDeadline: at the deadline with the minimum all shards hand over, and the missing users' noise is topped up
// once; under the minimum nothing is released.
func TestSharedDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 20, minimum: 9, deadline: 5 * time.Second})
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { w.learn(ctx) })
		for range 3 {
			group.Go(func() { w.life(ctx, "", false, new(wires), w.shared(3, nil)) })
		}
		in := w.invited(ctx, 1, 0)
		w.answer(ctx, in, []uint64{0, 1, 2, 3, 4, 5, 6, 7})
		time.Sleep(15 * time.Second)
		if b, _ := w.batch(1); b != nil {
			t.Errorf("a batch of %d users, the minimum is 9", b.Users)
		}
		w.answer(ctx, in, []uint64{8})
		if w.get(ctx, w.name.Batch(1)) == nil {
			t.Fatal("no batch")
		}
		b, _ := w.batch(1)
		var ones uint64
		for u, total := range b.Totals {
			if u >= 9 && total > 11 || u < 9 && (total < 1 || total > 12) {
				t.Errorf("total of user %d: %d", u, total)
			}
			ones += total
		}
		if b.Users != 9 || b.NoiseTrials != 20 || len(in.keys) != 3 || ones < 9 {
			t.Errorf("%d users, %d trials, %d shards, %d ones", b.Users, b.NoiseTrials, len(in.keys), ones)
		}
		stop()
		group.Wait()
	})
}

// TestFewWorkers: an owner that asks for more workers than there are opens with those that there are, and asks again.
func TestFewWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 12, cohort: 4})
		var sent wires
		one := func(ctx context.Context) { w.life(ctx, "", false, &sent, w.shared(4, nil)) }
		w.run(t.Context(), one, func(ctx context.Context) {
			w.get(ctx, w.name.Batch(3))
			one(ctx)
		})
		if real, void := w.audit(); real != 12 || void != 0 {
			t.Errorf("%d real, %d void batches", real, void)
		}
		var shards []int
		for r := uint64(1); r <= 12; r++ {
			shards = append(shards, w.opened(r, 1))
		}
		if shards[0] != 1 || shards[11] != 2 || !slices.IsSorted(shards) {
			t.Errorf("shards by round: %v, want one first and two at last", shards)
		}
	})
}

// TestSilentWorker: a worker that is cut off for longer than its lease's time erases its shard and takes a seat again;
// the owner gives the attempt up and opens another.
func TestSilentWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 8})
		var sent wires
		cut := &partition{}
		dropped := 0
		w.run(t.Context(), func(ctx context.Context) {
			w.life(ctx, "", false, &sent, w.shared(2, nil))
		}, func(ctx context.Context) {
			time.Sleep(time.Second)
			w.life(ctx, "", false, &sent, func(c *Config) {
				w.shared(2, nil)(c)
				cut.Records, cut.ReportReader = c.Records, c.Reports
				c.Records = cut
				open := c.ShardReader
				c.ShardReader = func(ctx context.Context, shard uint32) (stream.ReportReader, error) {
					cut.until = time.Now().Add(40 * time.Second)
					return open(ctx, shard)
				}
				c.Observer.Dropped = func(_, _ uint64) { dropped++ }
			})
		})
		sent.audit(t, w)
		if real, void := w.audit(); real != 2 || void != 0 || dropped == 0 {
			t.Errorf("%d real, %d void batches, %d dropped shards", real, void, dropped)
		}
		if w.opened(1, 1) != 2 || w.opened(1, 2) == 0 {
			t.Errorf("shards of the attempts: %d, %d", w.opened(1, 1), w.opened(1, 2))
		}
	})
}

// TestOneWorkerWithFloors: the accountant counts the floors of one worker, so a second one is refused.
func TestOneWorkerWithFloors(t *testing.T) {
	for _, trust := range []wire.Trust{wire.Trust_TRUST_PAN, wire.Trust_TRUST_SHUFFLE_PAN} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 4, trust: trust})
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			w.announce(ctx)
			c := w.config()
			w.shared(2, nil)(&c)
			err := w.new(c).Run(ctx)
			if err == nil || !strings.Contains(err.Error(), "2 workers: want 1") {
				t.Errorf("%v: %v", trust, err)
			}
			if w.opened(1, 1) != 0 {
				t.Error("it opened an attempt")
			}
		})
	}
}
