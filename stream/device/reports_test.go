package device_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// However often a stage opens rounds again, no more reports are made of an event than the policy allows, over rounds
// and attempts; it stays charged where its round is open, and at home where it is not.
func TestReportsOfOneEventAreCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 9, cohort: 10})
		s := newSpy(t, participation.NewMemoryStore())
		c := w.config(s)
		most := uint32(3)
		c.Policy.MaxReports = &most
		cl := w.client(c)
		done := make(chan device.Outcome, 2)
		publish := func(name string) {
			go func() {
				got, _ := cl.Publish(ctx, participation.EventKey(name), example(1))
				done <- got
			}()
		}
		publish("a")
		first := w.announce(ctx, 1)
		for a := stream.Attempt(1); a <= 2; a++ { // two attempts at the first round, of which the second closes without it
			w.open(ctx, 1, a, first)
			time.Sleep(10 * time.Second)
		}
		second := w.announce(ctx, 2)
		for a := stream.Attempt(1); a <= 5; a++ {
			w.open(ctx, 2, a, second)
			if a == 1 {
				publish("b")
			}
			time.Sleep(10 * time.Second)
		}
		for r, want := range map[stream.Round][]int{1: {1, 1}, 2: {1, 1, 1, 0, 0}} { // a in the first, b in the second round
			for a, n := range want {
				if got := w.reports(r, stream.Attempt(a)+1); got != n {
					t.Errorf("%d reports for attempt %d at round %d, want %d", got, a+1, r, n)
				}
			}
		}
		// b is above the cutoff of what it knows, and was elsewhere
		w.close(ctx, participation.Closed{Round: 2, Attempt: nth(3), Manifest: second})
		w.close(ctx, participation.Closed{Round: 1, Attempt: nth(2), Manifest: first, Void: true})
		for range 2 {
			if got := <-done; got.State != participation.Unknown {
				t.Errorf("%v, want unknown", got)
			}
		}
		must(t, cl.Close())
		s.audit(w)
	})
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 9, cohort: 10})
		c := w.config(participation.NewMemoryStore())
		most := uint32(2)
		c.Policy.MaxReports = &most
		cl := w.client(c)
		done := make(chan device.Outcome, 1)
		go func() {
			got, _ := cl.Publish(ctx, participation.EventKey("a"), example(1))
			done <- got
		}()
		for r := stream.Round(1); r <= 4; r++ {
			hash := w.announce(ctx, r)
			w.open(ctx, r, 1, hash)
			time.Sleep(10 * time.Second)
			w.close(ctx, participation.Closed{Round: r, Attempt: nth(1), Manifest: hash}) // nothing was opened
			time.Sleep(10 * time.Second)
		}
		if got := <-done; got != (device.Outcome{State: participation.Uncounted, Round: 2}) {
			t.Errorf("%v, want uncounted after two reports", got)
		}
		must(t, cl.Close())
	})
}
