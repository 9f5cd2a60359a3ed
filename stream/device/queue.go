package device

import (
	"container/heap"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A queue is the events that wait to join a round, each in one of three states:
//
//	waiting ──▶ drawn ──▶ joins      it drew for the newest attempt, and joins when its time has come, or asks (places.go)
//	   │  ▲       │
//	   │  └───────┘                  there is another attempt
//	   └──▶ reserve ──▶ waiting      the round is a later one of an interactive phase and the event no member of it: it takes
//	                                 only a place that members have left, when they had their time
//
// While more devices wait than a round takes, the stage announces which share of them may join at once. The others join
// later, the later the larger the number that they draw, and most find the round closed by then (stream.Ramp). An event
// draws once for an attempt, from the operating system's generator and its place in the queue (stream.Lots), and
// nothing else. Members of a round draw no number: the round waits for them.
type queue struct {
	// waiting: the members first, by key, and then the others in their order; they are the reserve of a later round
	events  []*event
	members int  // how many are
	sorted  bool // members and the order of events belong to the newest round
	drawn   draws
	lots    stream.Lots // of the newest attempt
	seats   seats       // of events that are due, where the attempt gives places
	chance  chance
	round   *round                // for which events drew last; nil: none has
	attempt participation.Attempt // likewise
}

func newQueue(c chance) *queue { return &queue{chance: c, seats: seats{chance: c}} }

// holds returns the number of all events.
func (q *queue) holds() int { return len(q.events) + len(q.drawn) + len(q.seats.line) }

// add appends events to those that wait.
func (q *queue) add(events ...*event) {
	q.events, q.sorted = append(q.events, events...), false
}

// recall puts the events that drew back at the head of the queue, because there is another attempt or round. of is the
// number of this client's events that may draw for it.
func (q *queue) recall(of uint64) {
	q.events, q.drawn, q.sorted = slices.Concat(q.seats.recall(), q.drawn, q.events), nil, false
	q.lots = stream.NewLots(of, q.chance.uint32())
}

// recallFor recalls the events that drew for another attempt than the newest one of a round. of returns the number of
// events on behalf of this client that may draw for it.
func (q *queue) recallFor(r *round, of func() uint64) {
	if r != nil && (q.round != r || q.attempt != r.attempt) {
		q.round, q.attempt = r, r.attempt
		q.recall(of())
	}
}

// all empties the queue.
func (q *queue) all() []*event {
	q.recall(0)
	all := q.events
	q.events = nil
	return all
}

// sort puts the members of a round before all others, and removes and returns the settled events.
func (q *queue) sort(r *round, settled func(*event) bool) (over []*event) {
	if q.sorted {
		return nil
	}
	var members, others []*event
	for _, e := range q.events {
		switch {
		case settled(e):
			over = append(over, e)
		case r.member(e):
			members = append(members, e)
		default:
			others = append(others, e)
		}
	}
	// Sorted by key, which for rows is the order of the file: the same in every run.
	slices.SortFunc(members, byKey)
	q.events, q.members, q.sorted = append(members, others...), len(members), true
	return over
}

// reserved reports whether events that are no members wait for places that members leave.
func (q *queue) reserved(r *round, now time.Time) bool {
	return r.later() && (q.members > 0 || r.elapsed(now) < stream.ReserveAfter(r.place.Deadline))
}

// ready returns the number of events that wait only for a place, and not for their time.
func (q *queue) ready(r *round, now time.Time) int {
	if q.reserved(r, now) {
		return q.members
	}
	return len(q.events)
}

// due returns the time at which the next of the events that drew joins the newest attempt of a round; ok is false
// if none does.
func (q *queue) due(r *round, now time.Time) (at time.Time, ok bool) {
	if !r.receives() {
		return at, false
	}
	at, ok = q.seats.due()
	if len(q.drawn) == 0 || q.seats.over {
		return at, ok
	}
	if joins := now.Add(r.joins(q.drawn[0].draw) - r.elapsed(now)); !ok || joins.Before(at) {
		at = joins
	}
	return at, true
}

// waits reports whether next has an event to consider.
func (q *queue) waits(r *round, places uint64, now time.Time) bool {
	if len(q.drawn) > 0 && r.joins(q.drawn[0].draw) <= r.elapsed(now) {
		return true
	}
	return len(q.events) > 0 && (q.members > 0 || places > 0 && !q.reserved(r, now))
}

// next takes up to n events that join the newest attempt of a round now, where places is how many more may be taken off
// those that wait.
// It also returns events that may not join the round.
func (q *queue) next(r *round, n int, places uint64, now time.Time) (join, misfits []*event) {
	elapsed := r.elapsed(now)
	due := func(e *event) bool {
		return r.joins(e.draw) <= elapsed
	}
	for len(join) < n && len(q.drawn) > 0 && due(q.drawn[0]) {
		join = append(join, heap.Pop(&q.drawn).(*event))
	}
	for len(join) < n && len(q.events) > 0 {
		e, member := q.events[0], q.members > 0
		if !member && (places == 0 || q.reserved(r, now)) {
			break
		}
		q.events = q.events[1:]
		if member {
			q.members--
		}
		switch {
		case !r.mayJoin(e): // a step that it answered, or none of its phase
			misfits = append(misfits, e)
			continue
		case member:
			join = append(join, e)
			places -= min(places, 1)
			continue
		case r.open.JoinProbability != 0:
			e.draw = r.turn(e, q.lots.Next(q.chance.uint32()))
		}
		places--
		if r.open.JoinProbability == 0 || due(e) {
			join = append(join, e)
			continue
		}
		heap.Push(&q.drawn, e)
	}
	return join, misfits
}

// draws is a heap of events ordered by their draws.
type draws []*event

func (d draws) Len() int           { return len(d) }
func (d draws) Less(i, j int) bool { return d[i].draw < d[j].draw }
func (d draws) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *draws) Push(e any)        { *d = append(*d, e.(*event)) }
func (d *draws) Pop() any {
	last := len(*d) - 1
	e := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return e
}
