package stage

import (
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// calling asks the other processes of the stage for workers, before an attempt is opened, and waits a little for their
// keys. Who does not answer in time takes no part in this attempt.
type calling struct {
	stateless
	*facts
	pausing
	round   round
	number  uint64
	data    []byte // of the call
	called  bool
	expires time.Time // of our patience
	seat    uint32    // being read
	answers map[uint32]*member
	quiet   roll // seats that were read and have not answered
}

// startAttempt calls for workers where the stage shares its rounds, else it opens at once.
func startAttempt(f *facts, r round, number uint64, now time.Time) (phase, error) {
	if f.Workers <= 1 || mostShards(r.mixer.Cohort, max(r.mixer.MaxBundle, 1)) < 2 {
		return startOpening(f, r, number, nil, now)
	}
	data, err := f.Identity.Sign(&wire.Quota{
		Version: stream.Version, TaskHash: f.taskHash[:], Round: r.number, Attempt: number, ManifestHash: r.manifest[:], Owner: f.Instance[:],
	})
	if err != nil {
		return nil, err
	}
	return &calling{facts: f, round: r, number: number, data: data, seat: 1, answers: map[uint32]*member{}, quiet: roll{}}, nil
}

func (p *calling) String() string {
	return fmt.Sprintf("calling for workers of round %d", p.round.number)
}
func (*calling) footing() footing { return leased }

func (p *calling) next(time.Time) step {
	switch {
	case p.pending():
		return p.wait()
	case !p.called:
		return p.table.next(p.data)
	}
	return step{verb: get, subject: p.Task.Seat(p.seat)}
}

func (p *calling) took(now time.Time, s step, r result) (phase, error) {
	switch {
	case s.verb == wait:
		p.until = time.Time{}
		return p, nil
	case !p.called:
		if p.called = p.table.took(s, r, p.data); p.called {
			p.expires = now.Add(p.LeaseTTL / 4)
		}
		return p, nil
	}
	p.listen(now, r.message)
	if p.seat++; int(p.seat) < p.Workers {
		return p, nil
	}
	p.seat = 1
	if now.Before(p.expires) && p.expecting() {
		p.until = now.Add(p.beat())
		return p, nil
	}
	p.absent = p.quiet
	return startOpening(p.facts, p.round, p.number, p.crew(), now)
}

// listen takes an answer: a key for this attempt. A later answer replaces an earlier one, whose key is gone.
func (p *calling) listen(now time.Time, m *stream.Message) {
	var sequence uint64
	if m != nil {
		sequence = m.Sequence
	}
	p.quiet[p.seat] = sequence
	delete(p.answers, p.seat)
	word, ok := hear(p.facts, m, new(wire.Seat))
	if !ok {
		return
	}
	instance := [stream.InstanceSize]byte(word.Instance)
	if instance == p.Instance || word.Round != p.round.number || word.Attempt != p.number || string(word.Owner) != string(p.Instance[:]) {
		return
	}
	if err := seal.CheckPublic(p.task.Suite, word.PublicKey); err != nil {
		p.Logger.Warn("a worker offers a key that is none", "seat", p.seat, "error", err)
		return
	}
	for _, other := range p.answers {
		if other.instance == instance {
			return // one process, one shard
		}
	}
	p.answers[p.seat] = &member{seat: p.seat, instance: instance, key: word.PublicKey, sequence: sequence, heard: now}
	delete(p.quiet, p.seat)
}

// expecting says whether more answers may come: from seats that nobody has called before, or that have spoken since
// they did not answer.
func (p *calling) expecting() bool {
	for seat, sequence := range p.quiet {
		if before, known := p.absent[seat]; !known || before != sequence {
			return true
		}
	}
	return false
}

// crew is who has answered, as many as the cohort can be shared among.
func (p *calling) crew() (all []*member) {
	most := mostShards(p.round.mixer.Cohort, max(p.round.mixer.MaxBundle, 1))
	for seat := uint32(1); int(seat) < p.Workers && uint64(len(all))+1 < most; seat++ {
		if m := p.answers[seat]; m != nil {
			all = append(all, m)
		}
	}
	if len(all)+1 < p.Workers {
		p.Logger.Info("fewer workers than asked for", "round", p.round.number, "workers", len(all)+1, "asked", p.Workers)
	}
	return all
}
