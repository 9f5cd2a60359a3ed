package procs

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// grace is the time before go test's own time-out at which a test gives up: the time-out prints stacks, and
// not the output of the processes.
const grace = time.Minute

// Within returns a test's context that ends after a time, and a minute before go test would end all tests of
// the package. So a deployment that waits for ever fails its own test, which shows the ends of its processes'
// logs.
func Within(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	end := time.Now().Add(limit)
	if timed, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if last, ok := timed.Deadline(); ok && last.Add(-grace).Before(end) {
			end = last.Add(-grace)
		}
	}
	ctx, cancel := context.WithDeadlineCause(context.Background(), end,
		fmt.Errorf("the test gives up, %v after it began", time.Until(end).Round(time.Second)))
	t.Cleanup(cancel)
	return ctx
}
