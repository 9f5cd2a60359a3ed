package stage

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// withPlaces returns a world whose plan has places.
func withPlaces(t testing.TB, p plan) *world {
	w := newWorld(t, p)
	w.task.Plan.Places = true
	body, err := stream.Marshal(w.task)
	if err != nil {
		t.Fatal(err)
	}
	w.hash = stream.HashOf(body)
	return w
}

// serving is the configuration of a stage that gives places.
func (w *world) serving() Config {
	c := w.config()
	c.PlaceServer = w.broker
	return c
}

// openOf returns the Open of an attempt, nil where there is none.
func (w *world) openOf(r stream.Round, a stream.Attempt) *wire.Open {
	m, err := w.broker.Get(context.Background(), w.name.Open(r, a))
	if err != nil {
		return nil
	}
	var signed wire.Signed
	var o wire.Open
	if err := errors.Join(stream.Unmarshal(m.Data, &signed), stream.Unmarshal(signed.Body, &o)); err != nil {
		w.t.Fatal(err)
	}
	return &o
}

// places requests places in an attempt; false: no reply.
func (w *world) asks(r stream.Round, a stream.Attempt, n uint64, users uint32) (stream.PlaceAnswer, bool) {
	w.t.Helper()
	data, err := w.broker.Place(context.Background(), w.name.Place(r, a), asking(n, users).Record())
	if err != nil {
		return stream.PlaceAnswer{}, false
	}
	answer, err := stream.ParsePlaceAnswer(data)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer, true
}

// A refuser is a broker that hands out no requests for places.
type refuser struct{}

func (refuser) ServePlaces(context.Context, stream.Task, func(string, []byte) []byte) error {
	return stream.ErrRefused
}

// Places are announced only where the plan has them, requests come, and the deadline leaves the time.
func TestPlacesAreAnnouncedWhereTheyCanBeGiven(t *testing.T) {
	for name, c := range map[string]struct {
		plan     bool
		server   func(*world) stream.PlaceServer
		deadline time.Duration
		want     uint32
	}{
		"places":                 {true, func(w *world) stream.PlaceServer { return w.broker }, time.Minute, 3000},
		"without a deadline":     {true, func(w *world) stream.PlaceServer { return w.broker }, 0, 3000},
		"a sixteenth":            {true, func(w *world) stream.PlaceServer { return w.broker }, 16 * time.Second, 1000},
		"a short deadline":       {true, func(w *world) stream.PlaceServer { return w.broker }, 7 * time.Second, 0},
		"an older plan":          {false, func(w *world) stream.PlaceServer { return w.broker }, time.Minute, 0},
		"nobody to bring them":   {true, func(w *world) stream.PlaceServer { return nil }, time.Minute, 0},
		"a broker that does not": {true, func(w *world) stream.PlaceServer { return refuser{} }, time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, over := context.WithCancel(t.Context())
				defer func() { over(); time.Sleep(time.Second) }() // who waits sees it
				w := newWorld(t, plan{cohort: 3, deadline: c.deadline})
				if c.plan {
					w = withPlaces(t, plan{cohort: 3, deadline: c.deadline})
				}
				w.announce(ctx)
				config := w.config()
				config.PlaceServer = c.server(w)
				s, stop := w.start(config)
				w.invited(ctx, 1, 0)
				if got := w.openOf(1, 1).PlacesMs; got != c.want {
					t.Errorf("places_ms %d, want %d", got, c.want)
				}
				synctest.Wait()
				if refused, want := s.Status().Places.Refused, c.plan && c.want == 0 && c.deadline == time.Minute; refused != want {
					t.Errorf("the status says that requests do not come: %t, want %t", refused, want)
				}
				_ = stop()
			})
		})
	}
}

// Only the process that holds the lease and collects replies. For an attempt that is over it replies so; for one that
// nobody has opened, it does not reply.
func TestTheStageThatCollectsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, over := context.WithCancel(t.Context())
		defer func() { over(); time.Sleep(time.Second) }() // who waits sees it
		w := withPlaces(t, plan{rounds: 2, cohort: 3, deadline: time.Minute})
		go w.learn(ctx)
		_, stop := w.start(w.serving())
		in := w.invited(ctx, 1, 0)
		_, standby := w.start(w.serving())
		if a, ok := w.asks(1, 1, 1, 1); !ok || a.Verdict != stream.PlaceGranted || a.Time != 3*time.Second {
			t.Fatalf("%+v, %t: want a place", a, ok)
		}
		for _, of := range []place{{1, 2}, {2, 1}} {
			if a, ok := w.asks(of.round, of.attempt, 2, 1); ok {
				t.Errorf("%+v in %v, which is not open", a, of)
			}
		}
		w.answer(ctx, in, w.users(1))
		w.invited(ctx, 2, 0)
		if a, _ := w.asks(1, 1, 3, 1); a.Verdict != stream.PlaceOver {
			t.Errorf("%+v in the round before: want that it is over", a)
		}
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(time.Minute) // the standby takes the round over
		if a, ok := w.asks(2, 1, 4, 1); !ok || a.Verdict != stream.PlaceOver {
			t.Errorf("%+v, %t of the attempt of the process that is gone: want that it is over", a, ok)
		}
		if o := w.openOf(2, 2); o == nil || o.PlacesMs == 0 {
			t.Error("the next attempt has no places")
		}
		if a, _ := w.asks(2, 2, 5, 3); a.Users != 1 {
			t.Errorf("%+v: the table died with its attempt, so that places are free", a)
		}
		_ = standby()
		if a, ok := w.asks(2, 2, 6, 1); ok {
			t.Errorf("%+v of a process that ended", a)
		}
	})
}

