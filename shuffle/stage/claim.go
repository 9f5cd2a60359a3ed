package stage

import (
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// claiming puts the claim, which is the right to release. After the first put the claim may be on the broker although
// no reply confirmed it, so the phase goes on until it knows, even without the lease.
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
	out := p.release
	behind := p.leftBehind(out.opened, r.put.Standing.Sequence)
	if r.put.Ours && !behind {
		if len(out.lists) > 0 {
			return &spending{environment: p.environment, release: out, k: 1}, nil
		}
		return &releasing{environment: p.environment, release: out}, nil
	}
	if _, err := p.readClaim(&r.put.Standing, out.round); errors.Is(err, seal.ErrNotWritten) {
		return nil, err // no process of this stage has claimed: the claim is put again
	}
	p.abandon()
	observe.Tell2(p.Observer.Dropped, out.round.number, out.attempt)
	if behind {
		p.Logger.Error(
			"others have worked on for long since an attempt was opened: its claim may replace a removed one, so it is dropped",
			"round", out.round.number, "attempt", out.attempt)
		return &seeking{environment: p.environment}, nil
	}
	return contest(p.environment, out.round, &r.put.Standing, now)
}

// leftBehind reports whether so much was put on the stream of attempts between two records that the round of the first
// may have been removed since, so that a record on an empty subject of it need not be the first on that subject. The
// broker numbers what it stores, whatever becomes of it, so the decision depends on neither a clock nor a lagging
// reader. A removed round has more than stream.KeptRounds behind it, of at least one record each. A record of 0 means
// none: then nothing is known, and leftBehind returns false.
func (*environment) leftBehind(record, later uint64) bool {
	return record > 0 && later > record+uint64(stream.KeptRounds)/2
}

// releasing puts the batch, and on every retry the same bytes. The batch that is on the broker afterwards is the
// round's outcome.
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
		if _, err := p.read(&r.put.Standing, p.Identity.Public(), new(wire.Batch)); errors.Is(err, seal.ErrNotWritten) {
			return nil, err // it is no outcome: ours is put again
		}
		p.abandon()
		p.Logger.Warn("another outcome of the round stands, ours is dropped", "round", out.round.number)
		return closeRound(p.environment, &r.put.Standing, 0)
	}
	if p.tokens != nil {
		p.tokens.add(out.counted)
	}
	p.Logger.Info("released", "round", out.round.number, "attempt", out.attempt, "reports", out.users)
	observe.Tell3(p.Observer.Released, out.round.number, out.users, now.Sub(out.started))
	return closeRound(p.environment, &r.put.Standing, 0)
}
