package randomizer

import (
	"fmt"
	"math"
	"math/bits"
)

// Bounds of Params. They leave room for every plan of the paper and keep all integer arithmetic within 128 bits.
const (
	MaxDim      = 1 << 24 // coordinates
	MaxLevels   = 1 << 30 // g
	MaxTrials   = 1 << 31 // b
	minClipNorm = 1e-30   // L
	maxClipNorm = 1e30    // L
)

// Params fixes the private sum of one round: the reports of a device, the noise that the stage adds, and how totals
// are read. It is public, and the same for all users of a round.
type Params struct {
	// Dim is the number of coordinates d, extra coordinates included.
	Dim int
	// ClipNorm is L, the L2 norm to which vectors are clipped, in the units of the vector.
	ClipNorm float64
	// Levels is g: a coordinate in [-L, L] becomes a lattice position in {0, ..., g}. More levels mean less rounding
	// noise and, at fixed privacy, more trials.
	Levels uint32
	// Trials is b, the coin flips that a report adds to each coordinate. 0 sends no noise at all: right only where
	// the noise is put in elsewhere.
	Trials uint32
	// FloorTrials is N_f, the flips of each of the two floors that the stage lays under every total, one before the
	// first report and one after the last; devices add nothing of it. 0 lays none.
	FloorTrials uint64
	// Units is K, the number of units that a report is about: each lies in a ball of floor(g 2^23/K) steps of 2^-24 of
	// a level, so that replacing one moves the report's place by at most g/K levels. 0 means 1.
	Units uint64
	// Minimizer reports that a report is one vector, such as the minimiser of a loss over its units, which moves by at
	// most 2 ClipNorm/Units if one of them is replaced: it has the whole ball of radius g/2 to itself. The caller is
	// responsible for that bound, snapping only for the distance that it adds.
	Minimizer bool
	// Window is w, even: a report's counts are moved to where noise is centred at w/2, and kept within 0 and g+w, so
	// that their width reveals nothing about its trials, and nobody's noise is topped up. It requires a fair coin, an
	// even b and no floors. 0: counts are in 0 to g+b, as they are drawn.
	Window uint32
	// Coin is the success probability p of a flip, in reports, floors and top-ups alike.
	Coin Coin
}

// Validate refuses parameters that have no meaning or could overflow. The error names the field, its value and what
// would be accepted.
func (p Params) Validate() error {
	switch {
	case p.Dim < 1 || p.Dim > MaxDim:
		return fmt.Errorf("params: Dim = %d is outside [1, %d]", p.Dim, MaxDim)
	case !(p.ClipNorm >= minClipNorm && p.ClipNorm <= maxClipNorm):
		return fmt.Errorf("params: ClipNorm = %v is outside [%g, %g]", p.ClipNorm, minClipNorm, maxClipNorm)
	case p.Levels < 1 || p.Levels > MaxLevels:
		return fmt.Errorf("params: Levels = %d is outside [1, %d]", p.Levels, MaxLevels)
	case p.Trials > MaxTrials:
		return fmt.Errorf("params: Trials = %d is above %d", p.Trials, uint32(MaxTrials))
	case p.FloorTrials > MaxBinomialTrials:
		return fmt.Errorf("params: FloorTrials = %d is above %d", p.FloorTrials, uint64(MaxBinomialTrials))
	case p.units() > radius(p.Levels):
		return fmt.Errorf("params: Units = %d is above the %d steps from the centre to the ends of Levels = %d", p.Units,
			radius(p.Levels), p.Levels)
	case p.Window > MaxTrials || p.Window%2 != 0:
		return fmt.Errorf("params: Window = %d is odd or above %d", p.Window, uint32(MaxTrials))
	case p.Window > 0 && (p.Trials%2 != 0 || p.FloorTrials != 0 || p.Coin != Fair):
		return fmt.Errorf(
			"params: Window = %d with Trials = %d, FloorTrials = %d and a coin of %v: want an even number, 0 and 0.5",
			p.Window, p.Trials, p.FloorTrials, p.Coin)
	}
	if err := p.Coin.validate(); err != nil {
		return fmt.Errorf("params: %w", err)
	}
	if size := uint64(p.Dim) * uint64(p.countBits()); size > math.MaxInt32 {
		return fmt.Errorf("params: a report of Dim = %d counts of %d bits has %d bits, above %d; lower Dim, Levels or Trials",
			p.Dim, p.countBits(), size, math.MaxInt32)
	}
	return nil
}

// radius returns the steps of 2^-24 of a level from the centre of the lattice to its ends.
func radius(levels uint32) uint64 { return uint64(levels) << (CoinBits - 1) }

// unitRadius returns the radius of the ball of one vector, in the same steps: all of them add up to at most the
// lattice's.
func (p Params) unitRadius() uint64 { return radius(p.Levels) / p.vectors() }

func (p Params) units() uint64 { return max(p.Units, 1) }

// vectors returns the number of vectors that a report adds up: one of each unit, or one of all.
func (p Params) vectors() uint64 {
	if p.Minimizer {
		return 1
	}
	return p.units()
}

// windowSd is the number of standard deviations of a report's noise that a window holds on each side of its centre:
// beyond lies less than 1e-14.
const windowSd = 8

