package device

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// Where the newest attempt announces places, nobody is charged before the stage has said that there is room:
//
//	drawn ──▶ asking ──▶ placed ──▶ joins      within half of the time for which its place is kept
//	            │  ▲        │
//	            ▼  └────────┤                  told to wait, no answer, or too late: it asks again, later
//	          again ◀───────┘
//
// No answer is no place. What is asked for is a number of users, on a tick, at a time that lots and answers decide; no
// event and no number of rows has a part in it. Once an event is charged its report is sent, place or no place.

// An ask is one request for places in an attempt, of events that wait. They are not charged yet.
type ask struct {
	round   *round
	attempt participation.Attempt
	events  []*event
	lease   time.Duration // for which places are kept
	due     time.Time     // the tick on which it leaves
	try     bool          // whether the broker takes reports again
	asked   moment        // before it was sent
	answer  stream.PlaceAnswer
	err     error // there is no answer
}

var errOtherPlace = errors.New("an answer to another request for places")

// A moment is a time by two clocks: one that no change of the machine's time moves, which may stand still while the
// machine sleeps, and the machine's own.
type moment struct{ steady, wall time.Time }

// since returns the time since an earlier moment, by the clock that went further.
func (m moment) since(before moment) time.Duration {
	return max(m.steady.Sub(before.steady), m.wall.Sub(before.wall))
}

func (l *loop) moment() moment { return moment{time.Now(), l.clock.read()} }

// late reports whether the places of a request may not be used any more: half of their time has gone since before it
// was sent, and the other half is for the report's way.
func (a *ask) late(now moment) bool { return now.since(a.asked) >= a.lease/2 }

// keeps returns how long the newest attempt keeps places; 0: it has none, and devices join without.
func (r *round) keeps() time.Duration {
	if r == nil || r.open == nil {
		return 0
	}
	return time.Duration(r.open.PlacesMs) * time.Millisecond
}

// seats are the events that ask for places in the newest attempt.
type seats struct {
	asking  int      // events whose request is not answered
	placed  []*ask   // granted
	again   []repeat // not granted
	silence time.Duration
	over    bool // the stage said that the attempt takes nobody any more
}

// A repeat is events that ask again, from a time on.
type repeat struct {
	events []*event
	after  time.Time
}

// holds returns the number of events: asked for, with a place, or to be asked for again.
func (s *seats) holds() (n int) {
	for _, a := range s.placed {
		n += len(a.events)
	}
	for _, r := range s.again {
		n += len(r.events)
	}
	return n + s.asking
}

// taken returns the number of events that are asked for or have a place.
func (s *seats) taken() (n int) {
	for _, a := range s.placed {
		n += len(a.events)
	}
	return n + s.asking
}

// recall returns all events but those whose request is not answered, and begins again for another attempt.
func (s *seats) recall() (events []*event) {
	for _, a := range s.placed {
		events = append(events, a.events...)
	}
	for _, r := range s.again {
		events = append(events, r.events...)
	}
	*s = seats{asking: s.asking}
	return events
}

// lapse takes the places that may not be used any more: their events ask again.
func (s *seats) lapse(now moment) {
	var live []*ask
	for _, a := range s.placed {
		if a.late(now) {
			s.repeat(a.events, now.steady, a.lease)
			continue
		}
		live = append(live, a)
	}
	s.placed = live
}

// leastRepeat bounds the mean time between two requests, whatever an answer says.
const leastRepeat = 250 * time.Millisecond

// repeat has events ask again after a time that is drawn around the given one.
func (s *seats) repeat(events []*event, now time.Time, around time.Duration) {
	if len(events) > 0 {
		s.again = append(s.again, repeat{events, now.Add(jittered(max(around, leastRepeat)))})
	}
}

// due returns when the first events ask again.
func (s *seats) due() (at time.Time, ok bool) {
	if s.over {
		return at, false
	}
	for _, r := range s.again {
		if !ok || r.after.Before(at) {
			at, ok = r.after, true
		}
	}
	return at, ok
}

// next returns up to n events that ask again now.
func (s *seats) next(n int, now time.Time) (events []*event) {
	rest := s.again[:0]
	for _, r := range s.again {
		if take := min(n-len(events), len(r.events)); take > 0 && !now.Before(r.after) {
			events, r.events = append(events, r.events[:take]...), r.events[take:]
		}
		if len(r.events) > 0 {
			rest = append(rest, r)
		}
	}
	clear(s.again[len(rest):])
	s.again = rest
	return events
}

// drawsFirst reports whether reports are drawn before a place is asked for, because working one out could take as long as
// the place is kept.
func (l *loop) drawsFirst() bool { return l.beats.tick > l.current.keeps()/4 }

// seat has the events that have places join, and others ask.
func (l *loop) seat(ctx context.Context) error {
	if !l.joinable() || l.clock.holds() {
		return nil
	}
	s := &l.queue.seats
	s.lapse(l.moment())
	if err := l.sit(ctx); err != nil {
		return err
	}
	for !s.over && !l.gathering() && l.joinable() {
		now := time.Now()
		if l.refusals.holds(l.current.attempt, now) {
			return nil
		}
		n := min(l.mostAsked()-s.taken(), l.window.now-l.sending-s.taken(), l.chunk,
			int(l.current.place.Phase.Mechanism.MaxBundle))
		if n <= 0 {
			return nil
		}
		at, ok := s.due()
		if ok = ok && !at.After(now); !ok && !l.queue.waits(l.current, l.places(), now) {
			return nil
		}
		if l.beats.left == 0 {
			l.beats.arm()
			return nil
		}
		if l.drawsFirst() {
			n = min(n, l.beats.left)
		}
		try := l.refusals.wait > 0
		if n = l.unrefused(n); n == 0 {
			return nil
		}
		batch := s.next(n, now)
		if len(batch) == 0 {
			var misfits []*event
			batch, misfits = l.queue.next(l.current, n, l.places(), now)
			l.leave(misfits, "the round is none that they may answer")
		}
		if len(batch) == 0 {
			return nil
		}
		if l.drawsFirst() {
			l.beats.left -= len(batch)
			if err := l.predraw(ctx, batch); err != nil {
				return err
			}
		}
		l.ask(ctx, batch, try)
	}
	return nil
}

