package device

import (
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
)

// comeback is the number of devices of a task that may come back to the broker in one second, or read in one
// second a record that all of them are told of.
const comeback = 1000

// joinEvery is the shortest time between two checks for events whose time to join has come: each costs a write.
const joinEvery = 50 * time.Millisecond

// A pace decides when a device polls the broker though no wake told it to. The mean time between two polls doubles
// while polls find nothing that no wake had told, and when a wake brings something new, which also postpones the
// next poll. All times are jittered by half.
type pace struct {
	least, most time.Duration
	chance      chance
	wait        time.Duration // mean time to the next poll
	due         time.Time     // of it
}

func newPace(least, most time.Duration, c chance) pace {
	return pace{least: least, most: most, wait: least, chance: c}
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

// rests records that nothing is to be done: the next poll is far away, and the mean wait keeps its value.
func (p *pace) rests(now time.Time) { p.due = now.Add(p.chance.around(p.most)) }

// heard records that a wake brought something new, and postpones the next poll: while wakes come there is less to
// poll for. most bounds the mean wait.
func (p *pace) heard(now time.Time, most time.Duration) {
	p.wait = min(2*p.wait, most)
	if at := now.Add(p.chance.around(p.wait)); at.After(p.due) {
		p.due = at
	}
}

// A business names what a client still has to do in the task.
type business int

// nothing: no event here waits or is charged. anOutcome: all events here were sent and answered. aPlace: events wait
// for a round. anAnswer: a publish is not answered yet.
const (
	nothing business = iota
	anOutcome
	aPlace
	anAnswer
)

// has returns what the client still has to do.
func (l *loop) has() business {
	b := nothing
	for _, r := range l.rounds {
		switch {
		case l.uplink.sending > 0 || len(r.owed) > 0:
			return anAnswer
		case len(r.bundles) > 0:
			b = anOutcome
		}
	}
	if l.queue.holds() > 0 || l.inbox.holds() > 0 {
		return aPlace
	}
	return b
}

// restless reports whether the passing of time alone may give the loop something to do: a publish to repeat, an
// event whose time to join comes, an answer to store, or the end of waiting for a Close.
func (l *loop) restless() bool {
	switch has := l.has(); {
	case has == anAnswer || len(l.dirty) > 0:
		return true
	case has == aPlace:
		return l.joinable() || l.over()
	default:
		return has == anOutcome && l.over()
	}
}

// patience returns the bound on the mean time between two polls. A lost wake must not make an event miss more than a
// few rounds.
func (l *loop) patience() time.Duration {
	switch {
	case l.wakes == nil:
		return l.Poll
	case l.contract.agreement == nil:
		return l.MaxPoll
	case l.over():
		return min(max(l.CloseWait/4, l.Poll), l.MaxPoll)
	case l.deadline() == 0:
		return l.MaxPoll
	}
	return min(max(2*l.deadline(), l.Poll), l.MaxPoll)
}

// deadline returns the deadline of the newest round, or the plan's where this client knows no round; 0 for none.
func (l *loop) deadline() time.Duration {
	if l.current != nil && l.current.message != nil {
		return l.current.place.Deadline
	}
	return manifest.Deadline(l.contract.agreement.Task.Plan)
}

// spread returns the time over which the devices of the task that lost the broker together read, or connect, again.
func (l *loop) spread() time.Duration {
	if l.contract.agreement == nil {
		return l.Poll / 4
	}
	return l.apart(manifest.Users(l.contract.agreement.Task.Plan), max(uint64(len(l.events)+l.inbox.holds()), l.stands()))
}

// apart returns the time over which to spread what all devices of so many users do, if each has as many events as this
// one.
func (l *loop) apart(users, events uint64) time.Duration {
	seconds := float64(users) / float64(max(events, 1)) / comeback
	return time.Duration(min(seconds*float64(time.Second), float64(l.MaxPoll)))
}

// rest returns the time until the loop has something to do by itself. It also tells the adapter over what time to
// spread its reconnections.
func (l *loop) rest(now time.Time) time.Duration {
	if s, ok := l.Transport.(stream.Spreader); ok {
		s.Spread(l.spread())
	}
	switch restless := l.restless(); {
	case !restless:
		l.tick = time.Time{}
	case l.tick.IsZero():
		l.tick = now.Add(l.chance.around(l.Poll))
	}
	next := l.pace.due
	if !l.tick.IsZero() && l.tick.Before(next) {
		next = l.tick
	}
	if at, ok := l.queue.due(l.current); ok && l.joinable() && l.uplink.refusals.wait == 0 {
		if least := now.Add(joinEvery); at.Before(least) {
			at = least
		}
		if at.Before(next) {
			next = at
		}
	}
	for _, r := range l.rounds {
		if r.unjudged() && r.judged.Before(next) {
			next = r.judged
		}
	}
	l.idle = l.has() == nothing
	return next.Sub(now)
}
