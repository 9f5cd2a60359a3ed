package stage

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// seating looks for a free seat: a place to speak as a worker. It is where a process without the lease begins, if the
// stage shares its rounds. A seat is taken as a lease is: by compare-and-set, when it was silent for the lease's time.
type seating struct {
	stateless
	*facts
	pausing
	number uint32 // being looked at
	seen   map[uint32]sighting
	take   bool // the seat is free: write to it
	desk   register
}

// sighting is when this process first saw what stands on a seat.
type sighting struct {
	sequence uint64
	at       time.Time
}

func standBy(f *facts) phase { return &seating{facts: f, number: 1, seen: map[uint32]sighting{}} }

func (*seating) String() string   { return (*seeking)(nil).String() }
func (*seating) footing() footing { return aside }

func (p *seating) next(time.Time) step {
	switch {
	case p.pending():
		return p.wait()
	case p.take:
		return p.desk.next(p.idle())
	}
	return step{verb: get, subject: p.Task.Seat(p.number)}
}

func (p *seating) idle() []byte {
	data, err := p.Identity.Sign(&wire.Seat{Version: stream.Version, TaskHash: p.taskHash[:], Seat: p.number, Instance: p.Instance[:], Beat: 1})
	if err != nil {
		panic(fmt.Sprintf("an idle seat cannot be signed: %v", err))
	}
	return data
}

func (p *seating) took(now time.Time, s step, r result) (phase, error) {
	switch {
	case s.verb == wait:
		p.until = time.Time{}
		return p, nil
	case p.take:
		if p.desk.took(s, r, p.idle()) {
			b := &bench{facts: p.facts, register: p.desk, number: p.number, beats: 1, sent: now}
			return &attending{bench: b}, nil
		}
		p.take = false // somebody was faster; look again
		return p, nil
	case p.free(now, r.message):
		p.take, p.desk = true, register{subject: s.subject, known: true}
		if r.message != nil {
			p.desk.sequence = r.message.Sequence
		}
		return p, nil
	}
	if p.number++; int(p.number) >= p.Workers {
		p.number, p.until = 1, now.Add(p.pause())
	}
	return p, nil
}

// free says whether nobody sits there: it is empty, or its worker has the lease now, or was silent for long enough.
func (p *seating) free(now time.Time, m *stream.Message) bool {
	if m == nil || len(m.Data) == 0 {
		return true
	}
	if last := p.seen[p.number]; last.sequence != m.Sequence {
		p.seen[p.number] = sighting{m.Sequence, now}
	}
	if word, ok := hear(p.facts, m, new(wire.Seat)); ok && p.lease.holder == [stream.InstanceSize]byte(word.Instance) {
		return true
	}
	return !now.Before(p.seen[p.number].at.Add(p.LeaseTTL))
}

// A bench is a worker's seat, and what it hears from the owner of the attempt.
type bench struct {
	*facts
	register
	number uint32
	beats  uint64
	said   *wire.Seat // what stands, but for the beat
	sent   time.Time  // when it stood
	look   time.Time  // next look at the table
	quota  *wire.Quota
}

// lapsed says that the worker could not be heard for so long that the owner has given it up.
func (b *bench) lapsed(now time.Time) bool { return now.After(b.sent.Add(b.LeaseTTL)) }

// due is the next time at which there is something to say or to hear, whatever else happens.
func (b *bench) due() time.Time {
	if renew := b.sent.Add(b.LeaseTTL / 4); renew.Before(b.look) {
		return renew
	}
	return b.look
}

// next says word, where that is new or long ago, and reads the table when it is time.
func (b *bench) next(now time.Time, word *wire.Seat, hurry bool) (todo step, ok bool) {
	fresh := !proto.Equal(word, b.said)
	switch {
	case fresh && (hurry || !now.Before(b.sent.Add(b.beat()))), !now.Before(b.sent.Add(b.LeaseTTL / 4)):
		return b.register.next(b.sign(word)), true
	case !now.Before(b.look):
		return step{verb: get, subject: b.Task.Quota()}, true
	}
	return step{}, false
}

func (b *bench) sign(word *wire.Seat) []byte {
	said := proto.Clone(word).(*wire.Seat)
	said.Version, said.TaskHash, said.Seat, said.Instance, said.Beat = stream.Version, b.taskHash[:], b.number, b.Instance[:], b.beats+1
	data, err := b.Identity.Sign(said)
	if err != nil {
		panic(fmt.Sprintf("a worker's word cannot be signed: %v", err))
	}
	return data
}

// took is told what came of a step of next. It answers the phase for a worker that lost its seat, else nil.
func (b *bench) took(now time.Time, s step, r result, word *wire.Seat) phase {
	if s.subject == b.Task.Quota() {
		b.look = now.Add(b.beat())
		if q, ok := hear(b.facts, r.message, new(wire.Quota)); ok {
			b.quota = q
		}
		return nil
	}
	if b.register.took(s, r, b.sign(word)) {
		b.beats++
		b.said, b.sent = proto.Clone(word).(*wire.Seat), now
		return nil
	}
	if s.verb == get {
		if w, ok := hear(b.facts, r.message, new(wire.Seat)); ok && [stream.InstanceSize]byte(w.Instance) != b.Instance {
			b.Logger.Warn("another process took the seat of this worker", "seat", b.number)
			return standBy(b.facts)
		}
		// Ours, but older than what we tried to say.
	}
	return nil
}

// woken makes the worker look at once: an Open may be there.
func (b *bench) woken() { b.look = time.Time{} }

// gone says that the process which owned an attempt does not hold the lease any more. That it may not hold it is not
// enough: then this process tries to take the lease, and finds out.
func (b *bench) gone(owner []byte) bool {
	return b.lease.sequence != 0 && b.lease.holder != [stream.InstanceSize]byte(owner)
}

// calls says whether the table is of the attempt.
func calls(q *wire.Quota, r round, attempt uint64, owner []byte) bool {
	return q != nil && q.Round == r.number && q.Attempt == attempt && string(q.Owner) == string(owner)
}

// leave empties the seat, so that another worker need not wait for it.
func (b *bench) leave() step {
	return step{verb: swap, subject: b.subject, expects: b.sequence}
}
