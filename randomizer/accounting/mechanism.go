package accounting

import "fmt"

// Mechanism is one adversary's view of one target user: per coordinate the
// target's stochastically rounded position on 0..Levels plus Bin(Trials, P), in
// Rounds rounds (docs/proofs/theorem-a.md, Proposition 1). Neighbours differ in one of
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
	// Units is K, the units that the target's report is about; 0 means 1.
	Units uint64
	// Shift, if it is not 0, bounds the distance in levels between neighbours' places, snapping included
	// (randomizer.Shift), where the target is one vector somewhere in the ball of radius Levels/2; Units do not enter
	// then.
	Shift float64
}

// mu returns the Gaussian parameter of one round at one rung. One unit fills the ball, which is known to lie around
// the lattice's centre; one of several is somewhere.
func (m Mechanism) mu(l level) float64 {
	if m.Shift > 0 {
		return l.muShift(m.Shift, m.Dim)
	}
	if m.Units <= 1 {
		return l.mu(m.Levels, m.Dim)
	}
	// The factor covers the rounding of the quotient.
	return l.muShift(float64(m.Levels)/float64(m.Units)*(1+1e-15), m.Dim)
}

// maxCount bounds Levels, Dim and Rounds: far above any use, and low enough for
// every product below to stay exact or harmless in float64.
const maxCount = 1 << 31

// validate names the first field that is out of range.
func (m Mechanism) validate() error {
	if _, err := checkNoise(m.Trials, m.P); err != nil {
		return err
	}
	if err := validateCounts(m.Levels, m.Dim, m.Rounds); err != nil {
		return err
	}
	if !(m.Shift >= 0 && m.Shift <= 2*maxCount) {
		return fmt.Errorf("shift %v: want 0 to %d levels", m.Shift, 2*maxCount)
	}
	return validateUnits(m.Units, m.Levels)
}

// validateUnits refuses units for whose balls the lattice's grid has no step: what no report can be about.
func validateUnits(units uint64, levels int) error {
	if most := uint64(levels) << (coinBits - 1); units > most {
		return fmt.Errorf("units %d: want at most %d, a step of the rounding for each of g = %d", units, most, levels)
	}
	return nil
}

func validateCounts(levels, dim, rounds int) error {
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
	return Delta(eps, m)
}

// Epsilon returns an epsilon at which Delta was evaluated to be at most delta;
// +Inf means no guarantee up to MaxEpsilon.
func (m Mechanism) Epsilon(delta float64) (float64, error) {
	return Epsilon(delta, m)
}
