package device_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// TestBrokersTroubleIsNamed: a broker that replies to no publish, and one that is full, are named in the log and in the
// progress as long as that lasts, with the refused publishes counted; only a report that was taken clears the fault.
func TestBrokersTroubleIsNamed(t *testing.T) {
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			config := full(newWorld(t, plan{rounds: 1, cohort: 10}), 5)
			if silent {
				config = memory.Config{}
			}
			w := newWorld(t, plan{rounds: 1, cohort: 10, broker: config})
			if silent {
				w.broker.Inject(func(op memory.Op, _ string) memory.Fault {
					if op == memory.Publish {
						return memory.Lost
					}
					return memory.None
				})
			}
			var mu sync.Mutex
			var now device.Progress
			var log logbook
			cfg := w.config(participation.NewMemoryStore())
			cfg.Logger = log.logger()
			cfg.Progress = func(p device.Progress) {
				mu.Lock()
				defer mu.Unlock()
				now = p
			}
			look := func() device.Progress {
				mu.Lock()
				defer mu.Unlock()
				return now
			}
			again := func() int { return log.count("works again") + log.count("takes reports again") }
			begun := time.Now()
			cl := w.client(cfg)
			outcomes := publishAll(ctx, cl, 10)
			hash := w.announce(ctx, 1)
			w.open(ctx, 1, 1, hash)
			time.Sleep(4 * time.Minute)
			want, warning := "the broker refuses reports: the stream of reports is full", `cause="the stream of reports is full"`
			if silent {
				want, warning = "the broker does not answer reports: no reason is given",
					"the broker does not answer reports; trying again"
			}
			p := look()
			if p.Trouble != want || p.Troubled.Before(begun) || p.Troubled.After(begun.Add(time.Minute)) ||
				(p.RefusedPublishes > 0) == silent {
				t.Errorf("silent %t: %+v, want %q", silent, p, want)
			}
			// Once in 30 s at most. Tries are up to 45 s apart, so that a warning may come as late as 75 s after the
			// one before: the first, and three more.
			if n := log.count(warning); n < 4 || n > 9 {
				t.Errorf("silent %t: %d warnings in four minutes", silent, n)
			}
			if again() > 0 {
				t.Errorf("silent %t: the log says that it works again", silent)
			}
			w.broker.Inject(nil)
			r, err := w.broker.Reader(w.name)
			must(t, err)
			for range 120 {
				got, err := r.Fetch(ctx, 100, time.Second)
				must(t, err)
				for _, d := range got {
					must(t, d.Ack())
				}
			}
			if p := look(); p.Trouble != "" || !p.Troubled.IsZero() || again() != 1 {
				t.Errorf("silent %t: %+v when all is taken", silent, p)
			}
			w.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: hash, Cutoff: 1 << 40})
			w.end(ctx, 1)
			if got := fmt.Sprint(outcomes()); !strings.Contains(got, "counted:10") {
				t.Errorf("silent %t: %v", silent, got)
			}
			must(t, cl.Close())
		})
	}
}