// A process that slept replies to nobody before its lease is renewed.
func TestASleeperGivesNoPlaces(t *testing.T) {
	p := &places{table: newTable(10, 5), of: place{1, 1}}
	now := time.Now()
	for _, c := range []struct {
		name        string
		until, wall time.Time
		answers     bool
	}{
		{"it has the lease", now.Add(time.Minute), now.Round(0).Add(time.Minute), true},
		{"its lease is over", now, now.Round(0).Add(time.Minute), false},
		{"its machine slept", now.Add(time.Minute), now.Round(0), false},
		{"it never had it", time.Time{}, time.Time{}, false},
	} {
		p.holds(c.until, c.wall)
		if got := p.answer("panlearn.churn.place.1.1", asking(1, 1).Record()); (got != nil) != c.answers {
			t.Errorf("%s: %x, want an answer: %t", c.name, got, c.answers)
		}
	}
	p.holds(now.Add(time.Minute), now.Round(0).Add(time.Minute))
	for _, subject := range []string{"panlearn.churn.report.1.1", "panlearn.churn.place.1", "x"} {
		if p.answer(subject, asking(1, 1).Record()) != nil {
			t.Errorf("an answer on %q", subject)
		}
	}
	if p.answer("panlearn.churn.place.1.1", []byte("noise")) != nil {
		t.Error("an answer to noise")
	}
}

// Past the deadline the minimum is enough when no place lives: the stage waits for users with places.
func TestARoundWaitsForItsPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, over := context.WithCancel(t.Context())
		defer func() { over(); time.Sleep(time.Second) }() // who waits sees it
		w := withPlaces(t, plan{cohort: 10, minimum: 2, deadline: 8 * time.Minute})
		w.announce(ctx)
		_, stop := w.start(w.serving())
		in := w.invited(ctx, 1, 0)
		begun := time.Now()
		w.answer(ctx, in, w.users(1)[:2])
		time.Sleep(8*time.Minute - time.Second)
		if a, ok := w.asks(1, 1, 1, 1); !ok || a.Users != 1 {
			t.Fatalf("%+v, %t: want a place a second before the deadline", a, ok)
		}
		time.Sleep(time.Second)
		if a, _ := w.asks(1, 1, 2, 1); a.Verdict != stream.PlaceOver {
			t.Errorf("%+v at the deadline, with the minimum there: want that it is over", a)
		}
		time.Sleep(12900 * time.Millisecond) // of the 14 s that are left of the place
		if b, _ := w.batch(1); b != nil {
			t.Errorf("released %v after its Open, while a place lives", time.Since(begun))
		}
		time.Sleep(2 * time.Second)
		if b, _ := w.batch(1); b == nil || b.Users != 2 {
			t.Errorf("%v: want the round released with 2 users when the place has ended", b)
		}
		_ = stop()
	})
}

// In a second attempt of a trust without floors those who were charged before are served first, for one lease. Under
// floors nobody is: their users do not come again.
func TestASecondAttemptServesTheChargedFirst(t *testing.T) {
	floors := func(trust wire.Trust) bool {
		w := withPlaces(t, plan{cohort: 3, deadline: time.Minute, trust: trust})
		a := w.begin(w.serving())
		defer a.erase()
		a.places.serves, a.number = true, 2
		if lease := a.takePlaces(); lease != 3*time.Second {
			t.Fatalf("a lease of %v", lease)
		}
		return a.table.reserved.Equal(a.term.started.Add(3 * time.Second))
	}
	if !floors(wire.Trust_TRUST_SHUFFLE) || floors(wire.Trust_TRUST_PAN) || floors(wire.Trust_TRUST_SHUFFLE_PAN) {
		t.Error("want the first lease reserved where users come again, and there alone")
	}
}

// Requests come on other goroutines than Run's.
func TestPlacesFromManyGoroutines(t *testing.T) {
	p := &places{table: newTable(1000, 5), of: place{1, 1}, serves: true}
	table := p.table
	table.started, table.deadline = time.Now(), time.Now().Add(time.Hour)
	p.holds(time.Now().Add(time.Hour), time.Now().Round(0).Add(time.Hour))
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 200 {
				p.answer("panlearn.churn.place.1.1", asking(uint64(1000*i+n), 1).Record())
			}
		})
	}
	group.Go(func() {
		for range 200 {
			p.opened(table, 1)
			p.waits(table, 3, 100, time.Now())
			p.lives(table, time.Now())
			p.flood(table, time.Now(), time.Minute)
			p.status(time.Now())
		}
	})
	group.Wait()
	p.end(table, stream.AskRamp(1))
	if got := p.status(time.Now()); got.Granted > 1000 || got.Granted == 0 || got.Lease != 0 {
		t.Errorf("%+v: want at most 1000 places, of an attempt that is over", got)
	}
}
