package service

import (
	"iter"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// Planned is how many steps a task takes; 0 for a task without end.
func Planned(plan *wire.Plan) uint64 {
	if manifest.Endless(plan) {
		return 0
	}
	return manifest.Steps(plan)
}

// Tally sums up the charged rounds of a ledger: how many took a step, and how many users they counted. The users of an
// interactive phase answer each of its rounds and are counted in the round that has most of them.
func Tally(plan *wire.Plan, charged iter.Seq[state.Entry]) (steps, users uint64) {
	step := uint64(1)
	var phase, most uint64 // the interactive phase of the last round, from 1, and its largest round
	for e := range charged {
		at, found := manifest.PhaseOf(plan, step)
		of := uint64(0)
		if found && at.Interactive() {
			of = uint64(at.Index) + 1
		}
		if of != phase {
			users, phase, most = users+most, of, 0
		}
		real := e.Kind == state.Spent
		if real {
			steps++
		}
		switch {
		case real && of > 0:
			most = max(most, e.Users)
		case real:
			users += e.Users
		}
		if of > 0 || real { // a void round of an interactive phase takes its step along
			step++
		}
	}
	return steps, users + most
}
