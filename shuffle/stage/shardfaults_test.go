package stage

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream/memory"
)

// TestSharedFaults: three processes that share rounds, are killed and restarted, on a broker that loses, doubles, reorders
// and lags. Whatever happens, nobody is counted twice and no round has two outcomes.
func TestSharedFaults(t *testing.T) {
	seeds, shared := uint64(5), 0
	if longtest.Run(t, "all but the first 5 of 200 seeds") {
		seeds = 200
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 2, cohort: 8, spares: 8, broker: memory.Config{
				Shuffle: true, Seed: seed,
				Inject: memory.Random(seed, memory.Rates{LostAck: 0.1, Lost: 0.05, Duplicate: 0.15, Lag: 0.1}),
			}})
			var sent wires
			process := func(salt uint64) func(context.Context) {
				rng := rand.New(rand.NewPCG(seed, salt))
				return func(ctx context.Context) {
					for life := 0; ; life++ {
						limited, stop := context.WithCancel(ctx)
						if life < 3 {
							time.AfterFunc(time.Duration(rng.IntN(40_000))*time.Millisecond, stop)
						}
						_, lived := w.life(limited, "", false, &sent, w.shared(3, nil))
						stop()
						if lived || ctx.Err() != nil {
							return
						}
						time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
					}
				}
			}
			w.run(t.Context(), process(1), process(2), process(3))
			w.broker.Inject(nil)
			sent.audit(t, w)
			if real, void := w.audit(); real != 2 {
				t.Errorf("seed %d: %d real, %d void batches", seed, real, void)
			}
			for r := uint64(1); ; r++ {
				b, _ := w.batch(r)
				if b == nil {
					break
				}
				if w.opened(r, b.Attempt) > 1 {
					shared++
				}
			}
		})
	}
	t.Logf("%d rounds of %d seeds were shared", shared, seeds)
	if shared == 0 {
		t.Error("no round was shared: this test shows nothing")
	}
}
