package sim

import (
	"fmt"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// ownNoise finds the noise of silos that answer many rounds under trust local: each, as its device does,
// takes the trials with which reports about its own number of units meet the task's budget, so that a larger
// silo adds less noise and a smaller one more.
type ownNoise struct {
	plan  *wire.Plan
	known map[ownKey]uint32
}

type ownKey struct {
	phase int
	units uint64
}

func newOwnNoise(plan *wire.Plan) *ownNoise {
	return &ownNoise{plan, map[ownKey]uint32{}}
}

// applies reports whether the silos of a phase have noise of their own.
func (o *ownNoise) applies(phase int) bool {
	at := manifest.Costliest(o.plan, phase)
	return o.plan.Silos > 0 && at.Phase.Mechanism.GetWindow() > 0 && at.Interactive()
}

// params returns the parameters of a report about this many units in a phase that applies: the plan's, with
// this number of units and, if it is not the planned one, with the trials for which the silo's units cost as
// much as those of a silo as planned. It returns an error if the counts would leave their window.
func (o *ownNoise) params(phase int, p randomizer.Params, units uint64) (randomizer.Params, error) {
	if units == max(1, p.Units) {
		return p, nil
	}
	key := ownKey{phase, units}
	if _, known := o.known[key]; !known {
		at := manifest.Costliest(o.plan, phase)
		of, b, err := at.OwnBudget()
		if err != nil {
			return p, err
		}
		own, err := accounting.OwnTrials(of, units, b)
		if err != nil {
			return p, fmt.Errorf("a silo of %d units: %w", units, err)
		}
		for i, trials := range own {
			o.known[ownKey{at.Stint.Index + i, units}] = uint32(trials)
		}
	}
	p.Units, p.Trials = units, o.known[key]
	if uint64(p.Trials) > p.Room() { // its device refuses
		return p, fmt.Errorf("a silo of %d units: the counts of its reports would leave their window", units)
	}
	return p, nil
}
