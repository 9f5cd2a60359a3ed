package natsjs

import (
	"log/slog"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// An absence logs that a broker is away: a line when it goes, one every stream.TellEvery while it is away, one when it
// is back. The calls that fail meanwhile return stream.ErrDisconnected, and their callers log nothing.
type absence struct {
	log *slog.Logger

	mu          sync.Mutex
	since, told time.Time // since: zero while it is there
}

func (a *absence) gone(now time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil { // our own Close
		return
	}
	a.since, a.told = now, now
	a.log.Warn("disconnected from the broker, trying to connect again", "error", err)
}

// lasts is called with each failed try to connect, and with each error that the broker returned to one. It reports
// whether the error belongs to an absence.
func (a *absence) lasts(now time.Time, err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		return false
	}
	if now.Sub(a.told) >= stream.TellEvery {
		a.told = now
		a.log.Warn("still no connection to the broker", "for", now.Sub(a.since).Round(time.Second), "error", err)
	}
	return true
}

func (a *absence) back(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		return
	}
	a.log.Info("connected to the broker again", "after", now.Sub(a.since).Round(time.Millisecond))
	a.since = time.Time{}
}
