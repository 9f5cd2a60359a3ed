package device

import (
	"math/rand/v2"
	"time"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
)

// comeback is how many devices of a task may come back to the broker in one second, or read one record that all of them are told of.
const comeback = 1000

// joinEvery is the shortest time between two looks at whose time to join has come: each costs a write.
const joinEvery = 50 * time.Millisecond

// A pace says when a device looks at the broker though no wake told it to. The mean time between two looks doubles while they find
// nothing that no wake had told, and when a wake tells something, which also puts the next one off. All times are jittered by half.
type pace struct {
	least, most time.Duration
	jitter      *rand.Rand
	wait        time.Duration // mean time to the next look
	due         time.Time     // of it
}

func newPace(least, most time.Duration) pace {
	return pace{least: least, most: most, wait: least, jitter: rand.New(randomizer.NewEntropy())}
}

// within draws a time below d, around one whose mean is d.
func (p *pace) within(d time.Duration) time.Duration {
	return time.Duration(p.jitter.Int64N(int64(max(d, 1))))
}
func (p *pace) around(d time.Duration) time.Duration { return d/2 + p.within(d) }

// soon has a look taken within a time from now, or before where it was due.
func (p *pace) soon(now time.Time, within time.Duration) {
	if at := now.Add(p.within(within)); p.due.IsZero() || at.Before(p.due) {
		p.due = at
	}
}

// looked says that a look was taken, whether it found something new, and how long the next one may be away.
func (p *pace) looked(now time.Time, news bool, most time.Duration) {
	if p.wait *= 2; news {
		p.wait = p.least
	}
	p.wait = min(p.wait, most)
	p.due = now.Add(p.around(p.wait))
}

// rests says that nothing is to be done: the next look is far away, and what the waits of before have grown to stays.
func (p *pace) rests(now time.Time) { p.due = now.Add(p.around(p.most)) }

// heard says that a wake told something new, and how long the next look may be away: wakes come, so there is less to look for.
func (p *pace) heard(now time.Time, most time.Duration) {
	p.wait = min(2*p.wait, most)
	if at := now.Add(p.around(p.wait)); at.After(p.due) {
		p.due = at
	}
}

// business is what a client has with the task.
type business int

// nothing: no event here waits or is charged. An outcome: all that are here were sent and answered. A place: events wait
// for a round. An answer: a publish has none.
const (
	nothing business = iota
	anOutcome
	aPlace
	anAnswer
)

// has is what a client has to do.
func (l *loop) has() business {
	b := nothing
	for _, r := range l.rounds {
		switch {
		case l.sending > 0 || len(r.owed) > 0:
			return anAnswer
		case len(r.bundles) > 0:
			b = anOutcome
		}
	}
	if len(l.queue.events)+len(l.queue.drawn) > 0 || l.inbox.holds() > 0 {
		return aPlace
	}
	return b
}

// restless says whether time alone may change something here: a publish that is to be repeated, an event whose time to join
// comes, an answer to be stored, the end of waiting for a Close.
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

// patience bounds the mean time between two looks. A lost wake must not keep an event from more than a few rounds.
func (l *loop) patience() time.Duration {
	switch {
	case l.wakes == nil:
		return l.Poll
	case l.agreement == nil:
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
	return manifest.Deadline(l.agreement.Task.Plan)
}

// spread is over what time the devices of the task read, or connect, that lost the broker together.
func (l *loop) spread() time.Duration {
	if l.agreement == nil {
		return l.Poll / 4
	}
	return l.apart(manifest.Users(l.agreement.Task.Plan), max(uint64(len(l.events)+l.inbox.holds()), l.stands()))
}

// apart is over what time something is spread that all devices of so many users do, if each has as many events as this one.
func (l *loop) apart(users, events uint64) time.Duration {
	seconds := float64(users) / float64(max(events, 1)) / comeback
	return time.Duration(min(seconds*float64(time.Second), float64(l.MaxPoll)))
}

// rest tells the adapter over what time to spread its reconnections, and is when the loop has something to do by itself.
func (l *loop) rest(now time.Time) time.Duration {
	if s, ok := l.Records.(stream.Spreader); ok {
		s.Spread(l.spread())
	}
	switch restless := l.restless(); {
	case !restless:
		l.tick = time.Time{}
	case l.tick.IsZero():
		l.tick = now.Add(l.pace.around(l.Poll))
	}
	next := l.pace.due
	if !l.tick.IsZero() && l.tick.Before(next) {
		next = l.tick
	}
	if at, ok := l.queue.due(l.current); ok && l.joinable() && l.refusals.wait == 0 {
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
