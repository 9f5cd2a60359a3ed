package stage

import (
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// sharing is collecting in several shards. The owner counts shard 1 itself, listens to the others, and moves what each
// may still count to where users wait, so that all together meet the cohort exactly. See apportion.go for the caps.
type sharing struct {
	*collecting // looks whether an outcome stands already
	shelf
	crew   []*member
	shares []share // as of the standing table; the first is our own
	caps   []uint64
	number uint64
	data   []byte // of a table that does not stand yet
	frozen bool   // it is the last one
	ear    int    // the member being listened to
	listen time.Time
}

func startSharing(c *collecting, crew []*member, now time.Time) (phase, error) {
	a := c.attempt
	p := &sharing{collecting: c, crew: crew, listen: now}
	for _, m := range crew {
		m.heard = now // they had nothing to say while the Open was put
	}
	return p, p.draw(apportion(a.round.mixer.Cohort, max(a.round.mixer.MaxBundle, 1), len(crew)+1), false)
}

func (p *sharing) String() string {
	return fmt.Sprintf("%v in %d shards", p.collecting, len(p.crew)+1)
}

func (p *sharing) abandon() {
	p.shelf.clear()
	p.collecting.abandon()
}

// draw makes the next table.
func (p *sharing) draw(caps []uint64, frozen bool) (err error) {
	a := p.attempt
	p.number++
	p.caps, p.frozen = caps, frozen
	p.data, err = p.Identity.Sign(&wire.Quota{
		Version: stream.Version, TaskHash: p.taskHash[:], Round: a.round.number, Attempt: a.number, ManifestHash: a.manifest[:],
		Owner: p.Instance[:], Number: p.number, Caps: caps, Frozen: frozen,
	})
	return err
}

func (p *sharing) next(now time.Time) step {
	switch {
	case p.data != nil:
		return p.table.next(p.data)
	case !now.Before(p.listen):
		return step{verb: get, subject: p.Task.Seat(p.crew[p.ear].seat)}
	case !now.Before(p.look):
		return p.collecting.next(now)
	}
	return p.shelf.next(p.attempt, p.Prefetch, p.due())
}

// due is when something else is to be done than counting.
func (p *sharing) due() time.Time {
	if p.look.Before(p.listen) {
		return p.look
	}
	return p.listen
}

func (p *sharing) busy(now time.Time) bool { return !now.Before(p.due()) }

func (p *sharing) took(now time.Time, s step, r result) (phase, error) {
	switch {
	case p.data != nil:
		if p.table.took(s, r, p.data) {
			return p.stands(now)
		}
		return p, nil
	case s.subject == p.Task.Seat(p.crew[p.ear].seat):
		p.crew[p.ear].listen(p.facts, now, p.attempt, r.message)
		if p.ear++; p.ear < len(p.crew) {
			return p, nil
		}
		p.ear, p.listen = 0, now.Add(p.beat())
		return p.judge(now)
	case s.verb == get:
		next, err := p.collecting.took(now, s, r)
		if next == phase(p.collecting) {
			next = p
		}
		return next, err
	}
	return p, nil
}

// stands is called when everybody can read the newest table.
func (p *sharing) stands(now time.Time) (phase, error) {
	p.data = nil
	if p.frozen {
		p.shelf.clear()
		return &gathering{sharing: p}, nil
	}
	if p.shares == nil {
		p.shares = make([]share, len(p.caps))
	}
	for i, c := range p.caps {
		p.shares[i].cap = c
	}
	p.attempt.limit = p.caps[0]
	return p, nil
}

// judge decides what follows from what was heard.
func (p *sharing) judge(now time.Time) (phase, error) {
	a, obeyed := p.attempt, true
	p.shares[0].users, p.shares[0].hungry = a.mixer.Users(), a.full() && !p.empty()
	total := a.mixer.Users()
	for i, m := range p.crew {
		if m.left || m.missing(p.facts, now) {
			p.Logger.Warn("a worker is gone, and the attempt with it", "round", a.round.number, "attempt", a.number, "shard", i+2)
			return p.again(now)
		}
		p.shares[i+1].users, p.shares[i+1].hungry = m.users, m.hungry
		total += m.users
		obeyed = obeyed && m.obeys == p.number
	}
	tell2(p.Observer.Fill, total, a.round.mixer.Cohort)
	p.starving(now, total)
	for i, s := range p.shares {
		tell3(p.Observer.Shard, uint32(i+1), s.users, s.cap)
	}
	if a.enough(now, total) {
		return p, p.draw(p.caps, true)
	}
	if obeyed {
		caps, changed := rebalance(a.round.mixer.Cohort, max(a.round.mixer.MaxBundle, 1), p.shares)
		if changed {
			return p, p.draw(caps, false)
		}
	}
	return p, nil
}

// again gives the attempt up: the round needs another one, under fresh keys for all.
func (p *sharing) again(time.Time) (phase, error) {
	p.abandon()
	return &inspecting{facts: p.facts, round: p.attempt.round}, nil
}

// gathering takes the parts of a frozen attempt together. Its own totals are part of what is erased if one is missing.
type gathering struct {
	*sharing
	pausing
	word bool // the seat of the member is read, after its part was not there
}

func (p *gathering) String() string {
	return fmt.Sprintf("gathering the shards of round %d, attempt %d", p.attempt.round.number, p.attempt.number)
}

func (p *gathering) next(time.Time) step {
	switch m := p.crew[p.ear]; {
	case p.pending():
		return p.wait()
	case p.word:
		return step{verb: get, subject: p.Task.Seat(m.seat)}
	default:
		return step{verb: get, subject: p.Task.Part(m.seat)}
	}
}

func (p *gathering) took(now time.Time, s step, r result) (phase, error) {
	m := p.crew[p.ear]
	switch {
	case s.verb == wait:
		p.until = time.Time{}
		return p, nil
	case !p.word:
		if err := p.attempt.gather(m, uint32(p.ear+2), r.message); err != nil {
			p.Logger.Warn("a part does not fit its attempt", "round", p.attempt.round.number, "shard", p.ear+2, "error", err)
		}
		p.word = !m.done
	default:
		p.word = false
		m.listen(p.facts, now, p.attempt, r.message)
		if m.missing(p.facts, now) {
			p.Logger.Warn("a worker is gone with its part, and the attempt with it", "round", p.attempt.round.number, "shard", p.ear+2)
			return p.again(now)
		}
		p.until = now.Add(p.beat())
	}
	for i, m := range p.crew {
		if !m.done {
			if !p.word {
				p.ear = i
			}
			return p, nil
		}
	}
	out, err := p.attempt.close()
	if err != nil {
		return nil, err
	}
	return &claiming{facts: p.facts, release: out}, nil
}

// status tells how far all shards are.
func (p *sharing) status(s *Status) {
	a := p.attempt
	s.Round, s.Attempt, s.Shard = a.round.number, a.number, a.context.Shard
	s.Cohort, s.Minimum, s.Deadline = a.round.mixer.Cohort, a.round.mixer.Minimum, a.deadlineAt()
	s.Shards = []uint64{a.mixer.Users()}
	for _, m := range p.crew {
		s.Shards = append(s.Shards, m.users)
		if m.done {
			s.Shards[0] -= m.users
		}
	}
	for _, n := range s.Shards {
		s.Users += n
	}
}
