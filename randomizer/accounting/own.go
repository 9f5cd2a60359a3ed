package accounting

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer"
)

// OwnTrials returns the trials with which a report about that many units keeps one of them within the budget: the
// smallest even trials of each of the releases, which the same units answer, in the proportion of the planned ones. A
// silo that is larger than was planned for needs fewer than the plan's, a smaller or stricter one more. Releases are
// of trust Local, where a report is hidden by its own trials alone.
//
// It refuses a budget outside of what Request takes, and one that randomizer.MaxTrials do not meet.
func OwnTrials(of []Release, units uint64, b Budget) ([]uint64, error) {
	if !(b.Epsilon > 0 && b.Epsilon <= MaxEpsilon) || !(b.Delta >= minTargetDelta && b.Delta < 1) {
		return nil, fmt.Errorf("own trials: epsilon %v, delta %v: want a number in (0, %d], and one from %v to below 1",
			b.Epsilon, b.Delta, MaxEpsilon, minTargetDelta)
	}
	if len(of) == 0 {
		return nil, fmt.Errorf("own trials: want at least one release")
	}
	own := make([]Release, len(of))
	var most uint64
	for i, r := range of {
		own[i] = r
		own[i].Units = units
		if r.Trust != Local || r.Trials > randomizer.MaxTrials {
			return nil, fmt.Errorf("own trials: trust %v, %d trials: want local, at most %d", r.Trust, r.Trials,
				uint64(randomizer.MaxTrials))
		}
		if err := own[i].Validate(); err != nil {
			return nil, fmt.Errorf("own trials: %w", err)
		}
		most = max(most, r.Trials)
	}
	// half of the largest trials is what is searched; every value that is returned was evaluated to be enough
	curves := func(half uint64) []Curve {
		var views []Mechanism
		for i, r := range of {
			own[i].Trials = 2 * ((half*r.Trials + most - 1) / most)
			learner, _ := own[i].views()
			views = append(views, learner...)
		}
		return []Curve{compose(views)}
	}
	const limit = randomizer.MaxTrials / 2
	lo, hi := uint64(0), uint64(0) // not enough, enough (0: unknown)
	for half, step := most/2, 0; hi != lo+1; step++ {
		c := curves(half)
		if meets(c, b.Epsilon, b.Delta) {
			hi = half
		} else if lo = half; lo == limit {
			return nil, fmt.Errorf("own trials: %d units need more than %d for epsilon %v, delta %v", units,
				uint64(randomizer.MaxTrials), b.Epsilon, b.Delta)
		}
		next := 2 * float64(lo)
		if h := headroom(c, b.Epsilon, b.Delta); h > 0 && step < 12 {
			next = math.Ceil(float64(half) / (h * h))
		} else if hi > 0 {
			next = float64(lo + (hi-lo)/2)
		}
		if hi > 0 {
			next = min(next, float64(hi-1))
		}
		half = uint64(min(max(next, float64(lo+1)), limit))
	}
	curves(hi)
	trials := make([]uint64, len(of))
	for i, r := range own {
		trials[i] = r.Trials
	}
	return trials, nil
}
