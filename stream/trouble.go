package stream

import (
	"errors"
	"log/slog"
	"time"
)

// ErrDisconnected means that there is no connection to the broker now. The holder of the connection logs when it is
// lost, when it is back, and now and then between; callers need not.
var ErrDisconnected = errors.New("no connection to the broker")

// TellEvery is the interval at which the log repeats that a failure lasts.
const TellEvery = 30 * time.Second

// A Trouble is a series of failures of calls that are retried. It decides which of them are logged as a warning: the
// first, and then one every TellEvery. The zero value is a series that has not begun.
type Trouble struct {
	told time.Time // of the last warning; zero: none in this series
}

// Tell reports whether a failure at now is to be logged as a warning. That of a lost connection never is.
func (t *Trouble) Tell(now time.Time, err error) bool {
	if errors.Is(err, ErrDisconnected) || !t.told.IsZero() && now.Sub(t.told) < TellEvery {
		return false
	}
	t.told = now
	return true
}

// Level returns the log level of a failure: a warning if Tell returns true, else debug.
func (t *Trouble) Level(now time.Time, err error) slog.Level {
	if t.Tell(now, err) {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Over ends the series, and reports whether any of it was logged: then its end is worth a line, too.
func (t *Trouble) Over() (told bool) {
	told = !t.told.IsZero()
	*t = Trouble{}
	return told
}
