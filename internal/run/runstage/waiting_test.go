package runstage

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/shuffle/stage"
)

// An operator reads in the log how full a round is that waits, once for each number.
func TestLogWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var mu sync.Mutex
		status := stage.Status{Task: "churn", Round: 1, Attempt: 2, Users: 812, Cohort: 1000}
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			logWaiting(ctx, slog.New(slog.NewTextHandler(&out, nil)), func() stage.Status {
				mu.Lock()
				defer mu.Unlock()
				return status
			}, time.Minute)
		})
		set := func(s stage.Status) {
			mu.Lock()
			status = s
			mu.Unlock()
			time.Sleep(5 * time.Minute)
		}
		set(status)
		set(stage.Status{Task: "churn", Phase: "waiting for round 2"})
		set(stage.Status{Task: "churn", Round: 2, Attempt: 1, Users: 3, Cohort: 1000})
		stop()
		group.Wait()
		if n := strings.Count(out.String(), "waiting: 812 of 1000"); n != 1 {
			t.Errorf("logged %d times, want once: %s", n, out.String())
		}
		if !strings.Contains(out.String(), "waiting: 3 of 1000") || strings.Count(out.String(), "\n") != 2 {
			t.Errorf("logged %s", out.String())
		}
	})
}
