package device_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// TestSilosAreDrawnForEachRound checks that, where some of the silos make a round of many passes, the silos are drawn
// again for each round: over many rounds each is in about as many, and silos of the round before no more often than
// others. A report that came too late for a round is charged and not drawn again, the stint is charged once as a whole,
// and every round has a draw of its own.
func TestSilosAreDrawnForEachRound(t *testing.T) {
	const silos, some, rounds = 6, 3, 30
	for _, trust := range []accounting.Trust{accounting.Local, accounting.Shuffle} {
		synctest.Test(t, func(t *testing.T) {
			w := newSomeSilos(t, trust, rounds, silos, some)
			var all [silos]*organisation
			w.play(t.Context(), func(ctx context.Context) {
				var group sync.WaitGroup
				for i := range all {
					all[i] = w.organisation(participation.NewMemoryStore())
					group.Go(func() {
						if sum, err := all[i].run(ctx, "x", part{"a", 0, 12}); err != nil || sum.Events != 1 {
							t.Errorf("%v: silo %d: %+v, %v", trust, i, sum, err)
						}
					})
				}
				group.Wait()
			})
			if t.Failed() {
				return
			}
			first := map[stream.Round][]int{}
			var spies []*spy
			for i, o := range all {
				spies = append(spies, o.spy)
				if n := len(o.drew); n < 3 || n > 27 { // of 30 fair coins 1 in 10^6 are
					t.Errorf("%v: silo %d answered %d of %d rounds", trust, i, n, rounds)
				}
				for r, d := range o.drew {
					if len(d) != 1 || len(d[0].rows) != 12 {
						t.Errorf("%v: silo %d drew %d times in round %d", trust, i, len(d), r)
					}
					first[r] = append(first[r], i)
				}
				book, err := ledger.ReadStatement(o.book, time.Now(), 0)
				must(t, err)
				if len(book.Tasks) != 1 || book.Tasks[0].Standing != 1 || book.Tasks[0].Epsilon > 4 {
					t.Errorf("%v: the ledger of silo %d has %+v", trust, i, book.Tasks)
				}
			}
			spies[0].audit(w, spies[1:]...)
			late, stayed := 0, 0
			for r := stream.Round(1); r <= rounds; r++ {
				if b := w.batch(t.Context(), r); b.Users != some || b.Attempt != 1 {
					t.Errorf("%v: round %d: %d silos in attempt %d", trust, r, b.Users, b.Attempt)
				}
				late += len(first[r]) - some
				for _, i := range first[r] {
					if slices.Contains(first[r-1], i) {
						stayed++
					}
				}
			}
			if late > rounds {
				t.Errorf("%v: %d reports came too late for %d rounds", trust, late, rounds)
			}
			if mean := float64(rounds-1) * some * some / silos; math.Abs(float64(stayed)-mean) > 20 { // five standard deviations
				t.Errorf("%v: %d times somebody was in two rounds on end, expected are %v", trust, stayed, mean)
			}
			t.Log(trust, late, stayed)
		})
	}
}

// A silo that no round drew, and that is started again when the task is over, says that its rows were in no report;
// one that was counted says that. Neither waits for the span that hides how long rows take to be read, in which the
// run would end.
func TestSilosComeAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSilos(t, accounting.Local, 3)
		both := [2]*organisation{w.organisation(participation.NewMemoryStore()),
			w.organisation(participation.NewMemoryStore())}
		w.play(t.Context(), func(ctx context.Context) {
			var group sync.WaitGroup
			for _, o := range both {
				group.Go(func() {
					_, err := o.run(ctx, "x", part{"a", 0, 12})
					must(t, err)
				})
			}
			group.Wait()
			time.Sleep(time.Minute) // until the end is announced
			for i, o := range []*organisation{both[0], both[1], w.organisation(participation.NewMemoryStore())} {
				want := device.Summary{Events: 1, Units: 12, Counted: 1, Rounds: 1}
				if i == 2 {
					want = device.Summary{Events: 1, Units: 12, Uncounted: 1, Unused: 1}
				}
				o.reads = 900 * time.Millisecond
				late, stop := context.WithTimeout(ctx, time.Hour)
				if sum, err := o.run(late, "x", part{"a", 0, 12}); err != nil || sum.Events != want.Events ||
					sum.Units != want.Units ||
					sum.Counted != want.Counted || sum.Unused != want.Unused {
					t.Errorf("silo %d: %+v, %v, want %+v", i, sum, err, want)
				}
				stop()
			}
		})
	})
}
