package natsjs

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestAbsence: a broker that is away for 70 s, with two tries a second, is five lines: gone, still away twice, back;
// and an error of one that is there is not of its absence.
func TestAbsence(t *testing.T) {
	var log bytes.Buffer
	a := absence{log: slog.New(slog.NewTextHandler(&log, nil))}
	now, refused := time.Unix(1, 0), errors.New("connection refused")
	if a.lasts(now, refused) {
		t.Error("an absence before the broker is gone")
	}
	a.gone(now, errors.New("EOF"))
	for range 140 {
		now = now.Add(time.Second / 2)
		if !a.lasts(now, refused) {
			t.Fatal("no absence while the broker is away")
		}
	}
	a.back(now)
	if a.lasts(now, refused) {
		t.Error("an absence after the broker is back")
	}
	for want, n := range map[string]int{"disconnected from the broker": 1, "still no connection to the broker": 2,
		"for=30s": 1,
		"connected to the broker again\" after=1m10s": 1, "\n": 4} {
		if got := strings.Count(log.String(), want); got != n {
			t.Errorf("%d times %q, want %d:\n%s", got, want, n, log.String())
		}
	}
}
