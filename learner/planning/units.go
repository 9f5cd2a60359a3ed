package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// Silos are the organisations of a problem, each of whose reports is about a block of units.
type Silos struct {
	Count   uint64 // N; 0: everybody reports for himself
	Units   uint64 // n, the fewest units of a silo
	Reports uint64 // M, the silos of one round
	// the fewest units of a silo that makes up for those it lacks by noise of its own: trust local; else Units
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

// local reports whether every report hides by itself the row it is about.
func (p Problem) local() bool { return p.Trust == accounting.Local }

// share returns the norm of a unit's vector over the norm of a row's.
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

// Blocks returns the most units that a block may have so that every silo has enough blocks for its share of
// that many rounds, with at most one block in a round; 0 where it has too few units. Its units enter no two
// blocks. Where not all silos are in every round, the blocks of one round are to spare, for reports that come
// when others have filled a round.
func (s Silos) Blocks(rounds uint64) uint64 {
	all := rounds
	if s.Reports < s.Count {
		all++
	}
	each := min((all*s.Reports+s.Count-1)/s.Count, rounds)
	return s.Units / max(1, each)
}

// heterogeneity returns the variance of a round's mean gradient that comes of the silos that are not in the
// round: (N-M)/(N-1) of the variance of M drawn from N without replacement, with a new draw for each round.
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

// window returns w of trust local: the counts of a silo of least units, whose noise makes up for those that it
// lacks, leave it with less than 1e-14 of probability. It is even.
func (p *Proposal) window(trials uint64) uint32 {
	if p.Plan.Trust != wire.Trust_TRUST_LOCAL {
		return 0
	}
	// too wide a window is refused by randomizer.Params
	return uint32(min(randomizer.WindowOf(trials, max(1, p.spare)), randomizer.MaxTrials+1))
}
