package device_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A refuser stores every report, and replies to each publish that it did not.
type refuser struct{ stream.Transport }

func (l refuser) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := l.Transport.Publish(ctx, reports)
	for i := range acks {
		acks[i] = stream.Ack{Status: stream.Refused}
	}
	return acks, err
}

// Where a publish is a release, a broker that denies what it stored gets one draw of an event, or one for each round
// of its interactive phase, in whatever number of rounds and lives of the device, and under a policy that would pay
// for many more. Without, it gets several.
func TestFinalReportsAreDrawnOnce(t *testing.T) {
	drawn := map[bool]int{}
	for _, c := range []struct {
		final, interactive bool
		broker             func(stream.Transport, uint64) stream.Transport
	}{
		{true, false, func(w stream.Transport, _ uint64) stream.Transport { return falsifier{w} }},
		{true, false, func(w stream.Transport, _ uint64) stream.Transport { return refuser{w} }},
		{true, false, moodyFrom},
		{true, true, func(w stream.Transport, _ uint64) stream.Transport { return falsifier{w} }},
		{true, true, moodyFrom},
		{false, false, func(w stream.Transport, _ uint64) stream.Transport { return falsifier{w} }},
		{false, false, func(w stream.Transport, _ uint64) stream.Transport { return refuser{w} }},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 8, cohort: 8, deadline: time.Minute})
			most := 1
			if c.interactive {
				w.replan(asked(8, 3, 0), once(8, 5))
				most = 3
			}
			s, book := newSpy(t, participation.NewMemoryStore()), memory.NewLedger()
			w.play(t.Context(), func(ctx context.Context) {
				for life := range uint64(3) {
					cfg := w.config(s)
					cfg.Policy.MaxEpsilon, cfg.Ledger, cfg.Transport = 60, book, c.broker(cfg.Transport, life)
					short, stop := context.WithTimeout(ctx, 5*time.Minute)
					dev := w.client(cfg)
					device.OnAgree(dev, func(a *consent.Agreement) { a.Final = c.final })
					sum, err := dev.Run(short, rows(8, true))
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					if c.final && sum.Uncounted != sum.Unused {
						t.Errorf("%+v: events that were published are uncounted", sum)
					}
					stop()
				}
			})
			for _, rounds := range s.draws {
				drawn[c.final] = max(drawn[c.final], len(rounds))
				if c.final && len(rounds) > most {
					t.Errorf("interactive %t: an event has %d draws, want at most %d", c.interactive, len(rounds), most)
				}
			}
			if len(s.draws) == 0 {
				t.Error("nobody was drawn")
			}
		})
	}
	if drawn[false] < 2 || drawn[true] < 3 {
		t.Errorf("%v draws of an event: the test shows nothing", drawn)
	}
}

func moodyFrom(w stream.Transport, life uint64) stream.Transport {
	return moody{w, new(sync.Mutex), rand.New(rand.NewPCG(life, 7))}
}
