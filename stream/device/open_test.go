package device_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A broker whose sequences lie has devices believe that they were in no batch. It wins some rounds of a task, and no
// task.
func TestLyingBrokerWinsNoTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := memory.NewLedger()
		run := func() (device.Summary, error) {
			w := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Minute})
			return w.runWith(t.Context(), 10, func(c *device.Settings) {
				c.Ledger, c.Policy.MaxTotalEpsilon = book, 1.5*w.cost()
				c.Transport = liar{c.Transport}
			})
		}
		sum, err := run()
		must(t, err)
		if sum.Uncounted != 10 {
			t.Fatalf("%+v: the broker did not lie", sum)
		}
		_, err = run()
		refusal(t, "a second task", err, "total epsilon")
	})
}

// A liar acknowledges with sequences above every cutoff.
type liar struct{ stream.Transport }

func (l liar) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := l.Transport.Publish(ctx, reports)
	for i := range acks {
		acks[i].Sequence += 1 << 40
	}
	return acks, err
}

// What was sent and has no outcome may be released at any time: it counts in every period until the outcome is known,
// and for a period from then on.
func TestOpenEventsCountWhateverTheirAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		const period = 10 * time.Hour
		book, store := memory.NewLedger(), participation.NewMemoryStore()
		limit := func(w *world) func(*device.Settings) {
			return func(c *device.Settings) {
				c.Ledger, c.Policy.MaxTotalEpsilon, c.Policy.Period = book, 1.5*w.cost(), period
			}
		}
		slow := newWorld(t, plan{rounds: 1, cohort: 10})
		hash := slow.announce(ctx, 1)
		slow.open(ctx, 1, 1, hash)
		take := func() {
			c := slow.config(store)
			limit(slow)(&c)
			short, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			_, _ = slow.client(c).Run(short, rows(5, false))
		}
		take()
		if n := slow.reports(1, 1); n != 5 {
			t.Fatalf("%d reports, want 5", n)
		}
		time.Sleep(3 * period)
		other := func() error {
			w := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Minute})
			_, err := w.runWith(ctx, 10, limit(w))
			return err
		}
		refusal(t, "while the first task is open", other(), "total epsilon")
		slow.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: hash, Cutoff: 5})
		take()
		refusal(t, "within a period of its outcome", other(), "total epsilon")
		time.Sleep(period)
		must(t, other())
	})
}
