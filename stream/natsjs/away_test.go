package natsjs

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// TestAbsence: a broker that is away for 70 s, with two tries a second, is five lines: gone, still away twice, back; and an error
// of one that is there is not of its absence.
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
	for want, n := range map[string]int{"disconnected from the broker": 1, "still no connection to the broker": 2, "for=30s": 1,
		"connected to the broker again\" after=1m10s": 1, "\n": 4} {
		if got := strings.Count(log.String(), want); got != n {
			t.Errorf("%d times %q, want %d:\n%s", got, want, n, log.String())
		}
	}
}

// TestCallsWithoutABroker: every call that meets a lost connection says so, and none that the library's buffer is full.
func TestCallsWithoutABroker(t *testing.T) {
	e := start(t, EmbeddedConfig{Listen: "127.0.0.1:0"})
	c := dial(t, e, ConnectConfig{URL: e.URL()})
	provision(t, c, task, Options{})
	r, err := c.Reader(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	session := c.session
	c.mu.Unlock()
	e.Shutdown()
	<-session.Done()
	_, got := c.Get(t.Context(), task.Task())
	_, swapped := c.Swap(t.Context(), task.Lease(), 0, []byte("x"))
	_, fetched := r.Fetch(t.Context(), 1, 0)
	_, published := c.Publish(t.Context(), []stream.Outgoing{{Subject: task.Report(1, 1), Data: []byte("x")}})
	for call, err := range map[string]error{"get": got, "swap": swapped, "fetch": fetched, "publish": published,
		"purge": r.Purge(t.Context(), task.Report(1, 1))} {
		if !errors.Is(err, stream.ErrDisconnected) || strings.Contains(err.Error(), "buffer") {
			t.Errorf("%s: %v", call, err)
		}
	}
}
