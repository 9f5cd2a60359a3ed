package stage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
)

// TestTroubleIsOfOneKind: the broker swallows all writes of one stream and answers every read, as nats-server on a
// full disk. Log and status name it all the while, whatever else works, and are clear when that write worked.
func TestTroubleIsOfOneKind(t *testing.T) {
	for _, c := range []struct {
		stream stream.Stream
		op     memory.Op
		call   string
	}{{stream.Leases, memory.Swap, "swap LEASES"}, {stream.Attempts, memory.Put, "put ATTEMPTS"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 4, rounds: 1})
			var log bytes.Buffer
			config := w.config()
			config.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s, stop := w.start(config)
			time.Sleep(5 * time.Second) // it has the lease, and looks for the task
			begun := time.Now()
			w.broker.Inject(func(op memory.Op, subject string) memory.Fault {
				if _, of, err := stream.StreamOf(subject); err == nil && of == c.stream && op == c.op {
					return memory.Lost
				}
				return memory.None
			})
			w.announce(t.Context())
			for range 60 {
				time.Sleep(time.Second)
				if now := s.Status(); time.Since(begun) > 5*time.Second && (now.Trouble == "" || now.Troubled.Before(begun) ||
					now.Troubled.After(begun.Add(4*time.Second))) {
					t.Fatalf("%s, after %v: %q since %v", c.call, time.Since(begun), now.Trouble, now.Troubled)
				}
			}
			synctest.Wait()
			if n := strings.Count(log.String(), "again\" call=\""+c.call+"\""); n < 2 ||
				strings.Contains(log.String(), "answers again") {
				t.Errorf("%s: %d warnings in a minute; %s", c.call, n, log.String())
			}
			w.broker.Inject(nil)
			w.answer(t.Context(), w.invited(t.Context(), 1, 0), w.users(1))
			time.Sleep(10 * time.Second)
			if now := s.Status(); now.Trouble != "" || !now.Troubled.IsZero() {
				t.Errorf("%s works: %q since %v", c.call, now.Trouble, now.Troubled)
			}
			if b, _ := w.batch(1); b == nil || b.Users != 4 {
				t.Errorf("%s works: batch %v", c.call, b)
			}
			_ = stop()
			if n := strings.Count(log.String(), "answers again"); n != 1 {
				t.Errorf("%s works: told %d times", c.call, n)
			}
		})
	}
}

// A deaf queue hands out nothing for a while.
type deaf struct {
	stream.ReportReader
	now atomic.Bool
}

func (d *deaf) Fetch(ctx context.Context, n int, wait time.Duration) ([]stream.Delivery, error) {
	if d.now.Load() {
		return nil, errors.New("no word of the request")
	}
	return d.ReportReader.Fetch(ctx, n, wait)
}

// TestTroubleEndsWithItsPhase: reports cannot be fetched while a round closes at its deadline, with the minimum that
// is there. Nothing is fetched until the next round opens, so nothing is said to fail.
func TestTroubleEndsWithItsPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 4, minimum: 2, deadline: time.Minute, rounds: 2})
		w.announce(t.Context())
		c := w.config()
		queue := &deaf{ReportReader: c.Reports}
		c.Reports = queue
		s, stop := w.start(c)
		w.answer(t.Context(), w.invited(t.Context(), 1, 0), w.users(1)[:2])
		time.Sleep(30 * time.Second)
		queue.now.Store(true)
		time.Sleep(20 * time.Second)
		if now := s.Status(); now.Trouble == "" {
			t.Errorf("reports cannot be fetched: %+v", now)
		}
		time.Sleep(time.Minute)
		if b, _ := w.batch(1); b == nil || b.Users != 2 {
			t.Errorf("batch %v", b)
		}
		if now := s.Status(); now.Phase != "waiting for round 2" || now.Trouble != "" || !now.Troubled.IsZero() {
			t.Errorf("%s: %q since %v", now.Phase, now.Trouble, now.Troubled)
		}
		_ = stop()
	})
}
