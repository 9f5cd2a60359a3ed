package stage

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// opening puts the Open of a new attempt. A number that is taken is somebody's dead attempt: take the next one, with
// a fresh key and floor.
type opening struct {
	*environment
	attempt *attempt
	data    []byte
}

func openAttempt(e *environment, r round, number stream.Attempt, now time.Time) (phase, error) {
	if err := e.knows(r); err != nil {
		return nil, err
	}
	a, err := newAttempt(e, r, number, now)
	if err != nil {
		return nil, err
	}
	data, err := a.open()
	if err != nil {
		a.erase()
		return nil, err
	}
	return &opening{environment: e, attempt: a, data: data}, nil
}

func (p *opening) String() string {
	return fmt.Sprintf("opening attempt %d at round %d", p.attempt.number, p.attempt.round.number)
}

func (p *opening) abandon() { p.attempt.erase() }

func (p *opening) next(time.Time) effects {
	return effects{call: put, subject: p.Task.Open(p.attempt.round.number, p.attempt.number), data: p.data, needs: leased,
		drains: true}
}

func (p *opening) handle(now time.Time, _ effects, r result) (phase, error) {
	a := p.attempt
	if !r.put.Ours {
		p.abandon()
		_, err := p.read(&r.put.Standing, p.Identity.Public(), new(wire.Open))
		if err != nil {
			p.Logger.Warn("an Open that this stage did not sign", "error", err)
		}
		if errors.Is(err, seal.ErrNotWritten) {
			return passOn(p.environment, a.round, a.number+1, now)
		}
		return openAttempt(p.environment, a.round, a.number+1, now)
	}
	p.foreign = 0
	a.opened = r.put.Standing.Sequence
	if p.leftBehind(p.last, a.opened) {
		p.abandon()
		p.Logger.Error("others have worked on for long since this process looked: dropped an attempt at an old round",
			"round", a.round.number)
		return &seeking{environment: p.environment}, nil
	}
	p.last = a.opened
	p.Logger.Info("opened", "round", a.round.number, "attempt", a.number, "cohort", a.round.mixer.Cohort)
	if a.number > 1 && p.floors() {
		p.Logger.Warn(
			"an earlier attempt died, and somebody who looked at it saw its totals: its users drop out, others have to take their places",
			"round", a.round.number, "attempt", a.number)
	}
	observe.Tell2(p.Observer.Opened, a.round.number, a.number)
	return &collecting{environment: p.environment, attempt: a, open: p.data, look: now.Add(p.jittered()),
		again: now.Add(p.lease.patience())}, nil
}

// passing waits before it opens the attempt after a number that somebody else has taken.
type passing struct {
	stateless
	*environment
	round
	attempt stream.Attempt
	until   time.Time
}

// passOn returns the phase that opens the next attempt after a number under which the broker has a record that this
// stage did not sign. The first such number in a row is passed at once, later ones after longer each time, so that a
// broker with such records under every number keeps nobody busy.
func passOn(e *environment, r round, number stream.Attempt, now time.Time) (phase, error) {
	e.foreign++
	if e.foreign == 1 {
		return openAttempt(e, r, number, now)
	}
	return &passing{environment: e, round: r, attempt: number, until: now.Add(split.After(e.foreign - 2))}, nil
}

func (p *passing) String() string {
	return fmt.Sprintf("about to open attempt %d at round %d", p.attempt, p.number)
}

func (p *passing) next(time.Time) effects { return effects{call: wait, until: p.until, needs: leased} }

func (p *passing) handle(now time.Time, _ effects, _ result) (phase, error) {
	if now.Before(p.until) {
		return p, nil // woken
	}
	return openAttempt(p.environment, p.round, p.attempt, now)
}

// collecting takes reports until the cohort is full, or the deadline has passed, the minimum is there and no more come
// (attempt.ripe). Under the minimum it goes on for ever, unless the round turns out to have its outcome, or the
// learner ends the task.
//
// The round may have its outcome already: a replica that lags may have hidden from settling and inspecting the batch
// and the claim of an earlier life. Its users have their Close and will not come again.
type collecting struct {
	*environment
	attempt *attempt
	open    []byte    // the Open on the broker
	again   time.Time // when it is looked for
	lost    bool      // the Open is not there: it is put again if its round is there
	stands  bool      // the round was there when the Open was not
	gone    time.Time // when we stop waiting for a missing round; zero: it was there at the last look
	look    time.Time // next look at the records
	looks   int       // done of this one, which is of three: the outcome, End, the queue
	quiet   int       // such looks in a row, while no report came and nothing was announced
	seen    uint64    // messages that were examined before the last one
	expires time.Time // of our patience with a task that has ended after this round
	forged  bool      // it was logged that a record is not its writer's
	starved bool      // it was logged that the minimum is not there at the deadline
	joining time.Time // when the helper's Join is looked for next, until it has joined
}

