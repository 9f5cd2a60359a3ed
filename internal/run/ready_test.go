package run_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/run"
)

// TestReady: not without a connection, and not while calls fail for longer than a lease, with the cause.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connected, cause, since := true, "", time.Time{}
		check := run.Ready(func() bool { return connected }, time.Minute, func() (string, time.Time) { return cause, since })
		want := func(words ...string) {
			t.Helper()
			err := check()
			if len(words) == 0 && err != nil {
				t.Error(err)
			}
			for _, w := range words {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%v, want %q", err, w)
				}
			}
		}
		want()
		cause, since = "is its disk full?", time.Now()
		want()
		time.Sleep(time.Minute)
		want()
		time.Sleep(5 * time.Second)
		want("1m5s", "is its disk full?")
		connected = false
		want("no connection")
		connected, cause = true, ""
		want()
	})
}
