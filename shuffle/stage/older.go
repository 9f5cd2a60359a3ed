package stage

import (
	"time"

	"github.com/panlearn/panlearn/stream"
)

// older compares how far a task was, by the stage's marks and by what this process read, with how far the broker shows
// it. A broker that was restored, or lost records, shows less. Each round between was claimed before, and so becomes
// void as soon as the learner announces it again.
type older struct {
	reached stream.Round // the newest round that was marked or read
	shown   stream.Round // the newest that the broker shows
	since   time.Time    // when that was first less; zero: it is not
	barred  stream.Round // the round after the marks, which this process marked too; 0: none
}

// lost returns how many rounds the broker is behind.
func (o *older) lost() uint64 {
	if o.since.IsZero() {
		return 0
	}
	return uint64(o.reached - o.shown)
}

// shows notes which round the broker shows as the newest, and logs when it is older than what was reached, and when no
// longer.
func (o *older) shows(e *environment, now time.Time, newest stream.Round) {
	was := o.since
	o.shown, e.lease.newest = newest, max(e.lease.newest, o.reached)
	switch {
	case newest >= o.reached:
		o.reached, o.since = newest, time.Time{}
		if !was.IsZero() {
			e.Logger.Warn("the broker is as new again as what this stage knows", "round", newest)
		}
	case was.IsZero():
		o.since = now
		e.Logger.Error(
			"the broker is older than what this stage knows: it was restored or lost records. Each round between becomes void when the learner announces it "+
				"again, and nobody is asked twice: docs/how-to/runbook.md, state folder and broker of different times",
			"newest_round_there", newest, "newest_round_known", o.reached)
	}
}
