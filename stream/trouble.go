package stream

import (
	"errors"
	"log/slog"
	"time"
)

// ErrDisconnected says that there is no connection to the broker now. Who holds the connection tells when it goes, when it is
// back, and now and then between: who calls need not.
var ErrDisconnected = errors.New("no connection to the broker")

// TellEvery is how often the log says that what failed still fails.
const TellEvery = 30 * time.Second

// A Trouble is a row of calls that fail and are tried again. It says which of them are worth a warning: the first, and one in
// TellEvery. The zero value is a row that has not begun.
type Trouble struct {
	told time.Time // of the last warning; zero: none in this row
}

// Tell says whether the failure that comes now is to be told. That of a lost connection never is.
func (t *Trouble) Tell(now time.Time, err error) bool {
	if errors.Is(err, ErrDisconnected) || !t.told.IsZero() && now.Sub(t.told) < TellEvery {
		return false
	}
	t.told = now
	return true
}

// Level is that of the failure's line in the log: a warning where Tell says so, else debug.
func (t *Trouble) Level(now time.Time, err error) slog.Level {
	if t.Tell(now, err) {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Over ends the row, and says whether something of it was told: then its end is worth a line, too.
func (t *Trouble) Over() (told bool) {
	told = !t.told.IsZero()
	*t = Trouble{}
	return told
}