// WindowOf returns the least window, an even number, for noise with times the standard deviation of that many trials.
func WindowOf(trials uint64, times float64) float64 {
	return 2 * math.Ceil(windowSd*math.Sqrt(float64(trials))/2*times)
}

// Room returns the largest even number of trials whose noise the window holds.
func (p Params) Room() uint64 {
	w := uint64(p.Window) // w/2 >= windowSd sqrt(b)/2
	return w * w / (windowSd * windowSd) &^ 1
}

// MaxCount returns the largest count that a report can hold: g+b, or g+w with a window. It is also the most by which
// one report can move a total.
func (p Params) MaxCount() uint32 {
	if p.Window > 0 {
		return p.Levels + p.Window
	}
	return p.Levels + p.Trials
}

// countBits returns the width of a packed count.
func (p Params) countBits() int { return bits.Len32(p.MaxCount()) }

// ReportBytes returns the length of every packed report, a function of Params alone.
func (p Params) ReportBytes() int { return ReportBytes(p.Dim, uint64(p.MaxCount())) }

// ReportBytes returns the length of a packed report of dim counts of at most most.
func ReportBytes(dim int, most uint64) int { return (dim*bits.Len64(most) + 7) / 8 }

// Noise returns where the binomial trials in a total come from.
func (p Params) Noise() Noise { return Noise{Report: uint64(p.Trials), Floor: p.FloorTrials} }

// NoiseTrials returns the number of binomial trials in each total that a round planned for cohort users releases with
// users reports: the trials of those users, those of missing users, which the stage tops up if there is no window, and
// both floors'. users and cohort must have passed HeadRoom.
func (p Params) NoiseTrials(users, cohort uint64) uint64 {
	if p.Window > 0 {
		cohort = 0
	}
	return p.Noise().Released(max(users, cohort))
}

// MaxTotal returns the largest total of users reports with noiseTrials trials in it, and an error from 2^63 on.
func (p Params) MaxTotal(users, noiseTrials uint64) (uint64, error) {
	each, noise := uint64(p.Levels), noiseTrials
	if p.Window > 0 {
		each, noise = uint64(p.MaxCount()), 0
	}
	hi, lo := bits.Mul64(users, each)
	most, carry := bits.Add64(lo, noise, 0)
	if hi != 0 || carry != 0 || max(most, noiseTrials) >= 1<<63 {
		return 0,
			fmt.Errorf(
				"params: %d users of Levels = %d and Window = %d with %d noise trials can make a total of 2^63; lower one of them",
				users, p.Levels, p.Window, noiseTrials)
	}
	return most, nil
}

// level returns the value of one level of a total, in the units of a report's mean over its units.
func (p Params) level() float64 {
	if p.vectors() == 1 {
		return 2 * p.ClipNorm / float64(p.Levels)
	}
	// A unit at the clip norm is unitRadius steps from the centre, and one of K. The product is at most 2^53.
	return p.ClipNorm * (1 << CoinBits) / float64(p.vectors()*p.unitRadius())
}

// HeadRoom refuses a cohort whose totals could reach 2^63. users is the largest number of reports that may be added.
func (p Params) HeadRoom(users uint64) error {
	hi, trials := bits.Mul64(users, uint64(p.Trials))
	if hi != 0 || trials >= 1<<63 {
		trials = 1<<63 - 1 // what MaxTotal refuses
	}
	_, err := p.MaxTotal(users, trials+2*p.FloorTrials)
	return err
}

// Noise counts the binomial trials in a total by their source.
type Noise struct {
	Report uint64 // b, of every report
	Floor  uint64 // N_f, of each of the two floors
}

// Released returns the trials in a released total in which that many users' reports are counted: their own and both
// floors'.
func (n Noise) Released(users uint64) uint64 { return users*n.Report + 2*n.Floor }

// Intruded returns the trials that hide that many users from one who looks at the running totals once, between two
// reports, and at the release: their own and one floor, the front one before the look or the back one after it.
func (n Noise) Intruded(users uint64) uint64 { return users*n.Report + n.Floor }

// A Variance describes one coordinate of an estimated sum, in squared units of the vector.
type Variance struct {
	// Privacy is the variance of the binomial noise, exactly.
	Privacy float64
	// RoundingMax bounds the variance of stochastic rounding, reached when every user sits half-way between levels.
	RoundingMax float64
	// Proxy is a sub-Gaussian variance proxy of both together, at least their sum; equal to it for a fair coin. A flip
	// has Coin.SubGaussian, and the rounding of one user, which takes one of two neighbouring levels, at most a
	// quarter.
	Proxy float64
}

// Variance returns the variance of one coordinate of what Decode returns for users reports with noiseTrials trials in
// all (users' own, top-up and floors): (2L/g)^2 N p(1-p), and at most (2L/g)^2 users/4 for rounding (ICLR 2022, Lemma
// 3.1), however many units a report is about. For the mean divide by users^2.
func (p Params) Variance(users, noiseTrials uint64) Variance {
	step := p.level()
	q := p.Coin.Float()
	return Variance{
		Privacy:     step * step * float64(noiseTrials) * q * (1 - q),
		RoundingMax: step * step * float64(users) / 4,
		Proxy:       step * step * (float64(noiseTrials)*p.Coin.SubGaussian() + float64(users)/4),
	}
}
