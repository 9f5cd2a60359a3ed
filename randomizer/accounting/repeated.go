package accounting

import "fmt"

// RepeatedEpsilon returns what up to so many participations of one user cost at delta. Each of them is in all releases
// of one of the lists, which the same users answer one after the other, and in all Rounds of each. Which, and whether
// there is another, may depend on everything that was seen before. An intruder looks into one round of all
// (docs/proofs/theorem-a.md, section 4), an operator sees every participation as an operator.
func RepeatedEpsilon(times int, of [][]Release, delta float64) (Guarantee, error) {
	if err := validateDelta(delta); err != nil {
		return Guarantee{}, err
	}
	c, err := repeated(times, of)
	if err != nil {
		return Guarantee{}, err
	}
	g := Guarantee{Learner: c.learner.epsilon(delta), HasIntruder: c.intruder != nil, HasOperator: c.operator != nil}
	if g.HasIntruder {
		g.Intruder = c.intruder.epsilon(delta)
	}
	if g.HasOperator {
		g.Operator = c.operator.epsilon(delta)
	}
	g.Epsilon = max(g.Learner, g.Intruder, g.Operator)
	return g, nil
}

// RepeatedWithin is RepeatedEpsilon at the budget's delta. The search for epsilon may stop a digit above an epsilon
// that delta, evaluated there, shows to hold: where that is the budget's, the budget is the cost.
func RepeatedWithin(times int, of [][]Release, b Budget) (Guarantee, error) {
	g, err := RepeatedEpsilon(times, of, b.Delta)
	if err != nil || g.Epsilon <= b.Epsilon {
		return g, err
	}
	f, err := repeatedDelta(times, of, b.Epsilon)
	if err == nil && f.Delta <= b.Delta {
		g.Epsilon = b.Epsilon
	}
	return g, err
}

// repeatedDelta returns the failure probability at eps of what RepeatedEpsilon composes.
func repeatedDelta(times int, of [][]Release, eps float64) (Failure, error) {
	if err := validateEpsilon(eps); err != nil {
		return Failure{}, err
	}
	c, err := repeated(times, of)
	if err != nil {
		return Failure{}, err
	}
	f := Failure{Learner: c.learner.Delta(eps), HasIntruder: c.intruder != nil, HasOperator: c.operator != nil}
	if f.HasIntruder {
		f.Intruder = c.intruder.Delta(eps)
	}
	if f.HasOperator {
		f.Operator = c.operator.Delta(eps)
	}
	f.Delta = max(f.Learner, f.Intruder, f.Operator)
	return f, nil
}

// adversaries holds a curve of each; nil for one that the trust does not know.
type adversaries struct{ learner, intruder, operator Curve }

// repeated returns the curves of the learner, of an intruder who also looks into one round if the trust covers one, and
// of an operator who sees all that one of two does.
func repeated(times int, of [][]Release) (adversaries, error) {
	if times < 1 || times >= maxCount || len(of) == 0 {
		return adversaries{}, fmt.Errorf("%d participations in one of %d lists of releases: want 1 to %d, in at least one",
			times, len(of), maxCount-1)
	}
	var seen, looked, held [][]Mechanism
	operators := false
	for _, releases := range of {
		if len(releases) == 0 {
			return adversaries{}, fmt.Errorf("a participation in no release: want at least one")
		}
		var all []Mechanism
		for _, r := range releases {
			if err := r.Validate(); err != nil {
				return adversaries{}, err
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
		one, any := operated(releases)
		held, operators = append(held, one), operators || any
	}
	c := adversaries{learner: worst([]turns{{times, seen}})}
	if looked != nil {
		c.intruder = known(worst([]turns{{times - 1, seen}, {1, looked}}))
	}
	if operators {
		c.operator = known(worst([]turns{{times, held}}))
	}
	return c, nil
}

// known returns a curve that is not nil: without a point it promises nothing.
func known(c Curve) Curve { return append(Curve{}, c...) }
