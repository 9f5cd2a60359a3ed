package device_test

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/retention"
	"github.com/panlearn/panlearn/stream/wire"
)

// years are rounds that are all announced, and opened, after the first of them.
const years = stream.KeptRounds + 150

// pass has rounds come and go.
func (w *world) pass(ctx context.Context, from, to stream.Round) {
	for r := from; r <= to; r++ {
		w.open(ctx, r, 1, w.announce(ctx, r))
	}
}

// retain removes what is further behind than the constant, as if it were old.
func (w *world) retain(ctx context.Context) {
	for r := stream.Round(1); r < years; r++ { // the sequence shows the age of a round
		_, err := w.broker.PutOnce(ctx, w.name.Batch(r), []byte("x"))
		must(w.t, err)
	}
	time.Sleep(time.Hour)
	w.open(ctx, years, 1, w.announce(ctx, years))
	_, err := retention.Sweep(ctx, w.broker, w.name, time.Minute)
	must(w.t, err)
	if _, err := w.broker.Get(ctx, w.name.Round(years-stream.KeptRounds-1)); err == nil {
		w.t.Fatal("nothing was removed")
	}
}

// TestRoundIsGone: a device that took part in a round whose records were removed settles it as unknown, for good, and
// sends nothing to it, whatever is on its subjects now, also the Close, if a sweep was cut short between the Open and
// it; its next event joins the newest round.
func TestRoundIsGone(t *testing.T) {
	for name, stands := range map[string]string{"gone": "", "and put again": "round", "but for its Close": "close"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
				defer cancel()
				w := newWorld(t, plan{rounds: uint64(years), cohort: 4})
				store := participation.NewMemoryStore()
				w.pass(ctx, 1, 1)
				before := w.client(w.config(store))
				soonest, stop := context.WithTimeout(ctx, time.Minute)
				o, err := before.Publish(soonest, participation.EventKey("a"), example(1))
				stop()
				if err == nil || o.State != participation.Unknown || w.reports(1, 1) != 1 {
					t.Fatalf("%+v, %v, %d reports: want one that waits for its outcome", o, err, w.reports(1, 1))
				}
				must(t, before.Close())
				w.pass(ctx, 2, years-1)
				w.retain(ctx)
				switch stands {
				case "close":
					w.close(ctx, participation.Closed{Round: 1, Attempt: participation.Attempt{Number: 1}, Manifest: manifestOf(t,
						w.round(1, 1)), Cutoff: 1})
				case "round": // put by a learner, and by a stage with a key, of the time of the round
					w.put(ctx, w.name.Round(1), w.learner, w.round(1, 1))
					w.open(ctx, 1, 7, manifestOf(t, w.round(1, 1)))
				}
				after := w.client(w.config(store))
				short, stop := context.WithTimeout(ctx, 10*time.Minute)
				defer stop()
				o, err = after.Publish(short, participation.EventKey("a"), example(1))
				if err != nil || o.State != participation.Unknown || o.Open {
					t.Errorf("%+v, %v: want unknown, and settled", o, err)
				}
				if n := w.reports(1, 7); n != 0 {
					t.Errorf("%d reports to a round that is gone", n)
				}
				go func() { _, _ = after.Publish(ctx, participation.EventKey("b"), example(1)) }()
				time.Sleep(time.Minute)
				if n := w.reports(years, 1); n != 1 {
					t.Errorf("%d reports to the newest round, want that of another event", n)
				}
				must(t, after.Close())
				record, err := store.Read([]participation.Key{participation.EventKey("a")})
				must(t, err)
				if record[0].State != participation.Unknown {
					t.Errorf("stored: %v", record[0].State)
				}
			})
		})
	}
}

// A seeker counts the looks over all rounds.
type seeker struct {
	stream.Transport
	reads, looks atomic.Int64
}

func (s *seeker) Get(ctx context.Context, subject string) (stream.Message, error) {
	s.reads.Add(1)
	return s.Transport.Get(ctx, subject)
}

func (s *seeker) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	if s.reads.Add(1); strings.HasSuffix(pattern, ".round.*") {
		s.looks.Add(1)
	}
	return s.Transport.Latest(ctx, pattern)
}

