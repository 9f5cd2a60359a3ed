package stage

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// TestBrokerPutBackUnderALivingStage: broker and learner are restored from a copy of 20 rounds ago, while the stage
// goes on running. It says so in its status at once, and every round that was claimed, and the one after them, is void
// within minutes, of which nobody is asked for a report again.
func TestBrokerPutBackUnderALivingStage(t *testing.T) {
	const before, lost = 2, 20
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: before + lost + 2, cohort: 3, spares: before + lost + 2})
		ctx, stop := context.WithCancel(t.Context())
		var others sync.WaitGroup
		others.Go(func() { w.answerAll(ctx) })
		w.put(ctx, w.name.Task(), w.sign(w.learner, w.task))
		running, stopStage := w.start(w.config())
		announce := func(r, step uint64) {
			w.put(ctx, w.name.Round(stream.Round(r)), w.sign(w.learner, w.round(stream.Round(r), step)))
			if w.get(ctx, w.name.Close(stream.Round(r), 1)) == nil {
				t.Fatalf("no Close of round %d", r)
			}
		}
		restore := []func(){}
		for r := uint64(1); r <= before+lost; r++ {
			if announce(r, r); r == before {
				for _, s := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Batches, stream.Leases} {
					restore = append(restore, w.broker.Save(w.name, s))
				}
			}
		}
		for _, put := range restore {
			put()
		}
		began := time.Now()
		time.Sleep(2 * time.Minute) // nobody announces anything
		if got := running.Status(); got.Lost != lost || got.LostSince.IsZero() {
			t.Errorf("status of a stage whose broker is %d rounds older: %d since %v", lost, got.Lost, got.LostSince)
		}
		for r := uint64(before + 1); r <= before+lost+1; r++ { // one more may have been announced
			w.put(ctx, w.name.Round(stream.Round(r)), w.sign(w.learner, w.round(stream.Round(r), before+1)))
			for m := w.get(ctx, w.name.Batch(stream.Round(r))); m != nil; m = nil {
				b, _ := w.batch(stream.Round(r))
				if !b.Void || b.Reason != stream.VoidRoundLost {
					t.Errorf("round %d: %v, want it void, for the broker lost it", r, b)
				}
			}
			if _, err := w.broker.Latest(ctx, w.name.Opens(stream.Round(r))); err == nil {
				t.Errorf("round %d was opened again", r)
			}
		}
		if took := time.Since(began); took > 4*time.Minute {
			t.Errorf("%d lost rounds took %v", lost, took)
		}
		announce(before+lost+2, before+1)
		if b, _ := w.batch(before + lost + 2); b.Void {
			t.Errorf("the first round that was never announced is void: %s", b.Reason)
		}
		if got := running.Status(); got.Lost != 0 {
			t.Errorf("%d rounds are still called lost", got.Lost)
		}
		_ = stopStage()
		stop()
		others.Wait()
	})
}
