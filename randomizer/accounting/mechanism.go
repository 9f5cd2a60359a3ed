package accounting

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer"
)

// Mechanism is one adversary's view of one target user: per coordinate the
// target's stochastically rounded position on 0..Levels plus Bin(Trials, P), in
// Rounds rounds (docs/theorem-a.md, Proposition 1). Neighbours differ in one of
// the target's Units, each within a ball of radius Levels/(2 Units).
type Mechanism struct {
	// Trials is N: the honest Bernoulli trials per coordinate, the target's own
	// included; 1 to 2^29-1.
	Trials uint64
	// P is the success probability, a multiple of 2^-24 strictly between 0 and 1.
	P float64
	// Levels is g, the grid steps over [-L, L]; the sensitivity is g steps, or
	// g/Units.
	Levels int
	// Dim is d, the number of coordinates.
	Dim int
	// Rounds is T, the rounds in which the same target takes part.
	Rounds int
	// Units is K, the units that the target's report is about; 0 stands for 1.
	Units uint64
	// Minimizer says that the target is one vector in the ball of radius Levels/2, which moves by
	// at most Levels/Units and what snapping adds where one of the Units is replaced.
	Minimizer bool
}

// mu is the Gaussian parameter of one round at one rung. One unit fills the ball,
// which is known to lie around the lattice's centre; one of several is somewhere.
func (m Mechanism) mu(l level) float64 {
	if m.Minimizer {
		return l.MuShift(randomizer.MinimizerShift(m.Levels, max(m.Units, 1), m.Dim), m.Dim)
	}
	if m.Units <= 1 {
		return l.Mu(m.Levels, m.Dim)
	}
	// The factor covers the rounding of the quotient.
	return l.MuShift(float64(m.Levels)/float64(m.Units)*(1+1e-15), m.Dim)
}

// maxCount bounds Levels, Dim and Rounds: far above any use, and low enough for
// every product below to stay exact or harmless in float64.
const maxCount = 1 << 31

// Validate names the first field that is out of range.
func (m Mechanism) Validate() error {
	if _, err := checkNoise(m.Trials, m.P); err != nil {
		return err
	}
	if err := checkCounts(m.Levels, m.Dim, m.Rounds); err != nil {
		return err
	}
	return checkUnits(m.Units, m.Levels)
}

// checkUnits refuses units for whose balls the lattice's grid has no step: what no report can be about.
func checkUnits(units uint64, levels int) error {
	if most := uint64(levels) << (coinBits - 1); units > most {
		return fmt.Errorf("units %d: want at most %d, a step of the rounding for each of g = %d", units, most, levels)
	}
	return nil
}

func checkCounts(levels, dim, rounds int) error {
	for _, f := range []struct {
		name  string
		value int
	}{{"levels g", levels}, {"dimension d", dim}, {"rounds", rounds}} {
		if f.value < 1 || f.value >= maxCount {
			return fmt.Errorf("%s %d: want 1 to %d", f.name, f.value, maxCount-1)
		}
	}
	return nil
}

// Delta returns an upper bound on delta at eps, at most 1 (Theorem A).
func (m Mechanism) Delta(eps float64) (float64, error) {
	return NewAccountant().Delta(eps, m)
}

// Epsilon returns an epsilon at which Delta was evaluated to be at most delta;
// +Inf means no guarantee up to MaxEpsilon.
func (m Mechanism) Epsilon(delta float64) (float64, error) {
	return NewAccountant().Epsilon(delta, m)
}

// curve is the privacy curve of a composition: for every rung a Gaussian
// parameter and the total slack mass.
type curve []point

type point struct {
	mu float64 // sqrt(sum over rounds of mu_t^2)
	// slack is the sum over rounds of d_t tau_t, charged 1 + e^eps times.
	slack float64
}

// delta is the minimum over windows of deltaG + (1 + e^eps) T d tau
// (docs/theorem-a.md, Theorem A). Every window gives a valid bound at every eps.
func (c curve) delta(eps float64) float64 { return c.scaledDelta(eps, 1) }

// scaledDelta is delta with every mu multiplied by scale; only the planner's
// guesses use a scale other than 1.
func (c curve) scaledDelta(eps, scale float64) float64 {
	best := 1.0
	charge := (1 + math.Exp(eps)) * (1 + 1e-12)
	for _, pt := range c {
		slack := charge * pt.slack
		if !(slack < best) {
			continue
		}
		best = min(best, gaussianDelta(eps, pt.mu*scale)+slack)
	}
	return best
}

// near keeps the points around the best one at eps, for guesses.
func (c curve) near(eps float64) curve {
	best, at := math.Inf(1), 0
	for i, pt := range c {
		if d := gaussianDelta(eps, pt.mu) + (1+math.Exp(eps))*pt.slack; d < best {
			best, at = d, i
		}
	}
	const reach = 6
	return c[max(0, at-reach):min(len(c), at+reach+1)]
}

func (c curve) epsilon(delta float64) float64 {
	return smallestEpsilon(func(eps float64) bool { return c.delta(eps) <= delta })
}
