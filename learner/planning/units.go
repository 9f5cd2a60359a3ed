package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// Silos describes the organisations of a problem. Each of their reports is about a block of units.
type Silos struct {
	Count   uint64 // N; 0: units report for themselves
	Units   uint64 // n, the fewest units of a silo
	Reports uint64 // M, the silos of one round
	// Least is the fewest units of a silo. Under trust local it adds noise for the units it lacks; else Least is Units.
	Least uint64
	// Spread bounds the distance of the mean gradient of a silo's rows from the mean over all silos, at any
	// point of the set. 0: the gradient's norm, which always bounds it in the mean square.
	Spread float64
}

// validate refuses silos that are out of range, or that do not go with the users, the rounds and the kind of plan.
func (s Silos) validate(users uint64, r Rounds, practical bool) error {
	switch {
	case s.Count == 0 && s != Silos{}:
		return fmt.Errorf("silos: %+v without a count", s)
	case s.Count == 0:
		return nil
	case s.Units < 1 || s.Units > 1<<40 || s.Count > 1<<40 || users != s.Count*s.Units:
		return fmt.Errorf("silos: %d of %d units, want users = %d of them in all", s.Count, s.Units, users)
	case s.Reports < 1 || s.Reports > s.Count:
		return fmt.Errorf("silos: %d in a round, want 1 to %d", s.Reports, s.Count)
	case s.Least < 1 || s.Least > s.Units:
		return fmt.Errorf("silos: at least %d units, want 1 to %d", s.Least, s.Units)
	case !(s.Spread >= 0) || math.IsInf(s.Spread, 1):
		return fmt.Errorf("silos: spread %v, want a finite number of at least 0", s.Spread)
	case r.Cohort != 0:
		return fmt.Errorf("cohort: %d, want 0: the reports of a round are those of the silos", r.Cohort)
	case r.Minimum > s.Reports:
		return fmt.Errorf("minimum cohort: %d, want at most the %d silos of a round", r.Minimum, s.Reports)
	case r.Continuous != "" && !practical:
		return fmt.Errorf("continuous: %q, want nothing with silos in a proved plan", r.Continuous)
	}
	return nil
}

// local reports whether the trust is local: every report is private by itself.
func (p Problem) local() bool { return p.Trust == accounting.Local }

// share returns the ratio of the norm of a unit's vector to the norm of a row's.
func (p Problem) share() float64 {
	if p.Radius > 0 {
		return p.Radius
	}
	return 1
}

// unitNorm returns the norm to which the gradient of a unit is clipped.
func (p Problem) unitNorm() float64 { return p.share() * p.ClipNorm }

// about returns the problem with reports about blocks of that many units.
func (p Problem) about(units uint64) Problem {
	p.Units = 0
	if units > 1 {
		p.Units = units
	}
	return p
}

// Blocks returns the largest number of units of a block with which every silo has enough disjoint blocks for its share
// of the rounds, at most one block a round; 0 if it has too few units. If not all silos are in every round, one further
// round's blocks are spare, for reports that come after others have filled a round.
func (s Silos) Blocks(rounds uint64) uint64 {
	all := rounds
	if s.Reports < s.Count {
		all++
	}
	each := min((all*s.Reports+s.Count-1)/s.Count, rounds)
	return s.Units / max(1, each)
}

// heterogeneity returns the variance of a round's mean gradient due to the silos that are not in the round: M of N are
// drawn without replacement for each round, which leaves (N-M)/(N-1) of the variance of draws with replacement.
func (s Silos) heterogeneity(norm float64) float64 {
	if !s.some() {
		return 0
	}
	spread := norm
	if s.Spread > 0 {
		spread = min(spread, s.Spread)
	}
	return float64(s.Count-s.Reports) / float64(s.Count-1) * spread * spread / float64(s.Reports)
}

// some reports whether a round takes reports of fewer than all silos.
func (s Silos) some() bool { return s.Reports < s.Count }

// units returns K as a number: 1 where a report is about one unit.
func (f Forecast) units() uint64 { return max(1, f.Units) }

// window returns w of trust local, an even number: the counts of a silo of Least units, which adds noise for the units
// it lacks, leave the window with probability below 1e-14.
func (p *Proposal) window(trials uint64) uint32 {
	if p.Plan.Trust != wire.Trust_TRUST_LOCAL {
		return 0
	}
	// too wide a window is refused by randomizer.Params
	return uint32(min(randomizer.WindowOf(trials, max(1, p.spare)), randomizer.MaxTrials+1))
}
