package stage

import (
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// opening puts the Open of a new attempt. A number that is taken is somebody's dead attempt: take the next one, with
// a fresh key and floor.
type opening struct {
	*facts
	attempt *attempt
	data    []byte
}

func startOpening(f *facts, r round, number uint64, now time.Time) (phase, error) {
	a, err := newAttempt(f, r, number, now)
	if err != nil {
		return nil, err
	}
	data, err := a.open()
	if err != nil {
		a.erase()
		return nil, err
	}
	return &opening{facts: f, attempt: a, data: data}, nil
}

func (p *opening) String() string {
	return fmt.Sprintf("opening attempt %d at round %d", p.attempt.number, p.attempt.round.number)
}
func (*opening) footing() footing { return leased }
func (p *opening) abandon()       { p.attempt.erase() }

func (p *opening) next(time.Time) step {
	return step{verb: put, subject: p.Task.Open(stream.Round(p.attempt.round.number), stream.Attempt(p.attempt.number)), data: p.data}
}

func (p *opening) took(now time.Time, _ step, r result) (phase, error) {
	a := p.attempt
	if !r.put.Ours {
		p.abandon()
		if _, err := p.read(&r.put.Standing, p.Identity.Public(), new(wire.Open)); err != nil {
			p.Logger.Warn("an Open that this stage did not sign", "error", err)
		}
		return startOpening(p.facts, a.round, a.number+1, now)
	}
	p.Logger.Info("opened", "round", a.round.number, "attempt", a.number, "cohort", a.round.mixer.Cohort)
	if a.number > 1 && p.floors() {
		p.Logger.Warn("an earlier attempt died, and whoever looked at it saw its totals: its users drop out, others have to take their places",
			"round", a.round.number, "attempt", a.number)
	}
	tell2(p.Observer.Opened, a.round.number, a.number)
	return &collecting{facts: p.facts, attempt: a, look: now.Add(p.pause())}, nil
}

// collecting takes reports until the cohort is full, or the deadline has passed and the minimum is there. Under the
// minimum it goes on for ever, unless the round turns out to have its outcome, or the learner ends the task.
//
// An outcome may stand already: what settling and inspecting did not find decides nothing, and a replica that lags may
// have hidden the batch and the claim of the life before. Its users have their Close and will not come again.
type collecting struct {
	*facts
	attempt *attempt
	look    time.Time // next look at the records
	noBatch bool      // the outcome was not there; End is next
	starved bool      // it was said that the minimum is not there at the deadline
}

func (p *collecting) String() string {
	return fmt.Sprintf("collecting round %d, attempt %d", p.attempt.round.number, p.attempt.number)
}
func (*collecting) footing() footing { return leased }

func (p *collecting) abandon() {
	p.attempt.erase()
	p.Logger.Warn("dropped an attempt with its totals and key", "round", p.attempt.round.number, "attempt", p.attempt.number)
	tell2(p.Observer.Dropped, p.attempt.round.number, p.attempt.number)
}

// starving says once that users are missing past the deadline: nothing else would tell from a stage that hangs.
func (p *collecting) starving(now time.Time) {
	at, m, users := p.attempt.deadlineAt(), p.attempt.round.mixer, p.attempt.mixer.Users()
	if p.starved || at.IsZero() || now.Before(at) || users >= m.Minimum {
		return
	}
	p.starved = true
	p.Logger.Warn("the deadline is over, and users are missing; the round waits for its minimum", "round", p.attempt.round.number,
		"attempt", p.attempt.number, "users", users, "minimum", m.Minimum, "cohort", m.Cohort)
}

func (p *collecting) next(now time.Time) step {
	switch {
	case now.Before(p.look):
	case p.noBatch:
		return step{verb: get, subject: p.Task.End()}
	default:
		return step{verb: get, subject: p.Task.Batch(stream.Round(p.attempt.round.number))}
	}
	s := step{verb: fetch, max: int(min(uint64(p.Prefetch), p.attempt.room())), until: now.Add(p.Poll)}
	if at := p.attempt.deadlineAt(); at.After(now) && at.Before(s.until) {
		s.until = at
	}
	return s
}

// examine is called for each report that a fetch brought, one after the other; false says that no more are wanted.
func (p *collecting) examine(m *stream.Message) (more bool) {
	if p.attempt.mixer.Full() {
		return false
	}
	p.attempt.examine(m)
	return true
}

func (p *collecting) took(now time.Time, s step, r result) (phase, error) {
	switch {
	case s.verb == get && !p.noBatch:
		if r.message != nil {
			p.abandon()
			return finish(p.facts, r.message, 0)
		}
		p.noBatch = true
		return p, nil
	case s.verb == get:
		p.noBatch, p.look = false, now.Add(p.pause())
		if r.message != nil {
			next, err := p.endOr(r.message, p.attempt.round.number, p)
			if err == nil && next != p {
				p.abandon()
			}
			return next, err
		}
	default:
		tell2(p.Observer.Fill, p.attempt.mixer.Users(), p.attempt.round.mixer.Cohort)
		p.starving(now)
	}
	if !p.attempt.ripe(now) {
		return p, nil
	}
	out, err := p.attempt.close()
	if err != nil {
		return nil, err
	}
	return &claiming{facts: p.facts, release: out}, nil
}