// TestNewestRoundByHint: a device that knows no round finds the newest, whatever the lease says; where it says
// something true, not too old, no look over all rounds is taken.
func TestNewestRoundByHint(t *testing.T) {
	const newest = 300
	for name, c := range map[string]struct {
		lease []byte
		looks int64
	}{
		"the newest":           {stream.Lease{Newest: newest}.Record(), 0},
		"a little older":       {stream.Lease{Newest: newest - 3}.Record(), 0},
		"much older":           {stream.Lease{Newest: 1}.Record(), 0},
		"none":                 {stream.Lease{}.Record(), 1},
		"one that never was":   {stream.Lease{Newest: newest + 1}.Record(), 1},
		"the largest there is": {stream.Lease{Newest: math.MaxUint64}.Record(), 1},
		"garbage":              {[]byte("garbage"), 1},
		"no lease":             {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				w := newWorld(t, plan{rounds: newest, cohort: 4})
				w.pass(ctx, 1, newest)
				if c.lease != nil {
					_, err := w.broker.Swap(ctx, w.name.Lease(), 0, c.lease)
					must(t, err)
				}
				s := &seeker{Transport: w.broker}
				config := w.config(participation.NewMemoryStore())
				config.Transport = s
				cl := w.client(config)
				_, _ = cl.Publish(ctx, participation.EventKey("a"), example(1))
				must(t, cl.Close())
				if s.looks.Load() != c.looks || s.reads.Load() > 80 || // of 300 rounds; some are of the looks of a minute
					w.reports(newest, 1) != 1 {
					t.Errorf("%d looks over all rounds, want %d; %d reads, %d reports to the newest round",
						s.looks.Load(), c.looks, s.reads.Load(), w.reports(newest, 1))
				}
			})
		})
	}
}

// TestAnOldRoundPutAgain: a device that knows no round is shown an old one as the newest, put again where it was
// removed, as another was before it, and the lease says nothing, or is lost. It sends to the newest: the old one is
// opened by nobody, and its numbers lead nowhere.
func TestAnOldRoundPutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
		defer cancel()
		w := newWorld(t, plan{rounds: uint64(years), cohort: 4})
		w.pass(ctx, 1, years-1)
		w.retain(ctx)
		w.put(ctx, w.name.Round(6), w.learner, w.round(6, 6))
		w.put(ctx, w.name.Round(5), w.learner, w.round(5, 5))
		if m, err := w.broker.Latest(ctx, w.name.Rounds()); err != nil || m.Subject != w.name.Round(5) {
			t.Fatalf("the broker shows %v, %v", m.Subject, err)
		}
		soonest, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		cl := w.client(w.config(participation.NewMemoryStore()))
		_, _ = cl.Publish(soonest, participation.EventKey("a"), example(1))
		must(t, cl.Close())
		if n := w.reports(years, 1); n != 1 {
			t.Errorf("%d reports to the newest round, want 1", n)
		}
	})
}

// TestAwayForLong: a device that runs, and was deaf until the round that it knows was removed, finds the newest.
func TestAwayForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: uint64(years), cohort: 4})
		w.task.Plan.RetentionMs = uint64(time.Hour.Milliseconds())
		w.hash = taskHash(t, w.task)
		w.pass(ctx, 1, 1)
		l := &listener{deaf: true}
		cl, publish := w.listens(ctx, w.config(participation.NewMemoryStore()), l)
		first := publish()
		time.Sleep(time.Minute)
		w.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: manifestOf(t, w.round(1, 1)), Cutoff: 1})
		if o := soon(t, first); o.State != participation.Counted {
			t.Fatalf("%+v", o)
		}
		w.pass(ctx, 2, years-1)
		w.retain(ctx)
		go func() { _, _ = cl.Publish(ctx, participation.EventKey("b"), example(1)) }()
		time.Sleep(10 * time.Minute)
		if n := w.reports(years, 1); n != 1 {
			t.Errorf("%d reports to the newest round, want one", n)
		}
		must(t, cl.Close())
	})
}

func manifestOf(t *testing.T, m *wire.Round) stream.Hash {
	t.Helper()
	hash, err := manifest.RoundHash(m)
	must(t, err)
	return hash
}
