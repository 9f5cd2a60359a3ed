package device_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// at returns examples with a coordinate of their own each.
func at(places ...int32) (out []convex.Example) {
	for _, i := range places {
		out = append(out, convex.Example{Index: []int32{i}, Value: []float64{1}, Label: 1})
	}
	return out
}

// An application gives all rows of a person at once: the first of them are one report under the person's own account,
// the rest is surplus, and what comes later, in this run or the next, is answered.
func TestPublishBlockOfPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPeople(t, 1, 3)
		s, l := newSpy(t, participation.NewMemoryStore()), memory.NewLedger()
		var last device.Progress
		dev := func() *device.Device {
			cfg := w.config(s)
			cfg.Ledger, cfg.Policy.MaxEpsilon = l, accounting.MaxEpsilon
			cfg.Progress = func(p device.Progress) { last = p }
			dev := w.client(cfg)
			byUser(dev, 2, time.Hour)
			return dev
		}
		w.play(t.Context(), func(ctx context.Context) {
			first := dev()
			published := make(chan device.Outcome, 4)
			publish := func(d *device.Device, id string, rows ...convex.Example) {
				got, err := d.PublishBlock(ctx, participation.EventKey(id), rows...)
				if err != nil {
					t.Error(err)
				}
				published <- got
			}
			go publish(first, "a", at(0, 1, 2)...)
			time.Sleep(time.Minute)
			go publish(first, "a", at(3)...) // under way already
			time.Sleep(time.Minute)          // an event that is asked about after its outcome counts once more
			go publish(first, "b", at(4)...)
			go publish(first, "nobody's rows")
			for range cap(published) {
				if got := <-published; got != (device.Outcome{State: participation.Counted, Round: 1}) {
					t.Errorf("%+v, want counted in round 1", got)
				}
			}
			must(t, first.Close())
			if got, want := last.Summary, (device.Summary{Events: 3, Units: 3, Surplus: 1, Counted: 3}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			second := dev()
			publish(second, "a", at(5)...)
			must(t, second.Close())
		})
		s.audit(w)
		s.checkLetters(w, "posted", "aaaaba", "110010")
		for _, id := range []string{"a", "b", "nobody's rows"} {
			charges := accountOf(t, l, participation.EventKey(id))
			if n := len(s.draws[participation.EventKey(id)]); n != 1 || len(charges) != 1 || !charges[0].ByUser ||
				charges[0].Anonymous {
				t.Errorf("%s has %d draws and %+v, want one of each, of a person", id, n, charges)
			}
		}
	})
}

// accountOf returns the charges of a user.
func accountOf(t *testing.T, l ledger.Ledger, key participation.Key) (out []ledger.Charge) {
	t.Helper()
	must(t, l.Update(time.Now(), []participation.Key{key}, func(_ time.Time, charges [][]ledger.Charge) error {
		out = charges[0]
		return nil
	}))
	return out
}

// An application of an organisation gives blocks of the declared number of rows, one of which takes part in each round.
func TestPublishBlockOfASilo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBlocks(t, 3, 1)
		s := newSpy(t, participation.NewMemoryStore())
		cfg := w.config(s)
		var last device.Progress
		cfg.Policy.MaxEpsilon, cfg.Progress = accounting.MaxEpsilon, func(p device.Progress) { last = p }
		dev := w.client(cfg)
		device.OnAgree(dev, func(a *consent.Agreement) { a.Final, a.Spec.Silo = true, &task.Silo{Count: 2, Units: blockUnits} })
		w.play(t.Context(), func(ctx context.Context) {
			for i := range int32(3) {
				got, err := dev.PublishBlock(ctx, participation.EventKey(fmt.Sprint("block ", i)), at(4*i, 4*i+1, 4*i+2, 4*i+3)...)
				if err != nil || got.State != participation.Counted || got.Round == 0 {
					t.Errorf("block %d: %v, %v", i, got, err)
				}
			}
			for _, rows := range []int{0, blockUnits - 1, blockUnits + 1} {
				_, err := dev.PublishBlock(ctx, participation.EventKey("another"), make([]convex.Example, rows)...)
				refusal(t, fmt.Sprint(rows, " rows"), err, "PublishBlock")
			}
			must(t, dev.Close())
		})
		s.audit(w)
		s.checkLetters(w, "blocks", "aaaabbbbcccc", "111111111111")
		if got, want := last.Summary, (device.Summary{Events: 3, Units: 12, Counted: 3}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// What is not about what the task's reports are is refused, and nothing is sent, whether the task was known before or
// not.
func TestPublishIsOfTheTasksKind(t *testing.T) {
	people := func(a *consent.Agreement) {
		a.Spec.Privacy.Unit, a.Spec.User = task.UnitUser, &task.User{Column: "who", Items: 2}
	}
	silo := func(a *consent.Agreement) { a.Spec.Silo = &task.Silo{Count: 2, Units: blockUnits} }
	event := func(ctx context.Context, c *device.Device) (device.Outcome, error) {
		return c.Publish(ctx, participation.EventKey("a"), at(1)[0])
	}
	block := func(rows ...convex.Example) func(context.Context, *device.Device) (device.Outcome, error) {
		return func(ctx context.Context, c *device.Device) (device.Outcome, error) {
			return c.PublishBlock(ctx, participation.EventKey("a"), rows...)
		}
	}
	for name, c := range map[string]struct {
		blocks  bool // the plan's reports are about several units
		agree   func(*consent.Agreement)
		publish func(context.Context, *device.Device) (device.Outcome, error)
		field   string
	}{
		"an event of a person's":    {false, people, event, "Publish"},
		"an event of a silo's":      {true, silo, event, "Publish"},
		"a block among events":      {false, func(*consent.Agreement) {}, block(at(1)...), "PublishBlock"},
		"a block that is too small": {true, silo, block(at(1, 2, 3)...), "PublishBlock"},
		"a block that is too large": {true, silo, block(at(1, 2, 3, 4, 5)...), "PublishBlock"},
		"a block without a key": {false, people, func(ctx context.Context, c *device.Device) (device.Outcome, error) {
			return c.PublishBlock(ctx, participation.Key{})
		}, "key"},
		"people of an organisation's": {true, func(a *consent.Agreement) { silo(a); people(a) }, block(at(1, 2, 3, 4)...),
			"PublishBlock"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newPeople(t, 1, 1)
			if c.blocks {
				w = newBlocks(t, 1, 1)
			}
			cfg := w.config(participation.NewMemoryStore())
			cfg.Policy.MaxEpsilon, cfg.Transport = accounting.MaxEpsilon, unwritable{cfg.Transport, t}
			dev := w.client(cfg)
			device.OnAgree(dev, c.agree)
			for i := range 2 {
				if i == 1 {
					w.open(t.Context(), 1, 1, w.announce(t.Context(), 1))
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				got, err := c.publish(ctx, dev)
				stop()
				if i == 0 && c.field != "key" {
					continue // nobody knows the task, and what is waiting then is refused, too
				}
				if refusal(t, name, err, c.field); got.State != participation.Refused || got.Refused == nil {
					t.Errorf("%s: %+v, want it refused", name, got)
				}
			}
			time.Sleep(time.Minute)
			_ = dev.Close()
		})
	}
}
