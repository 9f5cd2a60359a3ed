package consent

import (
	"slices"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// A bound on a whole silo is about neighbours of which one has other rows in the place of all that a silo has, as many.
// A report's place lies in the ball of radius g/2 whatever the rows are, so to the accountant they are one unit: the
// hybrid of Lowy and Razaviyayn (ICLR 2023), Appendix D.3.5, without the loss of adding up rows.

// checkWhole refuses a task for which no bound on a whole silo is computed, where the policy has one.
func (a *Agreement) checkWhole() error {
	stints := 0
	for _, f := range a.Task.Plan.Phases {
		if !f.Again {
			stints++
		}
	}
	if a.policy.MaxSiloEpsilon == 0 || a.own() && a.Whole() && stints == 1 {
		return nil
	}
	return Refuse("max_silo_epsilon", a.policy.MaxSiloEpsilon,
		"a task of trust local in which silos answer every round with all their rows: there alone is that bound computed")
}

// asOne returns the releases of the silo's rounds, to which all its rows are one unit, with so many trials.
func (s ownSilo) asOne(trials []uint64) ([]accounting.Release, error) {
	of, err := manifest.Costliest(s.plan, 0).Releases(s.HonestFraction)
	for i := range of {
		of[i].Units, of[i].Trials = 1, trials[i]
	}
	return of, err
}

// hide returns trials, no fewer than those given, with which all rows of the silo together cost no more than the
// policy allows.
func (s ownSilo) hide(trials []uint64) ([]uint64, error) {
	if s.policy.MaxSiloEpsilon == 0 || s.compareWhole(trials) == nil {
		return trials, nil
	}
	of, err := s.asOne(s.Trials())
	if err != nil {
		return nil, refuseCost(0, err)
	}
	limit := accounting.Budget{Epsilon: s.policy.MaxSiloEpsilon, Delta: s.Delta}
	own, err := accounting.OwnTrials(of, 1, limit)
	if err != nil {
		return nil, Refuse("max_silo_epsilon", limit.Epsilon, "more: %v", err)
	}
	out := slices.Clone(trials)
	for i, n := range own {
		out[i] = max(n, out[i])
	}
	if !s.crowded(out) {
		return out, nil
	}
	full := s.Trials()
	for i := range full {
		full[i] = s.room(i)
	}
	if of, err = s.asOne(full); err != nil {
		return nil, refuseCost(0, err)
	}
	g, err := accounting.RepeatedEpsilon(1, [][]accounting.Release{of}, s.Delta)
	if err != nil {
		return nil, refuseCost(0, err)
	}
	return nil, Refuse("max_silo_epsilon", limit.Epsilon,
		"at least %v, for which the reports of the task have room for a silo's own noise", g.Epsilon)
}

// compareWhole refuses trials with which all rows of the silo together cost more than the policy allows.
func (s ownSilo) compareWhole(trials []uint64) error {
	limit := accounting.Budget{Epsilon: s.policy.MaxSiloEpsilon, Delta: s.Delta}
	if limit.Epsilon == 0 {
		return nil
	}
	of, err := s.asOne(trials)
	if err != nil {
		return refuseCost(0, err)
	}
	g, err := accounting.RepeatedWithin(1, [][]accounting.Release{of}, limit)
	if err != nil {
		return refuseCost(0, err)
	}
	if !(g.Epsilon <= limit.Epsilon*(1+tolerance)) {
		return Refuse("all rows of this silo: epsilon", g.Epsilon, "at most %v, the policy's max_silo_epsilon", limit.Epsilon)
	}
	return nil
}
