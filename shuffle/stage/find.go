package stage

import (
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// seeking finds where to begin. A stage without the lease stays in this phase.
type seeking struct {
	stateless
	*environment
	pause
	looked bool         // the marks were read
	shown  *round       // by the look over all rounds, which may be an old one
	hint   stream.Round // the round that is read then
}

// putAgain bounds the number of old rounds that may be put again one after the other: the newest round is looked for
// this far below the place of the last.
const putAgain = 8

// seek is the name of seeking in Status.
const seek = "seeking"

func (*seeking) String() string { return seek }

func (p *seeking) next(time.Time) effects {
	switch {
	case p.pending():
		return p.rest()
	case p.shown != nil:
		return effects{call: get, subject: p.Task.Round(p.hint), needs: leased}
	case !p.looked:
		return effects{call: marked, needs: leased}
	}
	return effects{call: latest, subject: p.Task.Rounds(), needs: leased}
}

// handle looks for the newest round. All rounds before it are decided, because the learner announces a round only when
// it has the batch of the round before. That batch may lack its Close, so work begins one round earlier.
//
// The broker shows the round that was put last. It may be an old one, put again by a learner who was away after
// retention had removed it. So the round of the last lease is read too and, if the place of the shown round reveals
// that it was put again, the round that was put before it. The stage never goes on from a round that was put again:
// another batch of it would be a second release.
//
// If the marks, or this process, know a round after the newest, the broker is older than they are: see [older].
func (p *seeking) handle(now time.Time, did effects, r result) (phase, error) {
	if did.call == wait {
		p.over()
		return p, nil
	}
	if p.shown == nil && !p.looked {
		p.looked = true
		p.older.reached = max(p.older.reached, r.marked)
		return p, nil
	}
	p.last = 0
	newest := p.shown
	if r.message != nil {
		read, err := p.readRound(r.message)
		if err != nil {
			return nil, err
		}
		newest = &read
	}
	switch {
	case newest == nil:
		p.older.shows(p.environment, now, 0)
		return &settling{environment: p.environment, number: 1}, nil
	case p.shown == nil && max(p.lease.told, newest.before) > newest.number:
		p.shown, p.hint = newest, max(p.lease.told, newest.before)
		return p, nil
	case newest.before > 0 && p.hint > p.shown.before:
		p.hint = p.shown.before
		return p, nil
	case newest.before > 0 && p.hint > max(p.shown.number, p.shown.before-putAgain):
		p.hint--
		return p, nil
	case newest.before > 0:
		p.Logger.Error(
			"the broker shows an old round as the newest, put again where it had been removed, and no round before it: waiting for a newer one",
			"round", newest.number)
		p.shown, p.looked, p.until = nil, false, now.Add(p.jittered())
		return p, nil
	}
	p.older.shows(p.environment, now, newest.number)
	return &settling{environment: p.environment, number: max(1, newest.number-1), announced: newest.number}, nil
}

// settling reads whether a round has its outcome already. If the batch of a decided round is missing, settling keeps
// reading for a while: a replica may lag, and without its Close the round's devices would never learn their outcomes.
type settling struct {
	stateless
	*environment
	pause
	number    stream.Round
	announced stream.Round // the learner has the outcome of every round before it
	expires   time.Time    // of our patience with a decided round
}

func (p *settling) String() string { return fmt.Sprintf("settling round %d", p.number) }

func (p *settling) next(time.Time) effects {
	if p.pending() {
		return p.rest()
	}
	return effects{call: get, subject: p.Task.Batch(p.number), needs: leased}
}

func (p *settling) handle(now time.Time, did effects, r result) (phase, error) {
	switch {
	case did.call == wait:
		p.over()
		return p, nil
	case r.message != nil:
		return closeRound(p.environment, r.message, p.announced)
	case p.number < p.announced:
		if p.expires.IsZero() {
			p.expires = now.Add(p.lease.patience())
		}
		if now.Before(p.expires) {
			p.until = now.Add(min(p.jittered(), p.expires.Sub(now)))
			return p, nil
		}
		// Decided, and gone from the broker: a void batch now would contradict the batch that the learner applied.
		p.Logger.Warn("the batch of a decided round is missing at the broker", "round", p.number)
		return &settling{environment: p.environment, number: p.number + 1, announced: p.announced}, nil
	}
	return &awaiting{environment: p.environment, number: p.number}, nil
}

// awaiting waits for the learner to announce a round, or to end the task.
type awaiting struct {
	stateless
	*environment
	pause
	number  stream.Round
	noEnd   bool      // the round was not there; End is next
	expires time.Time // of our patience
}

func (p *awaiting) String() string { return fmt.Sprintf("waiting for round %d", p.number) }

func (p *awaiting) next(time.Time) effects {
	switch {
	case p.pending():
		return p.rest()
	case p.noEnd:
		return effects{call: get, subject: p.Task.End(), needs: leased}
	}
	return effects{call: get, subject: p.Task.Round(p.number), needs: leased}
}

func (p *awaiting) handle(now time.Time, did effects, r result) (phase, error) {
	switch {
	case did.call == wait:
		p.over()
	case !p.noEnd && r.message != nil:
		next, err := p.readRound(r.message)
		if err != nil {
			return nil, err
		}
		if next.before > 0 {
			return &seeking{environment: p.environment}, nil
		}
		p.older.shows(p.environment, now, next.number)
		return p.take(next), nil
	case !p.noEnd:
		p.noEnd = true
	default:
		p.noEnd, p.until = false, now.Add(p.jittered())
		next, over := phase(p), r.message != nil
		if over {
			var err error
			if next, err = p.endOr(r.message, p.number, p); err != nil {
				return nil, err
			}
		}
		if next == phase(p) {
			return p.missing(now, over), nil
		}
		return next, nil
	}
	return p, nil
}

// missing handles that the round is not there. For a while a replica may lag, or the learner be busy; then the broker
// may have lost something. If the task has ended after this round, it lost the round, which nobody needs any more.
// Otherwise it may have lost the outcome of the round before, which the learner waits for, or, if the broker was put
// back, many rounds: the newest is looked for again, and a round that was marked and is gone is void.
func (p *awaiting) missing(now time.Time, over bool) phase {
	if p.expires.IsZero() {
		p.expires = now.Add(p.lease.patience())
	}
	if now.Before(p.expires) {
		return p
	}
	if over {
		p.Logger.Warn("the task has ended, and the broker lost a round of it", "round", p.number)
		return &settling{environment: p.environment, number: p.number + 1}
	}
	return &seeking{environment: p.environment}
}

// endOr returns ended if End ends the task before a round, else the phase given.
func (e *environment) endOr(m *stream.Message, number stream.Round, otherwise phase) (phase, error) {
	var end wire.End
	if _, err := e.read(m, e.learner, &end); err != nil {
		return nil, err
	}
	if stream.Round(end.LastRound) >= number {
		return otherwise, nil
	}
	e.Logger.Info("the task has ended", "last_round", end.LastRound)
	return &ended{}, nil
}

// ended is the last phase: Run returns nil.
type ended struct{ stateless }

func (*ended) String() string                                     { return "ended" }
func (*ended) next(time.Time) effects                             { return effects{call: stop} }
func (p *ended) handle(time.Time, effects, result) (phase, error) { return p, nil }

// inspecting looks for what earlier processes left of a round: a mark, a claim, a Close, reports for dead attempts or
// for none. A record that it does not find decides nothing: Open and Claim are compare-and-set writes.
type inspecting struct {
	stateless
	*environment
	round
	looked   bool         // marked is known
	marked   stream.Round // the highest one
	claimed  bool         // no claim was found
	counted  bool         // attempts is known
	attempts stream.Attempt
	attempt  stream.Attempt // being looked at
	folder   bool           // the folder of a leader was looked into since something was found
	clearing                // once no attempt is left
}

func (p *inspecting) String() string { return fmt.Sprintf("inspecting round %d", p.number) }

func (p *inspecting) next(time.Time) effects {
	switch {
	case !p.looked:
		return effects{call: marked, needs: leased}
	case !p.claimed:
		return effects{call: get, subject: p.Task.Claim(p.number), needs: leased}
	case !p.counted:
		return effects{call: latest, subject: p.Task.Opens(p.number), needs: leased}
	case p.marked >= p.number:
		return effects{call: mark, round: p.marked + 1, owner: p.Instance, needs: leased}
	case p.attempt <= p.attempts:
		return effects{call: get, subject: p.Task.Close(p.number, p.attempt), needs: leased}
	}
	return p.clearing.next()
}

func (p *inspecting) handle(now time.Time, did effects, r result) (phase, error) {
	switch {
	case !p.looked:
		if p.looked, p.marked = true, r.marked; p.marked >= p.number && p.looksAgain() {
			return &looking{environment: p.environment, round: p.round, again: true}, nil
		}
		return p, nil
	case !p.claimed:
		if r.message != nil && p.looksAgain() {
			return &looking{environment: p.environment, round: p.round, again: true}, nil
		}
		if r.message != nil {
			return contest(p.environment, p.round, r.message, now)
		}
		p.claimed = true
		return p, nil
	case !p.counted:
		p.counted, p.attempt, p.attempts = true, 1, p.newestAttempt(r.message)
		// A process that died between mark and claim leaves the attempt. A broker that was put back shows less.
		back := p.marked > p.number || p.attempts == 0 || p.older.reached > p.marked
		if p.marked >= p.number && (p.older.barred >= p.marked || !back) {
			return p.claimedBefore()
		}
	case p.marked >= p.number:
		// The learner may have announced one round more, which no mark knows. Devices that know it answer no other by
		// its number.
		p.older.barred = p.marked + 1
		return p.claimedBefore()
	case p.attempt <= p.attempts:
		if r.message != nil {
			if _, err := p.read(r.message, p.Identity.Public(), new(wire.Close)); err != nil {
				return nil, err
			}
			if p.looksAgain() {
				return &looking{environment: p.environment, round: p.round, again: true}, nil
			}
			return voidRound(p.environment, p.round, p.attempt, voidCloseWithoutBatch)
		}
		p.attempt++
	case p.clearing.handle(did, r):
		return openAttempt(p.environment, p.round, p.attempt, now)
	}
	return p, nil
}

// looksAgain reports whether the folder of a leader is to be looked into before a mark, a claim or a Close has the round
// void. Another process stores a round there before it marks, claims and closes it, and may have done so since this one
// looked.
func (p *inspecting) looksAgain() bool { return p.operators() && !p.folder }

// claimedBefore makes a round void that was claimed according to a mark.
func (p *inspecting) claimedBefore() (phase, error) {
	p.Logger.Error("a round is marked as claimed, and the broker shows no claim", "round", p.number)
	if p.attempts == 0 {
		return voidRound(p.environment, p.round, 1, stream.VoidRoundLost)
	}
	return voidRound(p.environment, p.round, p.attempts, voidClaimLost)
}

// newestAttempt returns the number of the newest known attempt at a round, 0 for none. A hint that does not verify
// counts as none: opening moves past any record.
func (e *environment) newestAttempt(m *stream.Message) stream.Attempt {
	if m == nil {
		return 0
	}
	var open wire.Open
	if _, err := e.read(m, e.Identity.Public(), &open); err != nil {
		e.Logger.Warn("an Open that this stage did not sign", "subject", m.Subject, "error", err)
		return 0
	}
	return stream.Attempt(open.Attempt)
}
