package stage

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/memory"
)

// TestTroubleIsOfOneKind: the broker swallows all writes of one stream and answers every read, as nats-server on a full disk. Log and
// status name it all the while, whatever else works, and are clear when that write worked.
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
				if now := s.Status(); time.Since(begun) > 5*time.Second && (now.Trouble == "" || now.Troubled.Before(begun) || now.Troubled.After(begun.Add(4*time.Second))) {
					t.Fatalf("%s, after %v: %q since %v", c.call, time.Since(begun), now.Trouble, now.Troubled)
				}
			}
			synctest.Wait()
			if n := strings.Count(log.String(), "again\" call=\""+c.call+"\""); n < 2 || strings.Contains(log.String(), "answers again") {
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
