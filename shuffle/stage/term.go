package stage

import "time"

// A term decides when an attempt has enough users: at once when the cohort is full, or past its deadline with the
// minimum, once no more reports come. Its callers give it the time until which a place may bring a report, or the zero
// time.
type term struct {
	cohort, minimum uint64
	deadline        time.Duration // 0: none
	started         time.Time
	newest          time.Time // when the last report was counted
	late            time.Time // when the deadline was seen to be over, with the minimum there
}

// deadlineAt returns the time from which on the minimum is enough; zero: never.
func (t *term) deadlineAt() time.Time {
	if t.deadline == 0 {
		return time.Time{}
	}
	return t.started.Add(t.deadline)
}

// Bounds of the time without a report after which a round that is past its deadline closes.
const (
	minPause = 250 * time.Millisecond
	maxPause = 30 * time.Second
)

// pause returns the time that a round past its deadline waits for the next report: a sixteenth of the deadline, within
// bounds.
func (t *term) pause() time.Duration { return min(max(t.deadline/16, minPause), maxPause) }

// full reports whether enough users are counted, by number and time.
func (t *term) full(now time.Time, users uint64, lives func(time.Time) time.Time) bool {
	at := t.deadlineAt()
	switch {
	case users >= t.cohort:
		return true
	case at.IsZero() || now.Before(at) || users < t.minimum:
		return false
	case t.late.IsZero():
		t.late = now
		if now.Sub(at) > t.pause() { // nobody knows what has come meanwhile
			t.newest = now
		}
	}
	return !now.Before(t.closesAt(now, lives))
}

// closesAt returns when a late attempt closes if no further report is counted: after a pause, when no place lives.
func (t *term) closesAt(now time.Time, lives func(time.Time) time.Time) time.Time {
	end, quiet := t.late.Add(t.deadline), t.newest.Add(t.pause())
	if place := lives(now); place.After(quiet) {
		quiet = place
	}
	if quiet.Before(end) {
		return quiet
	}
	return end
}

// changesAt returns when time alone may make the attempt ripe: its deadline, or once that is over the end of the pause.
func (t *term) changesAt(now time.Time, lives func(time.Time) time.Time) time.Time {
	if t.late.IsZero() {
		return t.deadlineAt()
	}
	return t.closesAt(now, lives)
}
