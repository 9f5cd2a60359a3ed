package stage

import (
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
)

// Marks remember outside the broker which rounds of a task were claimed, and by whom. A broker that loses a claim and
// a batch but keeps the round would have a stage that restarted open the round again; two brokers that each take one
// stage process would have both release it. Each time devices seal the same memoized counts for another attempt, and
// two totals over overlapping users tell the difference of two users' counts. With a mark the second is void instead,
// as far as all who claim share the marks. An adapter is package shuffle/stage/markfile.
type Marks interface {
	// Claimed returns the highest round of a task that was marked, 0 for none.
	Claimed(task stream.Hash) (round stream.Round, err error)
	// Claim marks a round, and with it all before it, for one process, in one step that no other Claim divides. It returns
	// true only if the previous mark was of a lower round, or of this round and process. Then no crash undoes the mark,
	// and Claim may be called again. Where it returns false, the mark is as it was.
	Claim(task stream.Hash, round stream.Round, instance [stream.InstanceSize]byte) (ours bool, err error)
}

// ownMarks are the marks of a process that was given none. They end with it, so they bar only its own return to a
// round.
type ownMarks struct {
	round    stream.Round
	instance [stream.InstanceSize]byte
}

// Claimed implements Marks.
func (m *ownMarks) Claimed(stream.Hash) (stream.Round, error) { return m.round, nil }

// Claim implements Marks.
func (m *ownMarks) Claim(_ stream.Hash, round stream.Round, instance [stream.InstanceSize]byte) (bool, error) {
	if round > m.round {
		m.round, m.instance = round, instance
	}
	return m.round == round && m.instance == instance, nil
}

// marking marks the round before it is claimed: no claim is sent of a round that is not marked by this process. It
// holds no key and no running totals. A mark that cannot be written is treated as a broker that does not reply.
//
// Before that the round is read again. A broker that was put back since does not show it, and a batch of it there would
// be one of a round that the learner announces with other bytes. A replica may lag, so the round is read for a while.
type marking struct {
	*environment
	pause
	release *release
	stands  bool      // the round was read and is the one to mark
	expires time.Time // of our patience with a round that is not there
}

func (p *marking) String() string { return fmt.Sprintf("marking round %d", p.release.round.number) }
func (p *marking) abandon()       { p.release.erase() }

func (p *marking) next(time.Time) effects {
	switch {
	case p.stands:
		return effects{call: mark, round: p.release.round.number, owner: p.release.instance, needs: bound}
	case p.pending():
		return p.rest()
	}
	return effects{call: get, subject: p.Task.Round(p.release.round.number), needs: bound}
}

func (p *marking) handle(now time.Time, did effects, r result) (phase, error) {
	switch {
	case p.stands:
		return p.marked(r)
	case did.call == wait:
		p.over()
		return p, nil
	case r.message != nil:
		read, err := p.readRound(r.message)
		if errors.Is(err, seal.ErrNotWritten) {
			return nil, err
		}
		if err == nil && read.manifest == p.release.round.manifest {
			p.stands = true
			return p, nil
		}
	case p.expires.IsZero():
		p.expires = now.Add(p.lease.patience())
		fallthrough
	case now.Before(p.expires):
		p.until = now.Add(min(p.jittered(), p.expires.Sub(now)))
		return p, nil
	}
	p.abandon()
	p.Logger.Error("the broker no longer shows the round as it was answered: ours is dropped", "round",
		p.release.round.number)
	observe.Tell2(p.Observer.Dropped, p.release.round.number, p.release.attempt)
	return &seeking{environment: p.environment}, nil
}

// marked goes on with a round that was marked. Where another process of the stage has marked it, ours is dropped
// before any of it was sent. A claim of theirs that the broker shows is waited for as ever; where it shows none, the
// round is made void.
func (p *marking) marked(r result) (phase, error) {
	if r.ours {
		return &claiming{environment: p.environment, release: p.release}, nil
	}
	p.abandon()
	p.Logger.Error("another process of the stage has marked the round, ours is dropped", "round", p.release.round.number)
	observe.Tell2(p.Observer.Dropped, p.release.round.number, p.release.attempt)
	return &inspecting{environment: p.environment, round: p.release.round}, nil
}
