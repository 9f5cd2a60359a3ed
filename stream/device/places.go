package device

import (
	"errors"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// Where the newest attempt announces places, nobody is charged before the stage has said that there is room. Events
// that are due wait in a line, in their order, and the device requests as many places as the line is long. A place
// belongs to no event: whichever request was granted, the first in the line join:
//
//	          ┌──▶ asked for ──▶ granted ──▶ the first in the line join, within half of the time for which it is kept
//	in line ──┤        │            │
//	          └── again ◀───────────┘           told to wait, no answer, or too late: asked for again, later
//
// Without an answer there is no place. A request is a number of users, sent on a tick, at a time that depends on lots
// and answers only, never on an event or a number of rows. Once an event is charged its report is sent, with or without
// a place.

// An ask is one request for places in an attempt.
type ask struct {
	seats   uint64 // the line that it is for
	round   stream.Round
	attempt stream.Attempt
	users   int           // requested; once granted, users who have not joined yet
	lease   time.Duration // for which places are kept
	try     bool          // whether the broker takes reports again
	due     time.Time     // the tick on which it leaves
	asked   moment        // before it was sent
	answer  stream.PlaceAnswer
	err     error // there is no answer
}

// A moment is a time by two clocks: a monotonic one, which may stop while the machine sleeps, and the machine's wall
// clock.
type moment struct{ steady, wall time.Time }

// since returns the time since an earlier moment, by the clock that went further.
func (m moment) since(before moment) time.Duration {
	return max(m.steady.Sub(before.steady), m.wall.Sub(before.wall))
}

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

// seats holds the line at the newest attempt. The places requested, granted, and to be requested again add up to the
// length of the line.
type seats struct {
	chance  chance
	number  uint64   // of lines before it
	line    []*event // in their order
	asking  int      // places requested
	placed  []*ask   // granted, by the time of the request
	again   []repeat
	silence time.Duration // after the next request without an answer; 0: the last one had an answer
	over    bool          // the stage said that the attempt takes nobody any more
}

// A repeat is a number of places to request again, from a time on.
type repeat struct {
	users int
	after time.Time
}

// taken returns the number of places that are requested or granted.
func (s *seats) taken() int { return s.asking + s.granted() }

// granted returns the number of places that are granted.
func (s *seats) granted() (n int) {
	for _, a := range s.placed {
		n += a.users
	}
	return n
}

// recall empties the line, and begins another one.
func (s *seats) recall() (line []*event) {
	line = s.line
	*s = seats{chance: s.chance, number: s.number + 1}
	return line
}

// lapse has places that may not be used any more be asked for again.
func (s *seats) lapse(now moment) {
	s.placed = slices.DeleteFunc(s.placed, func(a *ask) bool {
		if a.late(now) {
			s.repeat(a.users, now.steady, a.lease)
			return true
		}
		return false
	})
}

// leastRepeat bounds the mean time between two requests, whatever an answer says.
const leastRepeat = 250 * time.Millisecond

// repeat has places be asked for again after a time that is drawn around the given one.
func (s *seats) repeat(users int, now time.Time, around time.Duration) {
	if users > 0 {
		s.again = append(s.again, repeat{users, now.Add(s.chance.around(max(around, leastRepeat)))})
	}
}

// due returns when the first places are asked for again.
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

// next returns how many places are asked for again now, up to n.
func (s *seats) next(n int, now time.Time) (users int) {
	s.again = slices.DeleteFunc(s.again, func(r repeat) bool { return r.users == 0 })
	for i := range s.again {
		if r := &s.again[i]; !now.Before(r.after) {
			take := min(n-users, r.users)
			users, r.users = users+take, r.users-take
		}
	}
	s.again = slices.DeleteFunc(s.again, func(r repeat) bool { return r.users == 0 })
	return users
}

// use takes up to n of the granted places, the oldest first. It returns how many it took, and from which requests.
func (s *seats) use(n int) (users int, from []ask) {
	for len(s.placed) > 0 && users < n {
		a := s.placed[0]
		one := *a
		one.users = min(n-users, a.users)
		users, from = users+one.users, append(from, one)
		if a.users -= one.users; a.users == 0 {
			s.placed = s.placed[1:]
		}
	}
	return users, from
}

// drawsFirst reports whether reports are drawn before a place is asked for, because working one out could take as long as
// the place is kept.
func (c *core) drawsFirst() bool { return c.beats.tick > c.rounds.known.newest.keeps()/4 }

// moment returns the time by both clocks.
func (c *core) moment() moment { return moment{c.now(), c.clock.read()} }

// An usher lets events join if the newest attempt gives places: it requests places, and gives each granted place to the
// first event in the line.
type usher struct {
	*core
	sender *sender
}

// seatLine lets the first in the line join as places are granted, and requests places for others.
func (u *usher) seatLine() error {
	r, s := u.rounds.known.newest, &u.queue.seats
	if !u.rounds.joinable() || u.clock.holds() {
		return nil
	}
	s.lapse(u.moment())
	if err := u.seatFirst(); err != nil {
		return err
	}
	for !s.over && !u.rounds.gathering() && u.rounds.joinable() {
		now := u.now()
		n := min(u.mostAsked()-s.taken(), u.uplink.room()-s.taken(), u.chunk, int(r.place.Phase.Mechanism.MaxBundle))
		if n <= 0 || u.uplink.refusals.holds(r.attempt, now) {
			return nil
		}
		at, again := s.due()
		if again = again && !at.After(now); !again && !u.queue.waits(r, u.places(), now) {
			return nil
		}
		if u.beats.left == 0 {
			u.beats.arm(now)
			return nil
		}
		try := u.uplink.refusals.wait > 0
		if n = u.uplink.most(n, len(r.owed), r.attempt, now); n == 0 {
			return nil
		}
		users := s.next(n, now)
		if users == 0 {
			var err error
			if users, err = u.lineUp(n, now); users == 0 || err != nil {
				return err
			}
		}
		s.asking += users
		u.do(effect{call: request, ask: &ask{seats: s.number, round: r.number, attempt: r.attempt.Number, users: users,
			lease: r.keeps(), try: try, due: u.beats.next(u.now())}})
	}
	return nil
}

// lineUp appends up to n events that are due to the line, and returns how many.
func (u *usher) lineUp(n int, now time.Time) (int, error) {
	r, first := u.rounds.known.newest, u.drawsFirst()
	if first {
		n = min(n, u.beats.left)
	}
	batch, misfits := u.queue.next(r, n, u.places(), now)
	u.dismiss(misfits, misfit)
	u.queue.seats.line = append(u.queue.seats.line, batch...)
	if !first || len(batch) == 0 {
		return len(batch), nil
	}
	u.beats.left -= len(batch)
	return len(batch), u.do(effect{call: drawReports, round: r, events: batch}).err
}

// mostAsked returns the largest number of places that may be requested or granted at once: as many events as fit on the
// ticks within a quarter of the lease.
func (u *usher) mostAsked() int {
	return u.beats.quota * int(max(1, u.rounds.known.newest.keeps()/4/u.beats.tick))
}

// seatFirst has the first in the line join, as many as places are granted: on a tick, or, where their reports are drawn,
// at once.
func (u *usher) seatFirst() error {
	r, s, drawn := u.rounds.known.newest, &u.queue.seats, u.drawsFirst()
	for len(s.placed) > 0 && u.rounds.joinable() {
		n := min(u.chunk, len(s.line))
		if !drawn {
			if u.beats.left == 0 {
				u.beats.arm(u.now())
				return nil
			}
			n = min(n, u.beats.left)
		}
		if u.uplink.refusals.holds(r.attempt, u.now()) && !s.placed[0].try {
			return nil // lapse takes its place off
		}
		users, from := s.use(n)
		batch := s.line[:users:users]
		if !drawn {
			u.beats.left -= users
			if got := u.do(effect{call: drawReports, round: r, events: batch}); got.err != nil {
				return got.err
			}
		}
		if now := u.moment(); slices.ContainsFunc(from, func(a ask) bool { return a.late(now) }) { // nobody has paid
			s.repeat(users, now.steady, from[0].lease)
			continue
		}
		s.line = s.line[users:]
		if err := u.sender.join(batch); err != nil {
			return err
		}
	}
	return nil
}

// takeReply takes the answer to a request, or that there is none. One to a line that is recalled changes nothing.
func (u *usher) takeReply(a *ask) {
	s, now := &u.queue.seats, u.now()
	if a.seats != s.number {
		return
	}
	s.asking -= a.users
	if a.err != nil { // silence is no reason to join
		s.silence = min(max(2*s.silence, a.lease), mostRefused)
		s.repeat(a.users, now, s.silence)
		if errors.Is(a.err, stream.ErrRefused) && u.uplink.unasked.Tell(now, a.err) {
			u.log.Warn("the broker does not let this device ask for places, so it cannot take part: "+
				"docs/how-to/operations.md, Places, has the permission", "subject", u.settings.Task.Places(), "err", a.err)
		}
		return
	}
	s.silence = 0
	switch a.answer.Verdict {
	case stream.PlaceOver:
		s.over = true
		s.repeat(a.users, now, a.lease)
	case stream.PlaceWait:
		s.repeat(a.users, now, min(a.answer.Time, mostRefused))
	case stream.PlaceGranted:
		n := min(int(a.answer.Users), a.users)
		s.repeat(a.users-n, now, a.lease/4)
		a.users, a.lease = n, min(a.lease, a.answer.Time)
		s.placed = append(s.placed, a)
		slices.SortFunc(s.placed, func(a, b *ask) int { return a.asked.steady.Compare(b.asked.steady) })
	}
}
