package stream

import (
	"errors"
	"log/slog"
	"maps"
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

// Troubles hold the calls that fail, each a series by its name: one that works says nothing of another. The zero value
// holds none.
type Troubles struct{ of map[string]*failing }

type failing struct {
	series      Trouble
	cause       string
	since, last time.Time // of the first failure and the newest
}

// Failed notes that a call failed, and returns the level at which to log that.
func (t *Troubles) Failed(now time.Time, call string, err error) slog.Level {
	one := t.of[call]
	if one == nil {
		if t.of == nil {
			t.of = map[string]*failing{}
		}
		one = &failing{since: now}
		t.of[call] = one
	}
	one.cause, one.last = err.Error(), now
	return one.series.Level(now, err)
}

// Worked notes that a call worked, and reports whether any of its failures before was logged as a warning.
func (t *Troubles) Worked(call string) (told bool) {
	one := t.of[call]
	delete(t.of, call)
	return one != nil && one.series.Over()
}

// Forget drops the calls for which drop returns true: they are not made again.
func (t *Troubles) Forget(drop func(call string) bool) {
	maps.DeleteFunc(t.of, func(call string, _ *failing) bool { return drop(call) })
}

// Standing returns the cause of the call that failed last, and the time since when calls fail.
func (t *Troubles) Standing() (cause string, since time.Time) {
	var last time.Time
	for _, one := range t.of {
		if cause == "" || one.last.After(last) {
			cause, last = one.cause, one.last
		}
		if since.IsZero() || one.since.Before(since) {
			since = one.since
		}
	}
	return cause, since
}
