package stage

import (
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// attending is a worker with a seat and no work: it waits for a call.
type attending struct {
	stateless
	*bench
	past [2]uint64 // round and attempt that it is done with
}

func (*attending) String() string   { return "standing by as a worker" }
func (*attending) footing() footing { return aside }

func (p *attending) next(now time.Time) step {
	if todo, ok := p.bench.next(now, &wire.Seat{}, true); ok {
		return todo
	}
	return step{verb: wait, until: p.due()}
}

func (p *attending) took(now time.Time, s step, r result) (phase, error) {
	if s.verb == wait {
		p.woken()
		return p, nil
	}
	if lost := p.bench.took(now, s, r, &wire.Seat{}); lost != nil {
		return lost, nil
	}
	q := p.quota
	switch {
	case q == nil || q.Number != 0 || p.past == [2]uint64{q.Round, q.Attempt}:
	case p.gone(q.Owner):
		p.lease.due = now // the owner may be newer than what we know of the lease
	default:
		return &answering{bench: p.bench, call: q}, nil
	}
	return p, nil
}

// answering is a worker that offers a key for the attempt of a call, made for it alone, and waits for the Open.
type answering struct {
	*bench
	pausing
	call    *wire.Quota
	attempt *attempt // nil until the round was read
	open    bool     // the owner speaks of caps: the Open stands
}

func (p *answering) String() string {
	return fmt.Sprintf("offering itself for attempt %d at round %d", p.call.Attempt, p.call.Round)
}
func (*answering) footing() footing { return aside }

func (p *answering) abandon() {
	if p.attempt != nil {
		p.attempt.erase()
	}
}

// offer is what the seat says.
func (p *answering) offer() *wire.Seat {
	if p.attempt == nil {
		return &wire.Seat{}
	}
	return &wire.Seat{Round: p.call.Round, Attempt: p.call.Attempt, Owner: p.call.Owner, PublicKey: p.attempt.key.Public()}
}

func (p *answering) next(now time.Time) step {
	if todo, ok := p.bench.next(now, p.offer(), true); ok {
		return todo
	}
	switch {
	case now.Before(p.until):
	case p.attempt == nil:
		return step{verb: get, subject: p.Task.Round(stream.Round(p.call.Round))}
	case p.open:
		return step{verb: get, subject: p.Task.Open(stream.Round(p.call.Round), stream.Attempt(p.call.Attempt))}
	}
	return step{verb: wait, until: p.due()}
}

func (p *answering) took(now time.Time, s step, r result) (phase, error) {
	switch s.subject {
	case "":
		p.woken()
	case p.Task.Round(stream.Round(p.call.Round)):
		return p.begin(now, r.message)
	case p.Task.Open(stream.Round(p.call.Round), stream.Attempt(p.call.Attempt)):
		return p.enter(now, r.message)
	default:
		if lost := p.bench.took(now, s, r, p.offer()); lost != nil {
			p.abandon()
			return lost, nil
		}
		switch q := p.quota; {
		case p.gone(p.call.Owner):
			return p.drop()
		case q.Round != p.call.Round || q.Attempt != p.call.Attempt || string(q.Owner) != string(p.call.Owner):
			p.abandon()
			return &attending{bench: p.bench}, nil
		default:
			p.open = q.Number > 0
		}
	}
	return p, nil
}

// drop erases the attempt and does not come back to it.
func (p *answering) drop() (phase, error) {
	p.abandon()
	return &attending{bench: p.bench, past: [2]uint64{p.call.Round, p.call.Attempt}}, nil
}

// begin makes the mixer and the key of this attempt, when its round is known.
func (p *answering) begin(now time.Time, m *stream.Message) (phase, error) {
	if m == nil {
		p.until = now.Add(p.beat())
		return p, nil
	}
	r, err := p.readRound(m)
	if err != nil {
		return nil, err
	}
	if r.manifest != stream.Hash(p.call.ManifestHash) {
		p.Logger.Warn("called for another round of the same number", "round", r.number)
		return p.drop()
	}
	if p.attempt, err = newAttempt(p.facts, r, p.call.Attempt, now); err != nil {
		return nil, err
	}
	return p, nil
}

// enter begins to count, if the Open lists this worker with the key that it made.
func (p *answering) enter(now time.Time, m *stream.Message) (phase, error) {
	if m == nil {
		p.until = now.Add(p.beat())
		return p, nil
	}
	open, ok := hear(p.facts, m, new(wire.Open))
	if !ok || string(open.Instance) != string(p.call.Owner) || stream.Hash(open.ManifestHash) != p.attempt.manifest {
		return p.drop()
	}
	for i, s := range open.Shards {
		if [stream.InstanceSize]byte(s.Instance) != p.Instance {
			continue
		}
		if s.Seat != p.number || string(s.PublicKey) != string(p.attempt.key.Public()) {
			break // listed with the key of an earlier answer, which is gone
		}
		p.attempt.share(i+2, len(open.Shards)+1)
		p.attempt.started = time.UnixMilli(open.StartedUnixMs)
		p.Logger.Info("counting a shard", "round", p.call.Round, "attempt", p.call.Attempt, "shard", i+2)
		return &working{bench: p.bench, attempt: p.attempt, open: open}, nil
	}
	return p.drop() // the owner opened without us
}

// working is a worker that counts its shard, up to the cap of the newest table.
type working struct {
	*bench
	shelf
	attempt *attempt
	open    *wire.Open
	obeys   uint64 // number of the table
}

func (p *working) String() string {
	return fmt.Sprintf("counting shard %d of round %d, attempt %d", p.attempt.context.Shard, p.attempt.round.number, p.attempt.number)
}
func (*working) footing() footing { return aside }

func (p *working) abandon() {
	p.attempt.erase()
	p.shelf.clear()
	p.Logger.Warn("dropped a shard with its totals and key", "round", p.attempt.round.number, "attempt", p.attempt.number)
	tell2(p.Observer.Dropped, p.attempt.round.number, p.attempt.number)
}

// word is what the seat says. A paused worker that has something on its shelf is hungry.
func (p *working) word() *wire.Seat {
	a := p.attempt
	return &wire.Seat{Round: a.round.number, Attempt: a.number, Owner: p.open.Instance, PublicKey: a.key.Public(),
		Quota: p.obeys, Users: a.mixer.Users(), Hungry: a.full() && !p.empty()}
}

// hurry says that the owner waits for what the seat says now.
func (p *working) hurry(word *wire.Seat) bool {
	return p.said == nil || word.Quota != p.said.Quota || word.Hungry != p.said.Hungry
}

func (p *working) next(now time.Time) step {
	word := p.word()
	if todo, ok := p.bench.next(now, word, p.hurry(word)); ok {
		return todo
	}
	if p.obeys == 0 {
		return step{verb: wait, until: p.due()}
	}
	return p.shelf.next(p.attempt, p.Prefetch, p.due())
}

func (p *working) busy(now time.Time) bool { return !now.Before(p.due()) }

func (p *working) examine(m *stream.Message) (more bool) {
	if p.attempt.full() {
		return false
	}
	p.attempt.examine(m)
	return true
}

func (p *working) took(now time.Time, s step, r result) (phase, error) {
	a := p.attempt
	switch s.verb {
	case wait:
		p.woken()
		return p, nil
	case fetch:
		tell3(p.Observer.Shard, a.context.Shard, a.mixer.Users(), a.limit)
		return p, nil
	}
	if lost := p.bench.took(now, s, r, p.word()); lost != nil {
		p.abandon()
		return lost, nil
	}
	switch q := p.quota; {
	case p.gone(p.open.Instance) || !calls(q, a.round, a.number, p.open.Instance):
		p.abandon()
		return &attending{bench: p.bench, past: [2]uint64{a.round.number, a.number}}, nil
	case q.Number <= p.obeys || len(q.Caps) != a.shards:
	case q.Frozen:
		return p.handOver(q.Number)
	default:
		p.obeys, a.limit = q.Number, q.Caps[a.context.Shard-1]
	}
	return p, nil
}

// handOver seals the totals to the owner, and erases them with the key.
func (p *working) handOver(table uint64) (phase, error) {
	p.obeys = table
	word := p.word()
	word.Hungry = false
	p.shelf.clear()
	data, err := p.attempt.part(p.number, p.open.HandoverKey)
	if err != nil {
		return nil, err
	}
	return &handing{bench: p.bench, open: p.open, word: word, data: data, desk: register{subject: p.Task.Part(p.number)}}, nil
}

// handing puts the sealed totals where the owner looks for them. The process has nothing else of the attempt left.
type handing struct {
	stateless
	*bench
	open *wire.Open
	word *wire.Seat
	data []byte
	desk register
}

func (p *handing) String() string {
	return fmt.Sprintf("handing over its shard of round %d", p.open.Round)
}
func (*handing) footing() footing { return aside }

func (p *handing) next(now time.Time) step {
	if todo, ok := p.bench.next(now, p.word, false); ok {
		return todo
	}
	return p.desk.next(p.data)
}

func (p *handing) took(now time.Time, s step, r result) (phase, error) {
	done := &attending{bench: p.bench, past: [2]uint64{p.open.Round, p.open.Attempt}}
	if s.subject == p.desk.subject {
		if p.desk.took(s, r, p.data) {
			return done, nil
		}
		return p, nil
	}
	if lost := p.bench.took(now, s, r, p.word); lost != nil {
		return lost, nil
	}
	if q := p.quota; p.gone(p.open.Instance) || q.Round != p.open.Round || q.Attempt != p.open.Attempt {
		return done, nil
	}
	return p, nil
}
