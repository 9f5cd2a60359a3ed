package accounting

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"

	"github.com/panlearn/panlearn/randomizer"
)

// maxUnits bounds every count of users and trials, so that products are checked
// once and totals fit a signed 64-bit word.
const maxUnits = 1 << 62

// Release is everything public about one round's release. It represents every
// adversary that the trust knows (docs/proofs/theorem-a.md, section 5).
type Release struct {
	Trust Trust
	// Users is n, the planned cohort, in reports. Top-up keeps the noise of a smaller
	// one at or above Floor(n) users' worth, so n and not the actual count enters.
	// Under Local it is there for the noise of the mean alone.
	Users uint64
	// Dim is d and Levels is g, as in Mechanism.
	Dim, Levels int
	// Trials is b, the Bernoulli trials that each report carries per coordinate;
	// 0 under Pan and Split, at least 1 otherwise.
	Trials uint64
	// P is the success probability of every trial, floors included.
	P float64
	// FloorTrials is N_f, the trials per coordinate of one floor; the other floor
	// has as many. At least 1 under Pan, ShufflePan and Split, 0 otherwise.
	FloorTrials uint64
	// HonestFraction is the assumed honest share of the planned cohort; 1 under
	// Local, where nobody's noise but a report's own is relied upon.
	HonestFraction Fraction
	// Rounds is T, the rounds that one user may take part in.
	Rounds int
	// Units is K, the units that a report is about: replacing one moves it by at most
	// g/K steps. 0 means 1. Guarantees are for one of them.
	Units uint64
	// Minimizer reports that a report is one vector of all units. If one unit is replaced, the vector moves by at most
	// Levels/Units plus the effect of snapping (randomizer.MinimizerShift).
	Minimizer bool
}

// A Budget bounds the cost to a user: two numbers that must not change places.
type Budget struct{ Epsilon, Delta float64 }

// A Guarantee is the cost to a user of one (or T) releases at a given delta.
type Guarantee struct {
	// Epsilon holds for the worst adversary of the trust; +Inf means none.
	Epsilon float64
	// Learner sees every release and nothing else.
	Learner float64
	// Intruder also sees the running totals of one round once, between two
	// reports. Meaningful if HasIntruder: trust Shuffle claims nothing there.
	Intruder    float64
	HasIntruder bool
	// Operator is the learner and one of two operators: together they see every release behind the other operator's
	// floor alone. Meaningful if HasOperator: trust Split.
	Operator    float64
	HasOperator bool
}

// Second returns the adversary beside the learner, as plans call it, and its epsilon; "" where the trust knows none.
func (g Guarantee) Second() (adversary string, epsilon float64) {
	switch {
	case g.HasIntruder:
		return "intruder", g.Intruder
	case g.HasOperator:
		return "operator", g.Operator
	}
	return "", 0
}

// MarshalJSON writes epsilon, epsilon_learner and epsilon_intruder, and epsilon_operator where there are operators;
// null means no guarantee, and for an intruder that the trust does not know.
func (g Guarantee) MarshalJSON() ([]byte, error) {
	finite := func(v float64) *float64 {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil
		}
		return &v
	}
	out := struct {
		Epsilon  *float64 `json:"epsilon"`
		Learner  *float64 `json:"epsilon_learner"`
		Intruder *float64 `json:"epsilon_intruder"`
		Operator *float64 `json:"epsilon_operator,omitempty"`
	}{finite(g.Epsilon), finite(g.Learner), nil, nil}
	if g.HasIntruder {
		out.Intruder = finite(g.Intruder)
	}
	if g.HasOperator {
		out.Operator = finite(g.Operator)
	}
	return json.Marshal(out)
}

// Failure is the delta of one (or T) releases at a given epsilon, by adversary.
type Failure struct {
	Delta       float64 `json:"delta"`         // of the worst adversary
	Learner     float64 `json:"delta_learner"` // see Guarantee
	Intruder    float64 `json:"delta_intruder"`
	HasIntruder bool    `json:"has_intruder"`
	Operator    float64 `json:"delta_operator,omitempty"`
	HasOperator bool    `json:"has_operator,omitempty"`
}

// Validate names the first field that is out of range, and the range.
func (r Release) Validate() error {
	if err := r.Trust.validate(); err != nil {
		return err
	}
	if r.Users < 1 || r.Users >= 1<<40 {
		return fmt.Errorf("users %d: want 1 to 2^40-1", r.Users)
	}
	if err := validateCounts(r.Levels, r.Dim, r.Rounds); err != nil {
		return err
	}
	if _, err := gridP(r.P); err != nil {
		return err
	}
	if err := validateHonest(r.HonestFraction, r.Users); err != nil {
		return err
	}
	if err := validateUnits(r.Units, r.Levels); err != nil {
		return err
	}
	if err := validateLocal(r.Trust, r.HonestFraction); err != nil {
		return err
	}
	if r.Trust == Local && (r.P != 0.5 || r.Trials%2 != 0) {
		return fmt.Errorf(
			"p %v, trials per user %d: want 0.5 and an even number under local, whose reports are centred at half of them", r.P,
			r.Trials)
	}
	if r.Trust == Split && (r.P != 0.5 || r.Levels&(r.Levels+1) != 0) {
		return fmt.Errorf("p %v, g %d: want 0.5 and one less than a power of two under split, whose proofs are of whole bits",
			r.P, r.Levels)
	}
	if r.Trust.HasReportNoise() != (r.Trials > 0) {
		return fmt.Errorf("trials per user %d: want 0 under pan and split, at least 1 elsewhere; trust %v", r.Trials, r.Trust)
	}
	if r.Trust.HasFloors() != (r.FloorTrials > 0) {
		return fmt.Errorf(
			"floor trials %d: want 0 under shuffle and local, at least 1 under pan, shuffle+pan and split; trust %v",
			r.FloorTrials, r.Trust)
	}
	if r.FloorTrials >= maxUnits/4 || r.Trials >= maxUnits/4 {
		return fmt.Errorf("trials per user %d, floor trials %d: want below 2^60", r.Trials, r.FloorTrials)
	}
	over, total := bits.Mul64(r.Users, r.Trials+uint64(r.Levels))
	if over != 0 || total >= maxUnits/4 {
		return fmt.Errorf("users %d x (g %d + b %d): want totals below 2^60", r.Users, r.Levels, r.Trials)
	}
	return nil
}