func (p *collecting) String() string {
	if p.attempt.unjoined() {
		return fmt.Sprintf("waiting for the helper to join round %d, attempt %d", p.attempt.round.number, p.attempt.number)
	}
	return fmt.Sprintf("collecting round %d, attempt %d", p.attempt.round.number, p.attempt.number)
}

// Looks at the records in a row that found nothing, after which they are rarer: half as often each time, and at most so
// often in half.
const (
	quietLooks = 4
	mostHalves = 3
)

// idle returns the time until the next look at the records: a period, or more of them where no report came for some
// looks and the broker announces records.
func (p *collecting) idle() time.Duration {
	came := p.backlog.examined != p.seen
	p.seen = p.backlog.examined
	if p.quiet++; came || !p.wakes || p.attempt.pair != nil {
		p.quiet = 0
	}
	return p.jittered() << min(max(p.quiet-quietLooks, 0), mostHalves)
}

func (p *collecting) abandon() {
	p.attempt.erase()
	p.Logger.Warn("dropped an attempt with its totals and key", "round", p.attempt.round.number, "attempt",
		p.attempt.number)
	observe.Tell2(p.Observer.Dropped, p.attempt.round.number, p.attempt.number)
}

func (p *collecting) next(now time.Time) effects {
	todo := effects{call: collect, until: now.Add(p.Poll), needs: leased, attempt: p.attempt, drains: true}
	if p.attempt.unjoined() {
		todo.call, todo.until = wait, p.joining
		if !now.Before(p.joining) {
			todo.call, todo.subject = get, p.Task.Join(p.attempt.round.number, p.attempt.number)
			return todo
		}
	}
	switch {
	case now.Before(p.look):
	case p.looks == 0:
		todo.call, todo.subject = get, p.Task.Batch(p.attempt.round.number)
	case p.looks == 1:
		todo.call, todo.subject = get, p.Task.End()
	case p.lost && !p.stands:
		todo.call, todo.subject = get, p.Task.Round(p.attempt.round.number)
	case p.lost:
		todo.call, todo.subject, todo.data = put, p.Task.Open(p.attempt.round.number, p.attempt.number), p.open
	case !now.Before(p.again):
		todo.call, todo.subject = latest, p.Task.Opens(p.attempt.round.number)
	default:
		todo.call = queued
	}
	if at := p.attempt.term.changesAt(now, p.attempt.lives); at.After(now) && at.Before(todo.until) {
		todo.until = at
	}
	return todo
}

func (p *collecting) handle(now time.Time, did effects, r result) (phase, error) {
	a := p.attempt
	if a.pair != nil {
		if next, err := p.shared(now, did, r); next != phase(p) || err != nil {
			return next, err
		}
	}
	switch {
	case did.call == wait, did.subject == p.Task.Join(a.round.number, a.number):
		return p, nil
	case did.call == collect:
		if r.woken {
			p.quiet = 0
			if soon := now.Add(p.jittered()); soon.Before(p.look) {
				p.look = soon
			}
		}
		observe.Tell2(p.Observer.Fill, a.users(), a.round.mixer.Cohort)
		p.starving(now)
	case did.call == queued:
		p.looks, p.look = 0, now.Add(p.idle())
	case did.call == latest, did.call == put:
		return p.reopened(now, did, r), nil
	case p.looks == 2 && did.call == get:
		return p.unopened(now, r), nil
	case p.looks == 0:
		p.looks++
		if r.message != nil {
			next, err := closeRound(p.environment, r.message, 0)
			if err := p.passOver(err); err != nil || next == nil {
				return p, err
			}
			p.abandon()
			return next, nil
		}
		return p, nil
	default:
		p.looks++
		if r.message != nil {
			next, err := p.endOr(r.message, a.round.number, p)
			if errors.Is(err, seal.ErrNotWritten) {
				return p, p.passOver(err)
			}
			if err == nil && next == phase(p) {
				next = p.decided(now)
			}
			if err == nil && next != phase(p) {
				p.abandon()
			}
			return next, err
		}
	}
	switch {
	case a.unjoined():
		return p, nil
	case !a.ripe(now):
		return p.flooded(now)
	}
	if a.pair != nil {
		ending, err := a.prepare()
		if err != nil {
			return nil, err
		}
		out := &finishing{environment: p.environment, round: a.round, ending: ending, instance: a.pair.instance,
			started: a.term.started, opened: a.opened}
		return out.step(now)
	}
	out, err := a.close()
	if err != nil {
		return nil, err
	}
	return &marking{environment: p.environment, release: out}, nil
}

