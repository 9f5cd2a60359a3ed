package device_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// full returns a broker whose queue of reports takes so many of a world, which are not sealed.
func full(w *world, reports int) memory.Config {
	return memory.Config{MaxReportBytes: int64(reports * (w.params.ReportBytes() + 100))}
}

// publishAll publishes n events, and returns their outcomes.
func publishAll(ctx context.Context, cl *device.Device, n int) func() map[participation.State]int {
	var mu sync.Mutex
	var group sync.WaitGroup
	out := map[participation.State]int{}
	for i := range n {
		group.Go(func() {
			got, _ := cl.Publish(ctx, participation.EventKey(fmt.Sprint(i)), example(1))
			mu.Lock()
			defer mu.Unlock()
			out[got.State]++
		})
	}
	return func() map[participation.State]int { group.Wait(); return out }
}

// A stream is full and 400 users wait. Few of them are charged, the others join nothing while the broker refuses;
// those whose reports were refused are tried again, ever more seldom, and none is in doubt for good: they are in the
// batch when there is room, and else uncounted.
func TestFullStream(t *testing.T) {
	for _, room := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			w := newWorld(t, plan{rounds: 2, cohort: 400, minimum: 10, broker: full(newWorld(t, plan{rounds: 1, cohort: 400}),
				50)})
			var log bytes.Buffer
			s, counter := newSpy(t, participation.NewMemoryStore()), &sends{Transport: w.broker}
			cfg := w.config(s)
			cfg.MaxInFlight, cfg.Transport, cfg.Logger = 64, counter, slog.New(slog.NewTextHandler(&log, nil))
			cl := w.client(cfg)
			outcomes := publishAll(ctx, cl, 400)
			hash := w.announce(ctx, 1)
			w.open(ctx, 1, 1, hash)
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			taken := w.reports(1, 1)
			if charged := len(s.draws); taken < 10 || taken > 60 || charged > taken+128 {
				t.Fatalf("%d reports were taken and %d users charged, who wait behind a full stream", taken, charged)
			}
			// Waits double to 30 s and are jittered by half: 6 to 26 tries in five minutes.
			if n := int(counter.messages.Load()) - taken; n < 6 || n > 64+26*16 {
				t.Errorf("%d messages were refused in five minutes", n)
			}
			if n := strings.Count(log.String(), "the broker refuses reports"); n < 4 || n > 11 { // once in 30 s
				t.Errorf("the log tells %d times in five minutes that the broker refuses", n)
			}
			charged := len(s.draws)
			if room {
				r, err := w.broker.Reader(w.name)
				must(t, err)
				for range 600 {
					got, err := r.Fetch(ctx, 100, time.Second)
					must(t, err)
					for _, d := range got {
						must(t, d.Ack())
					}
				}
				if n := w.reports(1, 1); n != 400 {
					t.Errorf("%d reports after there was room, want all 400", n)
				}
			}
			w.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: hash, Cutoff: 1 << 40})
			time.Sleep(time.Minute)
			w.end(ctx, 1)
			got := outcomes()
			must(t, cl.Close())
			s.audit(w)
			want := map[participation.State]int{participation.Counted: taken, participation.Uncounted: 400 - taken}
			if room {
				want = map[participation.State]int{participation.Counted: 400}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("room %t, %d charged: %v, want %v", room, charged, got, want)
			}
			if room != strings.Contains(log.String(), "the broker takes reports again") {
				t.Error("the log does not tell whether it takes them again")
			}
		})
	}
}

// sends counts messages.
type sends struct {
	stream.Transport
	messages atomic.Int64
}

func (s *sends) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	s.messages.Add(int64(len(reports)))
	return s.Transport.Publish(ctx, reports)
}

// A broker that says that it refused what it stored gets no more than one that says any other lie.
func TestFalseRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 3, cohort: 8, deadline: time.Minute, tight: true})
		s := newSpy(t, participation.NewMemoryStore())
		cfg := w.config(s)
		cfg.Transport = denier{cfg.Transport}
		w.play(t.Context(), func(ctx context.Context) {
			sum, err := w.client(cfg).Run(ctx, rows(8, false))
			must(t, err)
			if sum.Uncounted != 8 || sum.NotAgain != 8 || sum.ChargedUncounted != 8 {
				t.Errorf("%+v, want 8 that believe to be in no batch", sum)
			}
		})
		for _, rounds := range s.batches(w) {
			if len(rounds) != 1 {
				t.Errorf("an event is in the batches of rounds %v", rounds)
			}
		}
	})
}

type denier struct{ stream.Transport }

func (d denier) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := d.Transport.Publish(ctx, reports)
	for i := range acks {
		acks[i] = stream.Ack{Status: stream.Refused}
	}
	return acks, err
}

// TestNobodyLeavesInSilence checks that users get an outcome if their round was opened so often that they may send no
// more reports, and that their places go to others.
func TestNobodyLeavesInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 1, cohort: 2})
		s := newSpy(t, participation.NewMemoryStore())
		var log logbook
		cfg := w.config(s)
		most := uint32(3)
		cfg.Policy.MaxReports, cfg.Logger = &most, log.logger()
		cl := w.client(cfg)
		outcomes := publishAll(ctx, cl, 2)
		hash := w.announce(ctx, 1)
		for a := stream.Attempt(1); a <= 4; a++ {
			w.open(ctx, 1, a, hash)
			time.Sleep(10 * time.Second)
		}
		if got := outcomes(); got[participation.Unknown] != 2 { // while the round is open
			t.Errorf("%v, want both unknown", got)
		}
		if n := log.count("users=2 max_reports=3"); n != 1 {
			t.Errorf("the log tells %d times", n)
		}
		third := make(chan device.Outcome, 1)
		go func() {
			got, _ := cl.Publish(ctx, participation.EventKey("third"), example(1))
			third <- got
		}()
		time.Sleep(10 * time.Second)
		if n := w.reports(1, 4); n != 1 {
			t.Errorf("%d reports for the newest attempt, want that of a user who came later", n)
		}
		w.close(ctx, participation.Closed{Round: 1, Attempt: nth(4), Manifest: hash, Cutoff: 1 << 40})
		if got := <-third; got.State != participation.Counted {
			t.Errorf("%v, want counted", got)
		}
		must(t, cl.Close())
		s.audit(w)
	})
}
