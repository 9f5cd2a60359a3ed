package stage

import (
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// A member is one further worker of an attempt, as its owner knows it.
type member struct {
	seat     uint32
	instance [stream.InstanceSize]byte
	key      []byte // that its shard's reports are sealed to

	sequence uint64    // of its newest word
	heard    time.Time // when that was first seen, by our clock
	obeys    uint64    // number of the table
	users    uint64
	hungry   bool
	left     bool // its seat is another's, or works for nobody or somebody else
	done     bool // its part is in our totals
}

// listen is told what stands on the member's seat. Words may come late or again; none is believed twice.
func (m *member) listen(f *facts, now time.Time, a *attempt, message *stream.Message) {
	if message == nil || message.Sequence <= m.sequence {
		return
	}
	m.sequence = message.Sequence
	word, ok := hear(f, message, new(wire.Seat))
	switch {
	case !ok: // a vacated seat, or noise
		m.left = m.left || len(message.Data) == 0
		return
	case [stream.InstanceSize]byte(word.Instance) != m.instance, word.Round != a.round.number, word.Attempt != a.number,
		string(word.Owner) != string(f.Instance[:]), string(word.PublicKey) != string(m.key):
		m.left = true
		return
	}
	m.heard, m.left = now, false
	m.obeys, m.users, m.hungry = max(m.obeys, word.Quota), max(m.users, word.Users), word.Hungry
}

// missing says that nobody can count on the member any more.
func (m *member) missing(f *facts, now time.Time) bool { return now.After(m.heard.Add(f.LeaseTTL)) }

// A roll is what the owner of attempts remembers of the seats between attempts: those that did not answer a call, by
// the sequence that stood there. They are not waited for again until they say something.
type roll map[uint32]uint64

// shardsOf is the wire form of a crew: shard 2 is the first.
func shardsOf(crew []*member) (all []*wire.Shard) {
	for _, m := range crew {
		all = append(all, &wire.Shard{PublicKey: m.key, Instance: m.instance[:], Seat: m.seat})
	}
	return all
}
