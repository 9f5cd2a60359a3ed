package stage

import (
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// closing puts the Close of the outcome that was decided.
type closing struct {
	stateless
	*environment
	batch     *wire.Batch
	data      []byte
	announced stream.Round
}

// closeRound has the Close of a batch put. It is a pure function of the batch, so that any stage process can put it,
// at any time.
func closeRound(e *environment, m *stream.Message, announced stream.Round) (phase, error) {
	var b wire.Batch
	if _, err := e.read(m, e.Identity.Public(), &b); err != nil {
		return nil, err
	}
	if !b.Void {
		e.decided = max(e.decided, stream.Round(b.Round))
	}
	hash := stream.HashOf(m.Data)
	data, err := e.Identity.Sign(&wire.Close{
		Version: stream.Version, TaskHash: e.taskHash[:], Round: b.Round, Attempt: b.Attempt,
		ManifestHash: b.ManifestHash, BatchHash: hash[:], Cutoff: b.Cutoff, Void: b.Void,
		OpenHash: b.OpenHash, JoinHash: b.JoinHash,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Subject, err)
	}
	return &closing{environment: e, batch: &b, data: data, announced: announced}, nil
}

func (p *closing) String() string { return fmt.Sprintf("closing round %d", p.batch.Round) }

func (p *closing) next(time.Time) effects {
	subject := p.Task.Close(stream.Round(p.batch.Round), stream.Attempt(p.batch.Attempt))
	return effects{call: put, subject: subject, data: p.data, needs: bound}
}

func (p *closing) handle(_ time.Time, _ effects, r result) (phase, error) {
	var standing wire.Close
	if !r.put.Ours {
		if _, err := p.read(&r.put.Standing, p.Identity.Public(), &standing); err != nil {
			return nil, err
		}
	}
	p.last = max(p.last, r.put.Standing.Sequence)
	if !r.put.Ours {
		if !p.batch.Void || standing.Void {
			return nil,
				fmt.Errorf(
					"%s is not the Close of the batch that stands: two stages with one identity write different batches, or the broker was rolled back",
					r.put.Standing.Subject)
		}
		// The broker lost the batch that this Close was made of, and the round was made void since.
		p.Logger.Warn("a Close stands whose batch was lost", "round", p.batch.Round)
	}
	return &sweeping{environment: p.environment, number: stream.Round(p.batch.Round), announced: p.announced}, nil
}

// sweeping clears the queue after a decided round: hygiene only, the key is gone.
type sweeping struct {
	stateless
	*environment
	clearing
	number    stream.Round
	announced stream.Round
}

func (p *sweeping) String() string { return fmt.Sprintf("sweeping round %d", p.number) }

func (p *sweeping) next(time.Time) effects {
	todo := p.clearing.next()
	todo.drains = true
	return todo
}

func (p *sweeping) handle(_ time.Time, did effects, r result) (phase, error) {
	if p.clearing.handle(did, r) {
		return &settling{environment: p.environment, number: p.number + 1, announced: p.announced}, nil
	}
	return p, nil
}
