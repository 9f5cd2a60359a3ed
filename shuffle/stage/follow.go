package stage

import (
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// seeking finds where to begin. It is where a stage without the lease stands by.
type seeking struct {
	stateless
	*facts
}

func (*seeking) String() string   { return "seeking" }
func (*seeking) footing() footing { return leased }

func (p *seeking) next(time.Time) step { return step{verb: latest, subject: p.Task.Rounds()} }

// The newest round may still be unknown to whoever answers, but all before it are decided: the learner announces a
// round when it has the batch before. That batch may lack its Close, so begin one round earlier.
func (p *seeking) took(_ time.Time, _ step, r result) (phase, error) {
	if r.message == nil {
		return &settling{facts: p.facts, number: 1}, nil
	}
	newest, err := p.readRound(r.message)
	if err != nil {
		return nil, err
	}
	return &settling{facts: p.facts, number: max(1, newest.number-1), announced: newest.number}, nil
}

// settling asks whether a round has its outcome already. A decided round's batch that is not there is asked for a while
// longer: a replica may lag, and without its Close the round's devices would never know.
type settling struct {
	stateless
	*facts
	pausing
	number    uint64
	announced uint64    // the learner has the outcome of every round before it
	expires   time.Time // of our patience with a decided round
}

func (p *settling) String() string { return fmt.Sprintf("settling round %d", p.number) }
func (*settling) footing() footing { return leased }

func (p *settling) next(time.Time) step {
	if p.pending() {
		return p.wait()
	}
	return step{verb: get, subject: p.Task.Batch(stream.Round(p.number))}
}

func (p *settling) took(now time.Time, s step, r result) (phase, error) {
	switch {
	case s.verb == wait:
		p.until = time.Time{}
		return p, nil
	case r.message != nil:
		return finish(p.facts, r.message, p.announced)
	case p.number < p.announced:
		if p.expires.IsZero() {
			p.expires = now.Add(p.lease.patience())
		}
		if now.Before(p.expires) {
			p.until = now.Add(min(p.pause(), p.expires.Sub(now)))
			return p, nil
		}
		// Decided, and gone from the broker: to burn it now would contradict what the learner applied.
		p.Logger.Warn("the batch of a decided round is missing at the broker", "round", p.number)
		return &settling{facts: p.facts, number: p.number + 1, announced: p.announced}, nil
	}
	return &awaiting{facts: p.facts, number: p.number}, nil
}

// awaiting waits for the learner to announce a round, or to end the task.
type awaiting struct {
	stateless
	*facts
	pausing
	number uint64
	noEnd  bool // the round was not there; End is next
}

func (p *awaiting) String() string { return fmt.Sprintf("waiting for round %d", p.number) }
func (*awaiting) footing() footing { return leased }

func (p *awaiting) next(time.Time) step {
	switch {
	case p.pending():
		return p.wait()
	case p.noEnd:
		return step{verb: get, subject: p.Task.End()}
	}
	return step{verb: get, subject: p.Task.Round(stream.Round(p.number))}
}

func (p *awaiting) took(now time.Time, s step, r result) (phase, error) {
	switch {
	case s.verb == wait:
		p.until = time.Time{}
	case !p.noEnd && r.message != nil:
		next, err := p.readRound(r.message)
		if err != nil {
			return nil, err
		}
		return &inspecting{facts: p.facts, round: next}, nil
	case !p.noEnd:
		p.noEnd = true
	default:
		p.noEnd, p.until = false, now.Add(p.pause())
		if r.message != nil {
			return p.endOr(r.message, p.number, p)
		}
	}
	return p, nil
}

// endOr answers ended if End says that the task ended before round number, else the phase given.
func (f *facts) endOr(m *stream.Message, number uint64, otherwise phase) (phase, error) {
	var end wire.End
	if _, err := f.read(m, f.learner, &end); err != nil {
		return nil, err
	}
	if end.LastRound >= number {
		return otherwise, nil
	}
	f.Logger.Info("the task has ended", "last_round", end.LastRound)
	return &ended{}, nil
}

// inspecting looks at what earlier lives left of a round: a claim, a Close, reports of dead attempts. What it does
// not find decides nothing: Open and Claim are compare-and-set writes.
type inspecting struct {
	stateless
	*facts
	round
	claimed  bool // no claim was found
	counted  bool // attempts is known
	attempts uint64
	attempt  uint64 // being looked at
	closed   bool   // its Close was not found; its reports are next
}

func (p *inspecting) String() string { return fmt.Sprintf("inspecting round %d", p.number) }
func (*inspecting) footing() footing { return leased }

func (p *inspecting) next(time.Time) step {
	switch {
	case !p.claimed:
		return step{verb: get, subject: p.Task.Claim(stream.Round(p.number))}
	case !p.counted:
		return step{verb: latest, subject: p.Task.Opens(stream.Round(p.number))}
	case !p.closed:
		return step{verb: get, subject: p.Task.Close(stream.Round(p.number), stream.Attempt(p.attempt))}
	}
	return step{verb: purge, subject: p.Task.Report(stream.Round(p.number), stream.Attempt(p.attempt))}
}

func (p *inspecting) took(now time.Time, s step, r result) (phase, error) {
	switch {
	case !p.claimed:
		if r.message != nil {
			return contest(p.facts, p.round, r.message, now)
		}
		p.claimed = true
		return p, nil
	case !p.counted:
		p.counted, p.attempt, p.attempts = true, 1, p.newestAttempt(r.message)
		if p.claimedOnce(p.number) {
			p.Logger.Error("a round is marked as claimed, and the broker shows no claim", "round", p.number)
			return burn(p.facts, p.round, max(p.attempts, 1), ReasonMarked)
		}
	case !p.closed:
		if r.message != nil {
			if _, err := p.read(r.message, p.Identity.Public(), new(wire.Close)); err != nil {
				return nil, err
			}
			return burn(p.facts, p.round, p.attempt, ReasonCloseWithoutBatch)
		}
		p.closed = true
		return p, nil
	default:
		p.closed = false
		p.attempt++
	}
	if p.attempt > p.attempts {
		return startOpening(p.facts, p.round, p.attempt, now)
	}
	return p, nil
}

// newestAttempt is the number of the newest known attempt at a round, 0 for none. A hint that does not verify counts
// as none: opening moves past whatever stands.
func (f *facts) newestAttempt(m *stream.Message) uint64 {
	if m == nil {
		return 0
	}
	var open wire.Open
	if _, err := f.read(m, f.Identity.Public(), &open); err != nil {
		f.Logger.Warn("an Open that this stage did not sign", "subject", m.Subject, "error", err)
		return 0
	}
	return open.Attempt
}
