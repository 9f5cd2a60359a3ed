package stage

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestTroubleIsToldNowAndThen: of a broker that does not answer for 65 s a stage that looks for its task says so three times,
// and once that it answers again.
func TestTroubleIsToldNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 4})
		var log bytes.Buffer
		c := w.config()
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		_, stop := w.start(c)
		time.Sleep(10 * time.Second)
		w.broker.Disconnect()
		time.Sleep(65 * time.Second)
		w.broker.Connect()
		time.Sleep(10 * time.Second)
		_ = stop()
		for want, n := range map[string]int{"a call of the broker failed": 3, "the broker answers again": 1} {
			if got := strings.Count(log.String(), want); got != n {
				t.Errorf("%d times %q, want %d:\n%s", got, want, n, log.String())
			}
		}
	})
}
