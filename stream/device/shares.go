package device

import (
	"crypto/rand"
	"fmt"
	"sync/atomic"

	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// Under trust split a report's counts are memoized, and so is the secret that its ids follow from. The id of an attempt,
// seeds, blinds and shares exist from the tick on which the report leaves, and on no disk: one sharing that was shown
// under two verify keys would give the counts away. An event that is sent to an attempt again keeps its id, so that it
// is counted once. It is sent as the same message while that message is in memory, otherwise as another sharing.

// mostKept bounds the bytes of messages that are kept for another try. Reports beyond that are shared again.
const mostKept = 64 << 20

// A sharer shares the reports of one device. Its methods may be called from any goroutine.
type sharer struct {
	fresh chance       // 32 bytes a sharing
	kept  atomic.Int64 // bytes of messages in memory
}

func newSharer() *sharer { return &sharer{fresh: rand.Read} }

// forget drops the message of a bundle that is not in flight.
func (s *sharer) forget(b *bundle) {
	s.kept.Add(-int64(len(b.message)))
	b.message = nil
}

// message returns the message of a bundle of a delivery and the id of its first report. It is the one that was sent to
// the attempt before, where that is in memory.
func (s *sharer) message(sharing *split.Sharing, c *contract, d *delivery, b *bundle) (data []byte, first [16]byte,
	err error) {
	first = split.ID(b.record().Draw.Secret, d.attempt.Open, d.attempt.Join)
	if b.message != nil && b.of == d.attempt {
		return b.message, first, nil
	}
	report, err := s.share(sharing, c, d, b)
	if err != nil {
		return nil, first, err
	}
	if data, err = stream.Marshal(report); err != nil {
		return nil, first, err
	}
	s.forget(b)
	if s.kept.Add(int64(len(data))) > mostKept {
		s.kept.Add(-int64(len(data)))
		return data, first, nil
	}
	b.message, b.of = data, d.attempt
	return data, first, nil
}

// share shares and seals the counts of a bundle's events for an attempt.
func (s *sharer) share(sharing *split.Sharing, c *contract, d *delivery, b *bundle) (*wire.Report, error) {
	params := c.agreement.Phases[d.round.place.Index].Params
	var out seal.SharedReport
	defer func() {
		clear(out.Leader)
		clear(out.Helper)
	}()
	users := make([]split.User, len(b.events))
	var counts []uint32
	defer func() { clear(counts) }()
	for i, e := range b.events {
		draw := &e.record.Draw
		id := split.ID(draw.Secret, d.attempt.Open, d.attempt.Join)
		var err error
		if counts, err = params.Unpack(counts, draw.Counts); err != nil {
			return nil, fmt.Errorf("share a report: %w", err)
		}
		var fresh [32]byte
		_, _ = s.fresh(fresh[:])
		one, err := sharing.Shard(counts, shuffle.ReportID(id), fresh)
		clear(fresh[:])
		if err != nil {
			return nil, err
		}
		users[i] = split.User{ID: id, Public: one.Public}
		out.IDs, out.Public = append(out.IDs, id), append(out.Public, one.Public)
		out.Leader, out.Helper = grow(out.Leader, one.Leader), grow(out.Helper, one.Helper)
		clear(one.Leader)
		clear(one.Helper)
	}
	var err error
	if out.Leader, err = c.appendGrants(out.Leader, b.events); err != nil {
		return nil, err
	}
	out.Associated = split.AssociatedData(users)
	return seal.SealShares(d.open.Suite, d.context(c), seal.SharedKeys{Leader: d.open.PublicKey, Helper: d.join.PublicKey}, out)
}

// grow appends a part to all, and leaves no copy of all behind.
func grow(all, part []byte) []byte {
	if cap(all)-len(all) < len(part) {
		longer := append(make([]byte, 0, 2*(len(all)+len(part))), all...)
		clear(all)
		all = longer
	}
	return append(all, part...)
}

// context returns what both seals of a delivery's reports bind.
func (d *delivery) context(c *contract) seal.SharedContext {
	return seal.SharedContext{ManifestHash: d.round.manifest, TaskHash: c.agreement.Hash, Open: d.attempt.Open,
		Join: d.attempt.Join}
}

// sharing returns what shares the reports of a delivery, for one goroutine.
func (d *delivery) sharing(c *contract) (*split.Sharing, error) {
	params := c.agreement.Phases[d.round.place.Index].Params
	bits, err := split.BitsOf(params.Levels)
	if err != nil {
		return nil, err
	}
	return split.NewSharing(split.Params{Dim: params.Dim, Bits: bits, Context: d.context(c).Prio3()},
		d.attempt.Open, d.attempt.Join)
}