func validateHonest(f Fraction, users uint64) error {
	if f.IsZero() {
		return fmt.Errorf("honest fraction 0: want a fraction in (0, 1]")
	}
	if f.Floor(users) < 1 {
		return fmt.Errorf("honest fraction %v of %d users is below one user: want at least 1/%d", f, users, users)
	}
	return nil
}

func validateLocal(t Trust, honest Fraction) error {
	if t == Local && honest != One {
		return fmt.Errorf("honest fraction %v: want 1 under trust local: nobody's noise but the report's own is relied upon",
			honest)
	}
	return nil
}

// Noise returns where the trials of a total come from.
func (r Release) Noise() randomizer.Noise {
	return randomizer.Noise{Report: r.Trials, Floor: r.FloorTrials}
}

// noiseStd returns the standard deviation of one coordinate of the estimated mean,
// privacy noise of all users and both floors alone, in units of the clip norm. It
// hardly depends on the units of a report, over which the estimate is a mean.
func (r Release) noiseStd() float64 {
	return 2 / (float64(r.Levels) * float64(r.Users)) * math.Sqrt(float64(r.Noise().Released(r.Users))*r.P*(1-r.P)) * r.stretch()
}

// roundingStd returns the worst case of the same for stochastic rounding.
func (r Release) roundingStd() float64 { return roundingStd(r.Users, r.Levels) * r.stretch() }

// stretch returns the factor by which a step exceeds 2/g, since the balls of K units do not quite fill the lattice's
// (randomizer.Params).
func (r Release) stretch() float64 {
	if r.Minimizer {
		return 1 // one ball, which is the lattice's
	}
	all, units := uint64(r.Levels)<<(coinBits-1), max(r.Units, 1)
	return float64(all) / float64(all/units*units)
}

// roundingStd returns (2/g) sqrt(n/4)/n: a rounding has variance at most 1/4.
func roundingStd(users uint64, levels int) float64 {
	return 1 / (float64(levels) * math.Sqrt(float64(users)))
}

// Epsilon returns what the release costs at delta.
func (r Release) Epsilon(delta float64) (Guarantee, error) {
	return RepeatedEpsilon(1, [][]Release{{r}}, delta)
}

// Delta returns the failure probability of the release at eps.
func (r Release) Delta(eps float64) (Failure, error) {
	return repeatedDelta(1, [][]Release{{r}}, eps)
}

// Within is RepeatedWithin of one participation.
func (r Release) Within(b Budget) (Guarantee, error) {
	return RepeatedWithin(1, [][]Release{{r}}, b)
}

// views lists what each adversary sees of one target over its T rounds; second is nil where there is the learner alone.
//
// The learner sees totals with all honest noise and both floors. The intruder looks into one round: a target before
// the look is hidden by the front floor and its own trials, one after it by the back floor and its own trials,
// whatever the other users do; the other T-1 rounds look as they do to the learner. Under Local the learner, the stage
// and all others together see one report at a time. An operator of Split takes its own share and floor away from all T
// rounds: what is left is behind the other's floor (docs/proofs/split.md).
func (r Release) views() (learner, second []Mechanism) {
	var shift float64
	if r.Minimizer {
		shift = randomizer.MinimizerShift(r.Levels, max(r.Units, 1), r.Dim)
	}
	view := func(trials uint64, rounds int) Mechanism {
		return Mechanism{Trials: trials, P: r.P, Levels: r.Levels, Dim: r.Dim, Rounds: rounds, Units: r.Units, Shift: shift}
	}
	honest := r.Noise().Released(r.HonestFraction.Floor(r.Users))
	if r.Trust == Local {
		honest = r.Trials // everybody else may be the adversary
	}
	learner = []Mechanism{view(honest, r.Rounds)}
	switch {
	case r.Trust.HasIntruder():
		second = []Mechanism{view(r.Noise().Intruded(1), 1)}
		if r.Rounds > 1 {
			second = append(second, view(honest, r.Rounds-1))
		}
	case r.Trust.HasOperators():
		behind := r.FloorTrials // the other's; its own an operator takes away
		second = []Mechanism{view(behind, r.Rounds)}
	}
	return learner, second
}

// lookInto returns the views of releases, if an intruder looks into one round of the release at index at; nil if that
// covers no look.
func lookInto(releases []Release, at int) (views []Mechanism) {
	for i, r := range releases {
		learner, second := r.views()
		if i != at {
			views = append(views, learner...)
		} else if !r.Trust.HasIntruder() {
			return nil
		} else {
			views = append(views, second...)
		}
	}
	return views
}

// operated returns the views of releases to the learner and one operator together, and whether any of them has
// operators.
func operated(releases []Release) (views []Mechanism, any bool) {
	for _, r := range releases {
		seen, second := r.views()
		if r.Trust.HasOperators() {
			seen, any = second, true
		}
		views = append(views, seen...)
	}
	return views, any
}
