package shuffle

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestIDSetIsASet checks that an idSet does what a map does, through growth, refusals and removals.
func TestIDSetIsASet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, want := newIDSet(rapid.Uint64Range(0, 40).Draw(rt, "room")), map[ReportID]bool{}
		few := rapid.Custom(func(rt *rapid.T) (id ReportID) { // among them the id of zeros
			binary.BigEndian.PutUint16(id[14:], rapid.Uint16Range(0, 300).Draw(rt, "id"))
			return id
		})
		for range rapid.IntRange(1, 60).Draw(rt, "bundles") {
			ids := rapid.SliceOfN(few, 0, 9).Draw(rt, "ids")
			after := maps.Clone(want)
			for _, id := range ids {
				after[id] = true
			}
			before, table := slices.Clone(s.slots), len(s.slots)
			added := s.add(ids)
			if fresh := len(after) == len(want)+len(ids); added != fresh {
				rt.Fatalf("add %x to %d ids: %t", ids, len(want), added)
			}
			if added && rapid.Bool().Draw(rt, "refused later") {
				s.remove(ids)
				added = false
			}
			if !added && len(s.slots) == table && !slices.Equal(s.slots, before) {
				rt.Fatalf("refused ids leave a trace: %x, before %x", s.slots, before)
			}
			if added {
				want = after
			}
			if s.len() != len(want) || s.taken > len(s.slots)/4*3 {
				rt.Fatalf("%d ids in %d slots, want %d", s.len(), len(s.slots), len(want))
			}
			for id := range want {
				if id != (ReportID{}) && *s.find(id) != id {
					rt.Fatalf("%x is lost", id)
				}
			}
		}
	})
}

// A set that starts small grows without losing an id; each is refused from then on.
func TestIDSetGrows(t *testing.T) {
	s := newIDSet(0)
	id := func(i int) []ReportID { return []ReportID{name(i)} }
	const n = 100_000
	for i := range n {
		if !s.add(id(i)) {
			t.Fatalf("id %d is refused", i)
		}
	}
	for i := range n {
		if s.add(id(i)) {
			t.Fatalf("id %d is taken twice", i)
		}
	}
	if s.len() != n {
		t.Errorf("%d ids, want %d", s.len(), n)
	}
}

func (s *idSet) len() int {
	if s.zero {
		return s.taken + 1
	}
	return s.taken
}
