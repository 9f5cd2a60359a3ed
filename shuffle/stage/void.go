package stage

import (
	"fmt"
	"math"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// Why a batch is void, its field reason. What becomes of a single report is a Reason.
const (
	// voidClaimWithoutBatch: the process that claimed the round did not come back in time.
	voidClaimWithoutBatch = "claim without a batch"
	// voidCloseWithoutBatch: there is a Close, so there was a batch, and the broker lost it.
	voidCloseWithoutBatch = "close without a batch"
	// voidClaimLost: a mark of the stage says that the round was claimed, and the broker shows no claim. See [Marks].
	// Where it shows no attempt either, the reason is [stream.VoidRoundLost].
	voidClaimLost = "claimed before, and the broker lost the claim"
)

// contested waits for the batch of somebody else's claim, for as long as their lease takes to expire twice. All that
// time this process holds the lease.
type contested struct {
	stateless
	*environment
	pause
	round
	attempt stream.Attempt // that claimed
	expires time.Time      // of our patience
}

func contest(e *environment, r round, claim *stream.Message, now time.Time) (phase, error) {
	c, err := e.readClaim(claim, r)
	if err != nil {
		return nil, err
	}
	e.Logger.Warn("the round is claimed by another life of the stage", "round", r.number, "attempt", c.Attempt)
	return &contested{environment: e, round: r, attempt: stream.Attempt(c.Attempt), expires: now.Add(e.lease.patience())},
		nil
}

func (p *contested) String() string {
	return fmt.Sprintf("waiting for the batch of round %d", p.number)
}

func (p *contested) next(time.Time) effects {
	if p.pending() {
		return p.rest()
	}
	return effects{call: get, subject: p.Task.Batch(p.number), needs: leased}
}

func (p *contested) handle(now time.Time, did effects, r result) (phase, error) {
	switch {
	case did.call == wait:
		p.over()
	case r.message != nil:
		return closeRound(p.environment, r.message, 0)
	case !now.Before(p.expires):
		return voidRound(p.environment, p.round, p.attempt, voidClaimWithoutBatch)
	default:
		p.until = now.Add(min(p.jittered(), p.expires.Sub(now)))
	}
	return p, nil
}

// voiding puts a void batch. A real one that came first wins.
type voiding struct {
	stateless
	*environment
	round
	reason string
	data   []byte
}

// voidRound has a void batch put. Its cutoff is the highest there is, so that nobody who sent a report finds itself
// above it: all stay charged.
func voidRound(e *environment, r round, attempt stream.Attempt, reason string) (phase, error) {
	return voidOf(e, r, split.Attempt{Number: uint64(attempt)}, reason)
}

// voidOf is voidRound of an attempt of which more may be known than its number: under trust split its hashes, zeros
// where they are not known.
func voidOf(e *environment, r round, x split.Attempt, reason string) (phase, error) {
	b := &wire.Batch{
		Version: stream.Version, TaskHash: e.taskHash[:], Round: uint64(r.number), Attempt: x.Number,
		ManifestHash: r.manifest[:], Void: true, Reason: reason, Cutoff: math.MaxUint64,
		SpentHash: e.unspent(),
	}
	if e.operators() {
		b.OpenHash, b.JoinHash = x.Open[:], x.Join[:]
	}
	data, err := e.Identity.Sign(b)
	if err != nil {
		return nil, err
	}
	return &voiding{environment: e, round: r, reason: reason, data: data}, nil
}

func (p *voiding) String() string { return fmt.Sprintf("voiding round %d", p.number) }

func (p *voiding) next(time.Time) effects {
	return effects{call: put, subject: p.Task.Batch(p.number), data: p.data, needs: leased}
}

func (p *voiding) handle(_ time.Time, _ effects, r result) (phase, error) {
	if r.put.Ours {
		p.Logger.Error("put a void batch: the users of the round stay charged", "round", p.number, "reason", p.reason)
		observe.Tell(p.Observer.Voided, p.number)
	}
	return closeRound(p.environment, &r.put.Standing, 0)
}