// mostAsked bounds the events that ask or have places: as many as ticks within a quarter of the lease have room for.
func (l *loop) mostAsked() int {
	return l.beats.quota * int(max(1, l.current.keeps()/4/l.beats.tick))
}

// sit has events join that have places: on a tick, or, where their reports are drawn, at once.
func (l *loop) sit(ctx context.Context) error {
	s, early := &l.queue.seats, l.drawsFirst()
	for len(s.placed) > 0 && l.joinable() {
		n := l.chunk
		if !early {
			if l.beats.left == 0 {
				l.beats.arm()
				return nil
			}
			n = min(n, l.beats.left)
		}
		if l.refusals.holds(l.current.attempt, time.Now()) && !s.placed[0].try {
			return nil // lapse takes its place off
		}
		var batch []*event
		var from []*ask
		for len(s.placed) > 0 && len(batch) < n {
			a := s.placed[0]
			from = append(from, a)
			take := min(n-len(batch), len(a.events))
			batch = append(batch, a.events[:take]...)
			if a.events = a.events[take:]; len(a.events) == 0 {
				s.placed = s.placed[1:]
			}
		}
		if !early {
			l.beats.left -= len(batch)
			if err := l.predraw(ctx, batch); err != nil {
				return err
			}
		}
		if now := l.moment(); slices.ContainsFunc(from, func(a *ask) bool { return a.late(now) }) { // nobody has paid
			s.repeat(batch, now.steady, from[0].lease)
			continue
		}
		if err := l.join(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// ask sends one request for places of some events, on the next tick.
func (l *loop) ask(ctx context.Context, events []*event, try bool) {
	r, now := l.current, time.Now()
	a := &ask{round: r, attempt: r.attempt, events: events, lease: r.keeps(), due: l.beats.next(now), try: try}
	request := stream.PlaceRequest{Users: uint32(len(events))}
	_, _ = rand.Read(request.ID[:]) // never fails: it ends the process instead
	subject := l.Task.Place(r.number, a.attempt.Number)
	l.queue.seats.asking += len(events)
	l.deliveries.Go(func() {
		if a.err = Until(ctx, a.due); a.err == nil {
			a.asked = l.moment()
			a.answer, a.err = l.place(ctx, subject, request, a.lease/2)
		}
		l.replies.put(a)
	})
}

// place makes one request. It runs outside the loop's goroutine. An answer to another request is none.
func (l *loop) place(ctx context.Context, subject string, request stream.PlaceRequest, within time.Duration) (
	stream.PlaceAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, min(within, l.Timeout))
	defer cancel()
	data, err := l.Transport.Place(ctx, subject, request.Record())
	if err != nil {
		return stream.PlaceAnswer{}, err
	}
	answer, err := stream.ParsePlaceAnswer(data)
	if err == nil && answer.ID != request.ID {
		err = errOtherPlace
	}
	return answer, err
}

// replied takes the answer to a request, or that there is none.
func (l *loop) replied(a *ask) {
	s, now := &l.queue.seats, time.Now()
	s.asking -= len(a.events)
	switch {
	case l.over():
		l.leave(a.events, "the task has ended")
	case a.round != l.current || a.attempt != l.current.attempt:
		l.queue.add(a.events...)
	case a.err != nil: // silence is no reason to join
		s.silence = min(max(2*s.silence, a.lease), mostRefused)
		if errors.Is(a.err, stream.ErrRefused) && l.unasked.Tell(now, a.err) {
			l.Logger.Warn("the broker does not let this device ask for places, so it cannot take part: "+
				"docs/how-to/operations.md has the permission", "subject", l.Task.Place(a.round.number, a.attempt.Number),
				"err", a.err)
		}
		s.repeat(a.events, now, s.silence)
	case a.answer.Verdict == stream.PlaceOver:
		s.over, s.silence = true, 0
		s.repeat(a.events, now, a.lease)
	case a.answer.Verdict == stream.PlaceWait:
		s.silence = 0
		s.repeat(a.events, now, min(a.answer.Time, mostRefused))
	default:
		n := min(int(a.answer.Users), len(a.events))
		s.silence = 0
		s.repeat(a.events[n:], now, a.lease/4)
		a.events = a.events[:n:n]
		a.lease = min(a.lease, a.answer.Time)
		s.placed = append(s.placed, a)
		slices.SortFunc(s.placed, func(a, b *ask) int { return a.asked.steady.Compare(b.asked.steady) })
	}
}

// announce asks for places of users whom an earlier attempt at the round charged, and who send in any case: so that
// nobody else is given them. It runs outside the loop's goroutine.
func (l *loop) announce(ctx context.Context, d delivery) {
	users := 0
	for _, b := range d.bundles {
		users += len(b.events)
	}
	most := int(d.round.place.Phase.Mechanism.MaxBundle)
	for ; users > 0; users -= min(users, most) {
		r := stream.PlaceRequest{Users: uint32(min(users, most)), Charged: true}
		_, _ = rand.Read(r.ID[:]) // never fails: it ends the process instead
		subject := l.Task.Place(d.round.number, d.attempt.Number)
		if _, err := l.place(ctx, subject, r, d.announces/2); err != nil {
			return
		}
	}
}
