package stage

import (
	"fmt"
	"time"
)

// claiming takes the right to release. From its first put on, the claim may stand without our knowing; so the phase
// goes on until it knows, even without the lease.
type claiming struct {
	*environment
	release *release
}

func (p *claiming) String() string { return fmt.Sprintf("claiming round %d", p.release.round.number) }
func (p *claiming) abandon()       { p.release.erase() }

func (p *claiming) next(time.Time) effects {
	return effects{call: put, subject: p.Task.Claim(p.release.round.number), data: p.release.claim, needs: bound}
}

func (p *claiming) handle(now time.Time, _ effects, r result) (phase, error) {
	if r.put.Ours {
		return &releasing{environment: p.environment, release: p.release}, nil
	}
	p.abandon()
	tell2(p.Observer.Dropped, p.release.round.number, p.release.attempt)
	return contest(p.environment, p.release.round, &r.put.Standing, now)
}

// releasing puts the batch, and on every retry the same bytes. What stands afterwards is the round's outcome.
type releasing struct {
	*environment
	release *release
}

func (p *releasing) String() string {
	return fmt.Sprintf("releasing round %d", p.release.round.number)
}
func (p *releasing) abandon() { p.release.erase() }

func (p *releasing) next(time.Time) effects {
	return effects{call: put, subject: p.Task.Batch(p.release.round.number), data: p.release.batch, needs: bound}
}

func (p *releasing) handle(now time.Time, _ effects, r result) (phase, error) {
	out := p.release
	if !r.put.Ours {
		p.abandon()
		p.Logger.Warn("another outcome of the round stands, ours is dropped", "round", out.round.number)
		return closeRound(p.environment, &r.put.Standing, 0)
	}
	p.Logger.Info("released", "round", out.round.number, "attempt", out.attempt, "users", out.users)
	tell3(p.Observer.Released, out.round.number, out.users, now.Sub(out.started))
	return closeRound(p.environment, &r.put.Standing, 0)
}
