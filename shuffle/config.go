package shuffle

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/panlearn/panlearn/randomizer"
)

// defaultMaxBundle is the bundle size used for Config.MaxBundle = 0: single reports only.
const defaultMaxBundle = 1

// maxCohort bounds the id set: 16 bytes and the set's overhead for each user.
const maxCohort = 1 << 32

// Config fixes one attempt of a round.
type Config struct {
	// Params are the round's.
	Params randomizer.Params
	// Cohort is n, the number of users at which the mixer is full, at least 1.
	Cohort uint64
	// Planned is the number of users that the noise of the round is planned for, at least Cohort: the noise of missing
	// users is added when the mixer closes. 0 means Cohort.
	Planned uint64
	// Minimum is the number of users below which nothing is released, in [1, Cohort].
	Minimum uint64
	// MaxBundle is the largest number of users in one bundle; 0 means 1. The cohort can exceed Cohort by MaxBundle-1.
	MaxBundle uint64
	// SideBySide is the number of reports that lie side by side in one, each in as many coordinates of its own, as an
	// audit runs many rounds in one mixer. 0 means 1. Leave it 0 in production: otherwise a device's report would be
	// checked in parts.
	SideBySide int
	// Entropy makes a fresh generator, whenever one is needed. nil means randomizer.NewEntropy and is the only right
	// value in production: a generator that can be made again reveals the floors.
	Entropy func() rand.Source
}

// Validate refuses values without meaning and totals that could reach 2^63.
func (c Config) Validate() error {
	if err := c.Params.Validate(); err != nil {
		return err
	}
	bundle := max(c.MaxBundle, defaultMaxBundle)
	switch {
	case c.Cohort < 1 || c.Cohort > maxCohort:
		return fmt.Errorf("mixer: Cohort = %d is outside [1, %d]", c.Cohort, uint64(maxCohort))
	case c.planned() < c.Cohort || c.planned() > maxCohort:
		return fmt.Errorf("mixer: Planned = %d is outside [Cohort = %d, %d]", c.Planned, c.Cohort, uint64(maxCohort))
	case c.Minimum < 1 || c.Minimum > c.Cohort:
		return fmt.Errorf("mixer: Minimum = %d is outside [1, Cohort = %d]", c.Minimum, c.Cohort)
	case bundle > c.Cohort:
		return fmt.Errorf("mixer: MaxBundle = %d is above Cohort = %d", bundle, c.Cohort)
	}
	if n := c.SideBySide; n < 0 || n > 0 && c.Params.Dim%n != 0 {
		return fmt.Errorf("mixer: SideBySide = %d, want a divisor of Dim = %d", n, c.Params.Dim)
	}
	missing := c.planned() - c.Minimum
	if c.Params.Window > 0 { // nobody's noise is topped up
		missing = 0
	}
	if hi, lo := bits.Mul64(missing, uint64(c.Params.Trials)); hi != 0 || lo > randomizer.MaxBinomialTrials {
		return fmt.Errorf(
			"mixer: a top-up for Planned - Minimum = %d users with Trials = %d is above %d trials; raise Minimum",
			missing, c.Params.Trials, uint64(randomizer.MaxBinomialTrials))
	}
	return c.Params.HeadRoom(max(c.Cohort+bundle-1, c.planned()))
}

// planned returns the number of users that the noise is planned for.
func (c Config) planned() uint64 { return cmp.Or(c.Planned, c.Cohort) }
