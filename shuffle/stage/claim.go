package stage

import (
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// claiming takes the right to release. From its first put on, the claim may stand without our knowing; so the phase
// goes on until it knows, even without the lease. It holds no key and no running totals.
type claiming struct {
	*facts
	release *release
}

func (p *claiming) String() string { return fmt.Sprintf("claiming round %d", p.release.round.number) }
func (*claiming) footing() footing { return bound }
func (p *claiming) abandon()       { p.release.erase() }

func (p *claiming) next(time.Time) step {
	return step{verb: put, subject: p.Task.Claim(stream.Round(p.release.round.number)), data: p.release.claim}
}

func (p *claiming) took(now time.Time, _ step, r result) (phase, error) {
	if r.put.Ours {
		return &releasing{facts: p.facts, release: p.release}, nil
	}
	p.abandon()
	tell2(p.Observer.Dropped, p.release.round.number, p.release.attempt)
	return contest(p.facts, p.release.round, &r.put.Standing, now)
}

// barred is where another process of the stage has marked the round: ours is dropped before any of it was sent. A claim of
// theirs that the broker shows is waited for as ever; where it shows none, the round is burnt.
func (p *claiming) barred() (phase, error) {
	p.abandon()
	p.Logger.Error("another process of the stage has marked the round, ours is dropped", "round", p.release.round.number)
	tell2(p.Observer.Dropped, p.release.round.number, p.release.attempt)
	return &inspecting{facts: p.facts, round: p.release.round}, nil
}

// releasing puts the batch, and on every retry the same bytes. What stands afterwards is the round's outcome.
type releasing struct {
	*facts
	release *release
}

func (p *releasing) String() string {
	return fmt.Sprintf("releasing round %d", p.release.round.number)
}
func (*releasing) footing() footing { return bound }
func (p *releasing) abandon()       { p.release.erase() }

func (p *releasing) next(time.Time) step {
	return step{verb: put, subject: p.Task.Batch(stream.Round(p.release.round.number)), data: p.release.batch}
}

func (p *releasing) took(now time.Time, _ step, r result) (phase, error) {
	out := p.release
	if !r.put.Ours {
		p.abandon()
		p.Logger.Warn("another outcome of the round stands, ours is dropped", "round", out.round.number)
		return finish(p.facts, &r.put.Standing, 0)
	}
	p.Logger.Info("released", "round", out.round.number, "attempt", out.attempt, "users", out.users)
	tell3(p.Observer.Released, out.round.number, out.users, now.Sub(out.started))
	return finish(p.facts, &r.put.Standing, 0)
}

// contested waits for the batch of somebody else's claim, for as long as their lease takes to expire twice. All that
// time this process holds the lease.
type contested struct {
	stateless
	*facts
	pausing
	round
	attempt uint64    // that claimed
	expires time.Time // of our patience
}

func contest(f *facts, r round, claim *stream.Message, now time.Time) (phase, error) {
	c, err := f.readClaim(claim, r)
	if err != nil {
		return nil, err
	}
	f.Logger.Warn("the round is claimed by another life of the stage", "round", r.number, "attempt", c.Attempt)
	return &contested{facts: f, round: r, attempt: c.Attempt, expires: now.Add(f.lease.patience())}, nil
}

func (p *contested) String() string {
	return fmt.Sprintf("waiting for the batch of round %d", p.number)
}
func (*contested) footing() footing { return leased }

func (p *contested) next(time.Time) step {
	if p.pending() {
		return p.wait()
	}
	return step{verb: get, subject: p.Task.Batch(stream.Round(p.number))}
}

func (p *contested) took(now time.Time, s step, r result) (phase, error) {
	switch {
	case s.verb == wait:
		p.until = time.Time{}
	case r.message != nil:
		return finish(p.facts, r.message, 0)
	case !now.Before(p.expires):
		return burn(p.facts, p.round, p.attempt, ReasonClaimWithoutBatch)
	default:
		p.until = now.Add(min(p.pause(), p.expires.Sub(now)))
	}
	return p, nil
}

// voiding puts a void batch. A real one that came first wins.
type voiding struct {
	stateless
	*facts
	round
	reason string
	data   []byte
}

func burn(f *facts, r round, attempt uint64, reason string) (phase, error) {
	data, err := f.void(r, attempt, reason)
	if err != nil {
		return nil, err
	}
	return &voiding{facts: f, round: r, reason: reason, data: data}, nil
}

func (p *voiding) String() string { return fmt.Sprintf("voiding round %d", p.number) }
func (*voiding) footing() footing { return leased }

func (p *voiding) next(time.Time) step {
	return step{verb: put, subject: p.Task.Batch(stream.Round(p.number)), data: p.data}
}

func (p *voiding) took(_ time.Time, _ step, r result) (phase, error) {
	if r.put.Ours {
		p.Logger.Error("burnt a round: its users stay charged", "round", p.number, "reason", p.reason)
		tell(p.Observer.Voided, p.number)
	}
	return finish(p.facts, &r.put.Standing, 0)
}

// closing puts the Close of the outcome that stands.
type closing struct {
	stateless
	*facts
	batch     *wire.Batch
	data      []byte
	announced uint64
}

func finish(f *facts, batch *stream.Message, announced uint64) (phase, error) {
	b, data, err := f.closeOf(batch)
	if err != nil {
		return nil, err
	}
	return &closing{facts: f, batch: b, data: data, announced: announced}, nil
}

func (p *closing) String() string { return fmt.Sprintf("closing round %d", p.batch.Round) }
func (*closing) footing() footing { return bound }

func (p *closing) next(time.Time) step {
	return step{verb: put, subject: p.Task.Close(stream.Round(p.batch.Round), stream.Attempt(p.batch.Attempt)), data: p.data}
}

func (p *closing) took(_ time.Time, _ step, r result) (phase, error) {
	if !r.put.Ours {
		var standing wire.Close
		if _, err := p.read(&r.put.Standing, p.Identity.Public(), &standing); err != nil {
			return nil, err
		}
		if !p.batch.Void || standing.Void {
			return nil, fmt.Errorf("%s is not the Close of the batch that stands: two stages with one identity write different batches, or the broker was rolled back",
				r.put.Standing.Subject)
		}
		// The broker lost the batch that this Close was made of, and the round was burnt since.
		p.Logger.Warn("a Close stands whose batch was lost", "round", p.batch.Round)
	}
	return &sweeping{facts: p.facts, number: p.batch.Round, announced: p.announced}, nil
}

// sweeping purges the reports of a decided round: hygiene only, the key is gone.
type sweeping struct {
	stateless
	*facts
	number    uint64
	announced uint64
	counted   bool
	attempts  uint64
	attempt   uint64
}

func (p *sweeping) String() string { return fmt.Sprintf("sweeping round %d", p.number) }
func (*sweeping) footing() footing { return leased }

func (p *sweeping) next(time.Time) step {
	if !p.counted {
		return step{verb: latest, subject: p.Task.Opens(stream.Round(p.number))}
	}
	return step{verb: purge, subject: p.Task.Report(stream.Round(p.number), stream.Attempt(p.attempt))}
}

func (p *sweeping) took(_ time.Time, _ step, r result) (phase, error) {
	if !p.counted {
		p.counted, p.attempts = true, p.newestAttempt(r.message)
	}
	p.attempt++
	if p.attempt > p.attempts {
		return &settling{facts: p.facts, number: p.number + 1, announced: p.announced}, nil
	}
	return p, nil
}

// ended is where Run returns nil.
type ended struct{ stateless }

func (*ended) String() string          { return "ended" }
func (*ended) footing() footing        { return free }
func (*ended) next(now time.Time) step { return step{verb: wait, until: now} }
func (p *ended) took(time.Time, step, result) (phase, error) {
	return p, nil
}
