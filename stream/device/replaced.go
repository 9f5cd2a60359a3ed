package device

import (
	"context"
	"errors"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// backAgain is the log line about a broker that shows less than it did, or something else.
const backAgain = "the learner and the broker were put back to an earlier time (docs/how-to/runbook.md, state folder and broker of different times), or somebody announces a round " +
	"twice. Users of what is lost stay charged; nobody answers again until a round is announced that is new to this device"

// replaced handles that the learner announced another round under a number that this device knows. The device takes no
// part in that round: its users, or others of the same device, may have answered the first. Nobody joins the lost
// round either, and once the task has gone on with a new round, nothing will tell who was counted in it.
func (l *loop) replaced(number stream.Round) {
	if l.older < number {
		l.grew(number)
		l.Logger.Error("another round stands under a number that this device knows: "+backAgain, "round", number)
		l.progress()
	}
	for _, r := range l.rounds {
		if r.number >= number && r.closed == nil {
			r.lost, r.claimed = true, true
		}
	}
}

// grew notes up to which round the broker is older.
func (l *loop) grew(number stream.Round) {
	if l.older == 0 {
		l.olderSince = time.Now()
	}
	l.older = number
}

// goesOn handles that the task has gone on with a new round: the lost rounds will have no Close.
func (l *loop) goesOn() {
	l.older, l.olderSince = 0, time.Time{}
	for _, r := range l.rounds {
		r.gone = r.gone || r.lost && r.closed == nil
	}
}

// isReplaced reports whether the broker shows another round than the one that is known under a number, by the
// learner's word. Those of an interactive phase are in order whatever was lost: the users of all its rounds are the
// same.
func (l *loop) isReplaced(ctx context.Context, r *round) bool {
	if r.message == nil || r.place.Interactive() {
		return false
	}
	_, hash, ok := l.records.readRound(ctx, l.Task.Round(r.number), false)
	if ok && hash != r.manifest {
		l.replaced(r.number)
		return true
	}
	return false
}

// lookBack checks, after the connection was lost, whether the newest known round still stands, if none is newer, and
// reports whether it has to look again. A read that finds nothing decides nothing: a replica that lags may have answered.
// So nobody joins while the round is missing, and only when it has been for longer than that the device goes on waiting
// for a newer one, and logs that.
func (l *loop) lookBack(ctx context.Context) (again bool) {
	r := l.current
	if r == nil || r.lost {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, l.records.timeout)
	defer cancel()
	switch m, err := l.records.port.Get(limited, l.Task.Round(r.number)); {
	case errors.Is(err, stream.ErrNotFound) && l.older < r.number:
		if now := time.Now(); r.missing.IsZero() {
			r.missing = now
			return true
		} else if now.Sub(r.missing) <= lag {
			return true
		}
		r.missing = time.Time{}
		l.grew(r.number)
		r.claimed = true // an event that joined it now would be charged for nothing
		l.Logger.Error("the broker no longer shows the newest round that this device knows: "+backAgain, "round", r.number)
		l.progress()
	case err == nil:
		r.missing = time.Time{}
		if _, hash, ok := l.records.round(m); ok && hash != r.manifest {
			l.replaced(r.number)
		}
	}
	return !r.missing.IsZero()
}
