package device

import (
	"context"
	"iter"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// patients makes the events of an organisation that protects its people, from rows that are read to their end. The
// people and the order of their first rows decide the blocks; the number of anybody's rows does not.
func (m *mapper) patients(ctx context.Context, rows iter.Seq2[task.Row, error]) iter.Seq[*event] {
	return func(yield func(*event) bool) {
		p := m.people()
		var all []block.Person[line]
		for one := range p.Collected(m.own(ctx, rows)) {
			all = append(all, one)
		}
		m.failed = p.Err()
		m.tally.nobodys(p.Counts())
		if m.failed != nil {
			return
		}
		if m.loop.contract.agreement.Whole() {
			if e := m.hospital(all); e != nil && m.spanEnds(ctx) == nil {
				yield(e)
			}
			return
		}
		if m.spanEnds(ctx) != nil {
			return
		}
		for e := range m.wards(all) {
			if !yield(e) {
				return
			}
		}
	}
}

// hospital returns one event of all people, for every round, with their rows mapped; nil if they may not take part.
// Later runs take as many people as the first run: the first of them.
func (m *mapper) hospital(all []block.Person[line]) *event {
	terms, ok := m.sized("people of this silo", uint64(len(all)))
	if !ok {
		return nil
	}
	if kept := m.loop.contract.kept; kept > 0 {
		m.leave(all[kept:])
		all = all[:kept]
	}
	e := m.about(allRows, all)
	e.terms = terms
	e.vector()
	return e
}

// wards yields the events of disjoint blocks of people, as many in each as the plan requires. The first run decides
// for ever who is in which block: that is stored before the first of them is drawn, so that nobody comes into a second
// block however files are named and sorted later. People who are gone contribute nothing to their own block, and
// people who came later are in none.
func (m *mapper) wards(all []block.Person[line]) iter.Seq[*event] {
	return func(yield func(*event) bool) {
		k, pinned := int(m.loop.contract.agreement.Units()), m.loop.contract.people
		if pinned == nil {
			for _, one := range all[:len(all)-len(all)%k] {
				pinned = append(pinned, participation.EventKey(one.ID))
			}
		}
		places := make(map[participation.Key]int, len(pinned))
		for i, key := range pinned {
			places[key] = i
		}
		blocks := make([][]block.Person[line], len(pinned)/k)
		for _, one := range all {
			at, known := places[participation.EventKey(one.ID)]
			if !known {
				m.leave([]block.Person[line]{one})
				continue
			}
			if blocks[at/k] == nil {
				blocks[at/k] = make([]block.Person[line], k)
			}
			blocks[at/k][at%k] = one
		}
		for i, people := range blocks {
			if people == nil {
				continue // all of them are elsewhere by now
			}
			e := m.about(participation.RowKey("people of a silo", int64(i)), people)
			e.pinned, e.before = pinned, uint64(i)
			if !yield(e) {
				return
			}
		}
	}
}

// leave counts rows of people who are in no report.
func (m *mapper) leave(people []block.Person[line]) {
	for _, one := range people {
		m.tally.left(uint64(len(one.Rows)))
	}
}
