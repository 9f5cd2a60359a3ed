package device

import "time"

// comeback is the number of devices of a task that may reconnect to the broker in one second, or read in one second a
// record that all of them were woken for.
const comeback = 1000

// joinEvery is the shortest time between two checks for events that are due to join: each check costs a write.
const joinEvery = 50 * time.Millisecond

// A pace decides when a device polls the broker without a wake. The mean time between two polls doubles while polls
// find nothing beyond the wakes, and when a wake brings something new, which also postpones the next poll. All times
// are jittered by half.
type pace struct {
	least, most time.Duration
	chance      chance
	wait        time.Duration // mean time to the next poll
	due         time.Time     // of it
}

// soon schedules a poll at a random time within the given one from now; an earlier poll that is due already stays.
func (p *pace) soon(now time.Time, within time.Duration) {
	if at := now.Add(p.chance.within(within)); p.due.IsZero() || at.Before(p.due) {
		p.due = at
	}
}

// looked records that a poll was made and whether it found something new, and sets the time of the next one; most
// bounds its mean.
func (p *pace) looked(now time.Time, news bool, most time.Duration) {
	if p.wait *= 2; news {
		p.wait = p.least
	}
	p.wait = min(p.wait, most)
	p.due = now.Add(p.chance.around(p.wait))
}

// rests records that there is nothing to do: the next poll is far away, and the mean wait keeps its value.
func (p *pace) rests(now time.Time) { p.due = now.Add(p.chance.around(p.most)) }

// heard records that a wake brought something new, and postpones the next poll: while wakes come there is less to
// poll for. most bounds the mean wait.
func (p *pace) heard(now time.Time, most time.Duration) {
	p.wait = min(2*p.wait, most)
	if at := now.Add(p.chance.around(p.wait)); at.After(p.due) {
		p.due = at
	}
}

// times decides when the loop acts without an input: it polls, at its pace, or tries a publish again.
type times struct {
	pace
	retry   time.Time // of the next try; zero: there is nothing to try again
	idle    bool      // there was nothing to do when the loop last rested
	resting bool      // and so the next poll is far away
}

// rest returns the first time at which the loop has something to do by itself: a poll or a try, or one of the alarms.
// restless is true if there is something to try again, and busy if there is anything to do.
func (t *times) rest(now time.Time, restless, busy bool, alarms []time.Time) time.Time {
	switch {
	case !restless:
		t.retry = time.Time{}
	case t.retry.IsZero():
		t.retry = now.Add(t.chance.around(t.least))
	}
	next := t.due
	for _, at := range append(alarms, t.retry) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	t.idle = !busy
	return next
}

// retries reports, once, whether the time of a try has come.
func (t *times) retries(now time.Time) bool {
	if t.retry.IsZero() || now.Before(t.retry) {
		return false
	}
	t.retry = time.Time{}
	return true
}
