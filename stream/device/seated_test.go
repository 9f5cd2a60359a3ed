package device_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A device whose tick is longer than a quarter of the time for which places are kept draws before it asks, and charges
// when the answer comes.
func TestSlowDevicesDrawBeforeTheyAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var drawn []time.Time
		p := oneWithPlaces(t, accounting.Shuffle, grants)
		p.way = time.Second
		p.config.Work = func(*consent.Agreement) (func(), error) { return func() { time.Sleep(time.Second) }, nil }
		hash := p.w.announce(ctx, 1)
		p.opens(ctx, 1, hash)
		p.device = p.w.client(p.config)
		device.OnReport(p.device, func(stream.Round, block.Block, randomizer.Params) { drawn = append(drawn, time.Now()) })
		go func() {
			o, _ := p.device.Publish(ctx, participation.EventKey("a"), example(1))
			p.outcome <- o
		}()
		time.Sleep(time.Minute)
		asks := p.requests()
		if tick := device.Within(p.device) / 2; tick < placesFor/4 {
			t.Fatalf("a tick of %v: want one that is long", tick)
		}
		if len(asks) != 1 || len(drawn) != 1 || !drawn[0].Before(asks[0].at) {
			t.Fatalf("drawn %v, asked %v: want one draw before one request", drawn, asks)
		}
		if p.published() != 1 || p.charged() != 1 {
			t.Fatalf("%d reports, %d charged: want 1", p.published(), p.charged())
		}
		if took := p.charges.Sub(asks[0].at); took < time.Second || took > placesFor/2 {
			t.Errorf("charged %v after it asked: want when the answer was there", took)
		}
		must(t, p.device.Close())
	})
}

// A draw that got no place is the same when it gets one: one draw a manifest, sent or not.
func TestADrawWaitsForItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		n, drawn := 0, 0
		p := oneWithPlaces(t, accounting.Shuffle, func(r stream.PlaceRequest) (stream.PlaceAnswer, error) {
			if n++; n < 4 {
				return stream.PlaceAnswer{ID: r.ID, Verdict: stream.PlaceWait, Time: time.Second}, nil
			}
			return grants(r)
		})
		p.config.Work = func(*consent.Agreement) (func(), error) { return func() { time.Sleep(time.Second) }, nil }
		hash := p.w.announce(ctx, 1)
		p.opens(ctx, 1, hash)
		p.device = p.w.client(p.config)
		device.OnReport(p.device, func(stream.Round, block.Block, randomizer.Params) { drawn++ })
		go func() {
			o, _ := p.device.Publish(ctx, participation.EventKey("a"), example(1))
			p.outcome <- o
		}()
		time.Sleep(5 * time.Minute)
		if len(p.requests()) != 4 || drawn != 1 || p.published() != 1 {
			t.Errorf("%d requests, %d draws, %d reports: want 4, 1, 1", len(p.requests()), drawn, p.published())
		}
		must(t, p.device.Close())
	})
}

// In a later round of an interactive phase its members ask at once, and others after half of the deadline.
func TestMembersAskAtOnceAndReservesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users, rounds = 10, 3
		w := newWorld(t, plan{rounds: 3, cohort: users, deadline: time.Minute})
		w.task.Plan.Places = true
		w.replan(asked(users, rounds, users-1))
		began := map[string]time.Time{} // by subject of requests: the first
		var mu sync.Mutex
		member := &clerk{}
		late := &clerk{}
		w.play(t.Context(), func(ctx context.Context) {
			c := w.dear(newSpy(t, participation.NewMemoryStore()))
			member.Transport = c.Transport
			c.Transport = member
			var group sync.WaitGroup
			group.Go(func() {
				sum, err := w.client(c).Run(ctx, rows(users-1, false))
				must(t, err)
				if sum.Counted != users-1 {
					t.Errorf("%+v", sum)
				}
			})
			time.Sleep(70 * time.Second) // the first round closed with its minimum
			d := w.dear(newSpy(t, participation.NewMemoryStore()))
			late.Transport = d.Transport
			d.Transport = late
			group.Go(func() {
				cl := w.client(d)
				_, err := cl.Publish(ctx, participation.EventKey("late"), example(1))
				must(t, err)
				must(t, cl.Close())
			})
			group.Wait()
		})
		for _, r := range member.requests() {
			mu.Lock()
			if _, known := began[r.subject]; !known {
				began[r.subject] = r.at
			}
			mu.Unlock()
		}
		asks := late.requests()
		if len(asks) == 0 {
			t.Fatal("who came late never asked")
		}
		if after := asks[0].at.Sub(began[asks[0].subject]); after < 29*time.Second || after > 35*time.Second {
			t.Errorf("who came late asked %v after the members", after)
		}
	})
}

// Single devices that are far away beside a gateway of many rows, more than the rounds take: all rounds fill, and hardly
// anybody pays in vain.
func TestHardlyAnybodyPaysInVain(t *testing.T) {
	const rounds, cohort = 3, 100
	for _, places := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: rounds, cohort: cohort, deadline: 10 * time.Minute, bundle: 64})
			w.task.Plan.Places = places
			w.hash = taskHash(t, w.task)
			began := time.Now()
			all := w.crowd(400, 600)
			took := time.Since(began)
			vain := all.ChargedUncounted + all.Unknown
			t.Logf("places %t: %d counted, %d charged and not, %v", places, all.Counted, vain, took)
			if all.Counted != rounds*cohort || took > rounds*time.Minute {
				t.Errorf("places %t: %d counted in %v: want %d in full rounds", places, all.Counted, took, rounds*cohort)
			}
			if places && vain > rounds*cohort/100 {
				t.Errorf("%d charged and not counted: want 1 %% at most", vain)
			}
		})
	}
}

// crowd plays a task with so many devices of one event, each 300 ms away, beside a gateway of so many rows.
func (w *world) crowd(single, gateway int) (all device.Summary) {
	t := w.t
	w.play(t.Context(), func(ctx context.Context) {
		var group sync.WaitGroup
		var mu sync.Mutex
		add := func(s device.Summary) {
			mu.Lock()
			defer mu.Unlock()
			all.Counted, all.ChargedUncounted = all.Counted+s.Counted, all.ChargedUncounted+s.ChargedUncounted
			all.Unknown += s.Unknown
		}
		for i := range single {
			c := w.config(participation.NewMemoryStore())
			c.Transport = &clerk{Transport: c.Transport, way: 300 * time.Millisecond}
			var last device.Progress
			c.Progress = func(p device.Progress) { last = p }
			group.Go(func() {
				cl := w.client(c)
				_, err := cl.Publish(ctx, participation.EventKey(fmt.Sprint(i)), example(1))
				must(t, err)
				must(t, cl.Close())
				add(last.Summary)
			})
		}
		group.Go(func() {
			c := w.config(participation.NewMemoryStore())
			c.Rows = true
			cl := w.client(c)
			cl.Expect(uint64(gateway))
			got, err := cl.Run(ctx, rows(gateway, false))
			must(t, err)
			add(got)
		})
		group.Wait()
	})
	return all
}