// flooded ends an attempt if its places are not used, or if nobody requests any: the next attempt keeps places for
// longer, or opens without places. Under the trusts with floors the users of a flooded attempt could not come again, so
// it goes on.
func (p *collecting) flooded(now time.Time) (phase, error) {
	a := p.attempt
	if a.pair != nil && a.pair.silent(now) {
		return p, nil // reports that wait for the helper blame no device
	}
	if p.places.unheard(a.table, now) {
		p.Logger.Warn("nobody has asked for a place: nobody is there, or the broker does not let devices ask. "+
			"Opening the round again without places", "round", a.round.number, "attempt", a.number, "subject", p.Task.Places())
		p.abandon()
		return openAttempt(p.environment, a.round, a.number+1, now)
	}
	flooded, off := p.places.flood(a.table, now, a.deadline)
	switch {
	case !flooded:
		return p, nil
	case off:
		p.Logger.Warn("most places that were given are not used: somebody asks for places to keep others away, or devices "+
			"are slower than places can last. Attempts open without places for an hour; "+hostile,
			"round", a.round.number, "attempt", a.number, "ends_now", !p.floors())
	default:
		p.Logger.Warn("most places that were given are not used: devices are slower than places last, or somebody asks for "+
			"places to keep others away. The next attempt keeps them as long as it can",
			"round", a.round.number, "attempt", a.number, "lease", a.table.lease, "ends_now", !p.floors())
	}
	if p.floors() {
		return p, nil
	}
	p.abandon()
	return openAttempt(p.environment, a.round, a.number+1, now)
}

// decided handles that the task has ended after this round, or a later one: the round had its outcome. Unless a replica
// lags, the broker lost that, and nobody needs it any more.
func (p *collecting) decided(now time.Time) phase {
	if p.expires.IsZero() {
		p.expires = now.Add(p.lease.patience())
	}
	if now.Before(p.expires) {
		return p
	}
	p.Logger.Warn("the task has ended, and the broker lost the outcome of a round", "round", p.attempt.round.number)
	return &settling{environment: p.environment, number: p.attempt.round.number + 1}
}

// passOver returns err, or nil if err is about a record that its writer did not write. The stage takes reports while
// the broker shows such a record, and reads it again at the next look.
func (p *collecting) passOver(err error) error {
	if !errors.Is(err, seal.ErrNotWritten) {
		return err
	}
	if !p.forged {
		p.forged = true
		p.Logger.Warn("the broker shows a record that its writer did not write, which is passed over", "error", err)
	}
	return nil
}

// reopened looks at the newest Open of the round, now and then. An Open that the broker lost is put again, because
// devices that have not received it could never join. Another process can open the round after us if the broker lost
// the lease; devices then send to that process, and not to us.
func (p *collecting) reopened(now time.Time, did effects, r result) phase {
	newest, ours := p.attempt.number, r.put.Ours
	if did.call == latest {
		newest = p.newestAttempt(r.message)
		ours = newest == p.attempt.number && bytes.Equal(r.message.Data, p.open)
	}
	switch p.lost = !ours && newest < p.attempt.number; {
	case ours:
		p.stands, p.again = false, now.Add(p.lease.patience())
	case !p.lost:
		p.abandon()
		return &seeking{environment: p.environment}
	}
	return p
}

// unopened takes the result of reading a round after its Open was lost. A learner that waits for the round puts it
// again, so the stage looks for longer than that takes. If the round stays away, or is another, the broker was put back
// to before it.
func (p *collecting) unopened(now time.Time, r result) phase {
	read, err := round{}, error(nil)
	if r.message != nil {
		read, err = p.readRound(r.message)
	}
	if r.message != nil && !errors.Is(err, seal.ErrNotWritten) {
		p.stands, p.gone = err == nil && read.manifest == p.attempt.round.manifest, time.Time{}
		if p.stands {
			return p
		}
	} else if p.gone.IsZero() {
		p.gone = now.Add(2 * p.lease.patience())
	}
	if now.Before(p.gone) {
		p.looks, p.look = 0, now.Add(p.jittered())
		return p
	}
	p.abandon()
	return &seeking{environment: p.environment}
}

// starving logs once that users are missing past the deadline: without that line the stage would look as if it hung.
func (p *collecting) starving(now time.Time) {
	at, m, users := p.attempt.term.deadlineAt(), p.attempt.round.mixer, p.attempt.users()
	if p.starved || at.IsZero() || now.Before(at) || users >= m.Minimum {
		return
	}
	p.starved = true
	p.Logger.Warn("the deadline is over, and reports are missing; the round waits for its minimum", "round",
		p.attempt.round.number,
		"attempt", p.attempt.number, "reports", users, "minimum", m.Minimum, "cohort", m.Cohort)
}
