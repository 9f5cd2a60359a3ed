package device

import (
	"maps"
	"slices"

	"github.com/panlearn/panlearn/stream"
)

// A roundTable holds the known rounds: the newest, and the rounds with events of this client.
type roundTable struct {
	of     map[stream.Round]*round
	newest *round // nil before the first
}

// number returns the number of the newest round known, 0 before the first.
func (t *roundTable) number() stream.Round {
	if t.newest == nil {
		return 0
	}
	return t.newest.number
}

// sorted returns the known rounds, oldest first.
func (t *roundTable) sorted() []*round {
	return slices.SortedFunc(maps.Values(t.of), func(a, b *round) int { return int(int64(a.number) - int64(b.number)) })
}

// absent counts the members of the newest round that are still charged in an earlier one. Their places are kept
// for them.
func (t *roundTable) absent() (n uint64) {
	if !t.newest.later() {
		return 0
	}
	for _, one := range t.of {
		if one == t.newest {
			continue
		}
		for _, b := range one.bundles {
			for _, e := range b.events {
				if e.record.Stays(t.newest.phase()) {
					n++
				}
			}
		}
	}
	return n
}

// proveClosed notes that the store proves the round of a number to be closed, if it is the newest.
func (t *roundTable) proveClosed(number stream.Round) {
	if t.newest != nil && number >= t.newest.number {
		t.newest.done = true
	}
}

// abandonLost notes that the task has gone on with a new round: the lost rounds will have no Close.
func (t *roundTable) abandonLost() {
	for _, one := range t.of {
		one.gone = one.gone || one.lost && one.closed == nil
	}
}

// lose notes that the broker has lost the open rounds from a number on: nobody joins them.
func (t *roundTable) lose(from stream.Round) {
	for _, one := range t.of {
		if one.number >= from && one.closed == nil {
			one.lost, one.claimed = true, true
		}
	}
}
