package accounting

import "fmt"

// RepeatedEpsilon returns what up to so many participations of one user cost at delta. Each of them is in all releases
// of one of the lists, which the same users answer one after the other, and in all Rounds of each. Which, and whether
// there is another, may depend on everything that was seen before. An intruder looks into one round of all
// (docs/proofs/theorem-a.md, section 4).
func (a *Accountant) RepeatedEpsilon(times int, of [][]Release, delta float64) (Guarantee, error) {
	if err := validateDelta(delta); err != nil {
		return Guarantee{}, err
	}
	learner, intruder, floors, err := a.repeated(times, of)
	if err != nil {
		return Guarantee{}, err
	}
	g := Guarantee{Learner: learner.epsilon(delta)}
	g.Epsilon = g.Learner
	if floors {
		g.HasIntruder = true
		g.Intruder = intruder.epsilon(delta)
		g.Epsilon = max(g.Learner, g.Intruder)
	}
	return g, nil
}

// RepeatedWithin is RepeatedEpsilon at the budget's delta. The search for epsilon may stop a digit above an epsilon
// that delta, evaluated there, shows to hold: where that is the budget's, the budget is the cost.
func (a *Accountant) RepeatedWithin(times int, of [][]Release, b Budget) (Guarantee, error) {
	g, err := a.RepeatedEpsilon(times, of, b.Delta)
	if err != nil || g.Epsilon <= b.Epsilon {
		return g, err
	}
	f, err := a.repeatedDelta(times, of, b.Epsilon)
	if err == nil && f.Delta <= b.Delta {
		g.Epsilon = b.Epsilon
	}
	return g, err
}

// repeatedDelta returns the failure probability at eps of what RepeatedEpsilon composes.
func (a *Accountant) repeatedDelta(times int, of [][]Release, eps float64) (Failure, error) {
	if err := validateEpsilon(eps); err != nil {
		return Failure{}, err
	}
	learner, intruder, floors, err := a.repeated(times, of)
	if err != nil {
		return Failure{}, err
	}
	f := Failure{Learner: learner.Delta(eps)}
	f.Delta = f.Learner
	if floors {
		f.HasIntruder = true
		f.Intruder = intruder.Delta(eps)
		f.Delta = max(f.Learner, f.Intruder)
	}
	return f, nil
}

// repeated returns the curves of the learner, and of an intruder who also looks into one round if there are floors.
func (a *Accountant) repeated(times int, of [][]Release) (learner, intruder Curve, floors bool, err error) {
	if times < 1 || times >= maxCount || len(of) == 0 {
		return nil, nil, false, fmt.Errorf("%d participations in one of %d lists of releases: want 1 to %d, in at least one",
			times, len(of), maxCount-1)
	}
	var seen, looked [][]Mechanism
	for _, releases := range of {
		if len(releases) == 0 {
			return nil, nil, false, fmt.Errorf("a participation in no release: want at least one")
		}
		var all []Mechanism
		for _, r := range releases {
			if err := r.Validate(); err != nil {
				return nil, nil, false, err
			}
			l, _ := r.views()
			all = append(all, l...)
		}
		seen = append(seen, all)
		for at := range releases {
			if one := lookInto(releases, at); one != nil {
				looked = append(looked, one)
			}
		}
	}
	return a.worst([]turns{{times, seen}}), a.worst([]turns{{times - 1, seen}, {1, looked}}), looked != nil, nil
}
