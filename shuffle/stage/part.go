package stage

import (
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// share makes an attempt that of one shard of several, from 1.
func (a *attempt) share(shard, shards int) {
	a.context.Shard, a.shards = uint32(shard), shards
}

// own makes the attempt that of the owner of several shards: it counts the first, and the others are sealed to a key
// that lives as long as the attempt.
func (a *attempt) own(crew []*member) (err error) {
	if len(crew) == 0 {
		return nil
	}
	a.share(1, len(crew)+1)
	a.crew = crew
	a.handover, err = seal.NewRoundKey(seal.PartSuite(a.task.Suite))
	return err
}

// handoverContext is what parts of a shard are sealed under.
func (a *attempt) handoverContext(shard uint32, public []byte) seal.Context {
	c := a.context
	c.Shard, c.Public = shard, public
	return c
}

// part is the signed Part of a worker's shard. Totals, ids and key are erased whatever comes of it.
func (a *attempt) part(seat uint32, handover []byte) ([]byte, error) {
	defer a.erase()
	part, err := a.mixer.Part()
	if err != nil {
		return nil, err
	}
	plaintext, err := stream.Marshal(&wire.Partial{
		Version: stream.Version, Users: part.Users, Cutoff: a.cutoff, Totals: part.Totals, Rejects: rejects(a.counts),
	})
	clear(part.Totals)
	if err != nil {
		return nil, err
	}
	defer clear(plaintext)
	shard := a.context.Shard
	enc, sealed, err := seal.SealPart(seal.PartSuite(a.task.Suite), a.handoverContext(shard, handover), a.Instance, plaintext)
	if err != nil {
		return nil, err
	}
	return a.Identity.Sign(&wire.Part{
		Version: stream.Version, TaskHash: a.taskHash[:], Round: a.round.number, Attempt: a.number, ManifestHash: a.manifest[:],
		Shard: shard, Seat: seat, Instance: a.Instance[:], Encapsulated: enc, Ciphertext: sealed,
	})
}

// gather adds the part of a member, if it is there: the first one that belongs to this attempt, and no other.
func (a *attempt) gather(m *member, shard uint32, message *stream.Message) error {
	if m.done {
		return nil
	}
	part, ok := hear(a.facts, message, new(wire.Part))
	if !ok || part.Round != a.round.number || part.Attempt != a.number {
		return nil // none yet; what lies there is of another attempt
	}
	if stream.Hash(part.ManifestHash) != a.manifest || part.Shard != shard || [stream.InstanceSize]byte(part.Instance) != m.instance {
		return errors.New("it is of another shard or worker")
	}
	plaintext, err := a.handover.OpenPart(a.handoverContext(shard, a.handover.Public()), m.instance, part.Encapsulated, part.Ciphertext)
	if err != nil {
		return err
	}
	defer clear(plaintext)
	var partial wire.Partial
	if err := stream.Unmarshal(plaintext, &partial); err != nil {
		return err
	}
	defer clear(partial.Totals)
	if partial.Users < m.users {
		return fmt.Errorf("it has %d users, its worker spoke of %d", partial.Users, m.users)
	}
	if err := a.mixer.Merge(shuffle.Part{Users: partial.Users, Totals: partial.Totals}); err != nil {
		return err
	}
	// The highest cutoff is safe for all shards: a device at or below it stays charged.
	a.cutoff = max(a.cutoff, partial.Cutoff)
	for _, r := range partial.Rejects {
		for i, name := range reasonNames {
			if name == r.Reason {
				a.counts[i] += r.Count
			}
		}
	}
	m.done, m.users = true, partial.Users
	return nil
}
