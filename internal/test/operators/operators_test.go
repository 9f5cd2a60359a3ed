package operators

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/shuffle/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runs runs a task to its end, while meddle does what it likes with the operators.
func (w *world) runs(ctx context.Context, meddle func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	var all sync.WaitGroup
	devices, stop := context.WithCancel(ctx)
	all.Go(func() { w.devices(devices) })
	meddling, still := context.WithCancel(ctx)
	all.Go(func() { meddle(meddling) })
	batches := w.learn(ctx)
	still()
	stop()
	all.Wait()
	w.check(batches)
}

// TestTogether: three rounds of one leader and one helper.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 3, cohort: 6})
		leader, helper := w.lead(t.Context(), nil), w.help(t.Context(), nil)
		w.runs(t.Context(), func(context.Context) {})
		<-leader.done
		<-helper.done
		if err := leader.stop(); err != nil {
			t.Errorf("leader: %v", err)
		}
		if err := helper.stop(); err != nil {
			t.Errorf("helper: %v", err)
		}
	})
}

// TestTogetherWithFaults: a broker that loses, repeats and delays, and operators that are stopped and started at random
// moments. No round is void.
func TestTogetherWithFaults(t *testing.T) {
	restarts := 0
	defer func() { t.Logf("%d restarts", restarts) }()
	seeds := uint64(60)
	if longtest.Run(t, "10,000 seeds, not 60") {
		seeds = 10_000
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 3, cohort: 6})
			if os.Getenv("LOUD") != "" {
				w.log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("seed", seed)
			}
			w.broker.Inject(memory.Random(seed, memory.Rates{LostAck: .05, Lost: .05, Duplicate: .05, Lag: .05}))
			rng := rand.New(rand.NewPCG(seed, 1))
			leader, helper := w.lead(t.Context(), nil), w.help(t.Context(), nil)
			w.runs(t.Context(), func(ctx context.Context) {
				for ctx.Err() == nil {
					select {
					case <-ctx.Done():
						return
					case <-time.After(time.Duration(rng.Int64N(int64(3 * time.Second)))):
					}
					restarts++
					if rng.IntN(2) == 0 {
						_ = leader.stop()
						leader = w.lead(t.Context(), nil)
					} else {
						_ = helper.stop()
						helper = w.help(t.Context(), nil)
					}
				}
			})
			w.broker.Inject(nil)
			_, _ = leader.stop(), helper.stop()
		})
	}
}

// TestStatusWithoutTheHelper: before the helper has joined the leader's status says that it waits for that and that nobody
// is asked; once it has, how many have reported.
func TestStatusWithoutTheHelper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 3})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { w.learn(ctx) })
		leader := w.lead(ctx, nil)
		if w.get(ctx, w.name.Open(1, 1)) == nil {
			t.Fatal("no attempt")
		}
		time.Sleep(time.Minute) // of a helper that does not come
		synctest.Wait()
		status := w.leading.Status()
		if got := obs.Waiting(status); got != "waiting for the helper to join: nobody of 3 is asked before" ||
			!strings.HasPrefix(status.Phase, "waiting for the helper to join round 1, attempt") {
			t.Errorf("without a helper: %q, %q", got, status.Phase)
		}
		helper := w.help(ctx, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		status = w.leading.Status()
		if got := obs.Waiting(status); got != "waiting: 0 of 3" || status.Unjoined {
			t.Errorf("with a helper: %q, %q", got, status.Phase)
		}
		cancel()
		all.Wait()
		_, _ = leader.stop(), helper.stop()
	})
}

// TestAnotherFolder: a leader whose folder was lost, or is another, opens nothing in a task that its identity has worked
// on, and says so.
func TestAnotherFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 3})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		leader, helper := w.lead(ctx, nil), w.help(ctx, nil)
		learning, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		all.Go(func() { w.learn(learning) })
		for w.newest(ctx, 1) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		_ = leader.stop()
		w.leaderDir += " of another machine"
		err := start(ctx, func(ctx context.Context) error {
			other := w.lead(ctx, nil)
			<-other.done
			return other.stop()
		})
		<-err.done
		if err := err.stop(); !errors.Is(err, stage.ErrFolder) || !strings.Contains(err.Error(), "knows nothing of this task") {
			t.Errorf("another folder: %v", err)
		}
		if n := w.newest(ctx, 1); n != 1 {
			t.Errorf("%d attempts, want the first alone", n)
		}
		stop()
		all.Wait()
		_ = helper.stop()
	})
}

// TestOldFolder: a leader whose folder was put back to before a release that the broker shows opens nothing, and says so.
func TestOldFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 3, cohort: 3})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() { w.learn(ctx) })
		helper, copied := w.help(ctx, nil), t.TempDir()
		leader := w.lead(ctx, nil)
		first := *w
		first.rounds = 1 // nobody takes part in round 2 before the copy is made
		first.devices(ctx)
		if w.get(ctx, w.name.Open(2, 1)) == nil {
			t.Fatal("no round 2")
		}
		_ = leader.stop()
		w.must(os.CopyFS(copied, os.DirFS(w.leaderDir)))
		all.Go(func() { w.devices(ctx) })
		leader = w.lead(ctx, nil)
		if w.get(ctx, w.name.Batch(2)) == nil {
			t.Fatal("no batch of round 2")
		}
		_ = leader.stop()
		opened := w.newest(ctx, 3)
		w.leaderDir = copied
		leader = w.lead(ctx, nil)
		<-leader.done
		if err := leader.stop(); !errors.Is(err, stage.ErrFolder) || !strings.Contains(err.Error(), "round 2 was released") {
			t.Errorf("an old folder: %v", err)
		}
		if n := w.newest(ctx, 3); n != opened {
			t.Errorf("attempt %d was opened", n)
		}
		cancel()
		all.Wait()
		_ = helper.stop()
	})
}
