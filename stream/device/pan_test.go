package device_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// Under the trusts with floors the users of an attempt that died drop out, and others take their places: those of the
// same gateway too, which has sent a whole cohort to the dead attempt. A gateway that comes back counts the same way.
func TestPanOthersTakeTheirPlaces(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for _, trust := range []accounting.Trust{accounting.Pan, accounting.ShufflePan} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				w := newWorld(t, plan{rounds: 1, cohort: 20, trust: trust})
				hash := w.announce(ctx, 1)
				w.open(ctx, 1, 1, hash)
				s := newSpy(t, participation.NewMemoryStore())
				run := func(ctx context.Context) (device.Summary, error) {
					return w.client(w.config(s)).Run(ctx, rows(50, false))
				}
				if restart {
					dying, kill := context.WithTimeout(ctx, time.Minute)
					sum, err := run(dying)
					kill()
					if err == nil || sum.Unknown != 20 {
						t.Fatalf("the first life: %+v, %v; want 20 users charged", sum, err)
					}
				}
				var sum device.Summary
				var group sync.WaitGroup
				group.Go(func() {
					var err error
					sum, err = run(ctx)
					must(t, err)
				})
				time.Sleep(time.Minute)
				// the stage finds an attempt that is not its own, and opens another
				w.play(ctx, func(context.Context) { group.Wait() })
				checkSum(t, sum)
				if want := (device.Summary{Events: 50, Units: 50, Counted: 20, Unknown: 20, Uncounted: 10, Unused: 10,
					Rounds: 1}); sum != want {
					t.Errorf("restart %t, %v: %+v, want %+v", restart, trust, sum, want)
				}
				if n := w.reports(1, 1); n != 20 {
					t.Errorf("%d reports in the dead attempt, want 20", n)
				}
				s.audit(w)
			})
		}
	}
}
