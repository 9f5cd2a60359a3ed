package shuffle

import (
	"hash/maphash"
	"runtime"
)

// idSeed keys the order of every set in the process. Devices choose their ids: without the key they could choose ids
// that share a place.
var idSeed = maphash.MakeSeed()

// An idSet holds the ids that a mixer counted: a table with linear probing, at most three quarters full. One id is
// looked up for each report, and in low dimensions that is most of what mixing costs.
//
// Ids leave in the reverse of the order in which they came, or all together, so that a slot can be freed as if it had
// never been taken: what was pushed past it has left before.
type idSet struct {
	slots []ReportID // a power of two of them; one of zeros is free
	taken int        // of slots
	zero  bool       // the id of zeros is in the set, and in no slot
}

// newIDSet has room for n ids.
func newIDSet(n uint64) *idSet { return &idSet{slots: makeSlots(n)} }

func makeSlots(n uint64) []ReportID {
	size := uint64(16)
	for size/4*3 < n {
		size *= 2
	}
	return make([]ReportID, size)
}

// find returns the slot that holds id, or the free one that would.
func (s *idSet) find(id ReportID) *ReportID {
	last := uint64(len(s.slots) - 1)
	at := maphash.Bytes(idSeed, id[:]) & last
	for s.slots[at] != id && s.slots[at] != (ReportID{}) {
		at = (at + 1) & last
	}
	return &s.slots[at]
}

// has reports whether an id is in the set.
func (s *idSet) has(id ReportID) bool {
	if id == (ReportID{}) {
		return s.zero
	}
	return *s.find(id) == id
}

// add puts all ids into the set, or none if one is in it already or comes twice.
func (s *idSet) add(ids []ReportID) bool {
	s.reserve(len(ids))
	s.touch(ids)
	for i, id := range ids {
		if !s.insert(id) {
			s.remove(ids[:i])
			return false
		}
	}
	return true
}

// touch reads where the ids of a bundle belong. These reads do not wait for one another, as the reads of insert do: if
// the table is in no cache, several slots are read from memory at a time.
func (s *idSet) touch(ids []ReportID) {
	if len(ids) == 1 {
		return
	}
	last := uint64(len(s.slots) - 1)
	var read byte
	for i := range ids {
		read |= s.slots[maphash.Bytes(idSeed, ids[i][:])&last][0]
	}
	runtime.KeepAlive(read)
}

func (s *idSet) insert(id ReportID) bool {
	if id == (ReportID{}) {
		had := s.zero
		s.zero = true
		return !had
	}
	slot := s.find(id)
	if *slot == id {
		return false
	}
	*slot = id
	s.taken++
	return true
}

// reserve makes room for n more ids.
func (s *idSet) reserve(n int) {
	if s.taken+n <= len(s.slots)/4*3 {
		return
	}
	old := s.slots
	s.slots = makeSlots(2 * uint64(s.taken+n))
	for _, id := range old {
		if id != (ReportID{}) {
			*s.find(id) = id
		}
	}
	clear(old)
}

// remove takes out the ids that were added last.
func (s *idSet) remove(ids []ReportID) {
	for i := len(ids) - 1; i >= 0; i-- {
		if ids[i] == (ReportID{}) {
			s.zero = false
			continue
		}
		*s.find(ids[i]) = ReportID{}
		s.taken--
	}
}
