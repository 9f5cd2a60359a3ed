package accounting

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer"
)

// defaultMSESlack lets rounding and integer effects cost 5% in mean squared
// error; the bits per coordinate grow like its inverse.
const defaultMSESlack = 0.05

// minTargetDelta keeps a target well inside the ladder of windows, which ends at
// 1e-45: below it the bound saturates and no noise would be enough.
const minTargetDelta = 1e-30

// A Request states a caller's requirements for a release.
type Request struct {
	// Users is n, the planned cohort of one round.
	Users uint64
	// Dim is d, extra coordinates included.
	Dim int
	// Epsilon and Delta are the target of the whole participation of one user, all
	// of its rounds together. Epsilon in (0, 60], Delta in [1e-30, 1).
	Epsilon, Delta float64
	Trust          Trust
	// HonestFraction is the assumed honest share of the cohort.
	HonestFraction Fraction
	// Rounds is T, the rounds that one user takes part in; 0 means 1.
	Rounds int
	// Units is K, the units that a report is about and one of which is protected; 0 means 1.
	Units uint64
	// Minimizer selects reports of one vector for all units, see Release.
	Minimizer bool
	// MaxBits, if positive, selects the least error with g + b at most MaxBits.
	MaxBits int
	Coin    CoinPolicy
	Profile Constants
	// MSESlack is the share of mean squared error above the limit of infinitely
	// many bits that a plan may cost; 0 means 0.05. Ignored with MaxBits.
	MSESlack float64
}

// Validate names the first field that is out of range.
func (q Request) Validate() error {
	if q.Users < 1 || q.Users >= 1<<40 {
		return fmt.Errorf("users %d: want 1 to 2^40-1", q.Users)
	}
	if q.Rounds < 0 {
		return fmt.Errorf("rounds per user %d: want at least 1", q.Rounds)
	}
	if err := validateCounts(1, q.Dim, q.rounds()); err != nil {
		return err
	}
	if !(q.Epsilon > 0 && q.Epsilon <= MaxEpsilon) {
		return fmt.Errorf("epsilon %v: want a number in (0, %d]", q.Epsilon, MaxEpsilon)
	}
	if !(q.Delta >= minTargetDelta && q.Delta < 1) {
		return fmt.Errorf("delta %v: want a number from %v to below 1", q.Delta, minTargetDelta)
	}
	if err := q.Trust.validate(); err != nil {
		return err
	}
	if err := q.Coin.validate(); err != nil {
		return err
	}
	if err := q.Profile.validate(); err != nil {
		return err
	}
	if err := validateHonest(q.HonestFraction, q.Users); err != nil {
		return err
	}
	if err := validateLocal(q.Trust, q.HonestFraction); err != nil {
		return err
	}
	if q.Trust == Local && q.Coin != CoinFair {
		return fmt.Errorf("coin %v: want fair under trust local, whose reports are centred at half of their trials", q.Coin)
	}
	if q.Units > maxCount<<(coinBits-2) {
		return fmt.Errorf("units %d: want at most %d", q.Units, uint64(maxCount)<<(coinBits-2))
	}
	if q.MaxBits < 0 || q.MaxBits >= maxCount {
		return fmt.Errorf("bits per coordinate %d: want 2 to %d, or 0 for no limit", q.MaxBits, maxCount-1)
	}
	if q.MaxBits == 1 && q.Trust.HasReportNoise() {
		return fmt.Errorf("bits per coordinate 1: want at least 2, one grid step and one trial")
	}
	if q.MSESlack != 0 && !(q.MSESlack >= 1e-4 && q.MSESlack <= 10) {
		return fmt.Errorf("mean squared error slack %v: want 0.0001 to 10, or 0 for %v", q.MSESlack, defaultMSESlack)
	}
	return nil
}

func (q Request) rounds() int {
	if q.Rounds == 0 {
		return 1
	}
	return q.Rounds
}

func (q Request) units() uint64 { return max(q.Units, 1) }

// gaussianSensitivity returns the L2 sensitivity of the mean that the Gaussian mechanism would add noise to, in units
// of the clip norm: 2/(K n) of all reports' mean. Under Local each report adds noise for its own mean, of 2/K, and n
// of them average it: 2/(K sqrt(n)).
func (q Request) gaussianSensitivity() float64 {
	n := float64(q.Users)
	if q.Trust == Local {
		n = math.Sqrt(n)
	}
	return 2 / n / float64(q.units())
}

func (q Request) slack() float64 {
	if q.MSESlack == 0 {
		return defaultMSESlack
	}
	return q.MSESlack
}

// Plan is a calibrated release with its cost and its errors. Its JSON is the output of `learner privacy calibrate
// --json`.
type Plan struct {
	Users uint64 `json:"users"`
	// Units is K, the units that a report is about.
	Units uint64 `json:"units"`
	// Minimizer reports that a report is one vector of all units.
	Minimizer bool `json:"minimizer,omitempty"`
	Dim       int  `json:"dim"`
	// Epsilon is at most the requested one. Profile numeric: proved by evaluation
	// of Theorem A at the final parameters. Profile paper: what the paper claims.
	Epsilon        float64   `json:"epsilon"`
	Delta          float64   `json:"delta"`
	Trust          Trust     `json:"trust"`
	HonestFraction Fraction  `json:"honest_fraction"`
	RoundsPerUser  int       `json:"rounds_per_user"`
	Profile        Constants `json:"profile"`
	Levels         int       `json:"g"`
	Trials         uint64    `json:"b"`
	P              float64   `json:"p"`
	FloorTrials    uint64    `json:"floor_trials"`
	// NoiseStd, RoundingStd: of one coordinate of the estimated mean, in units of
	// the clip norm (see Release).
	NoiseStd    float64 `json:"noise_std"`
	RoundingStd float64 `json:"rounding_std"`
	// BitsPerCoordinate is g + b; ReportBytes the plaintext of one report whose counts
	// have no window. Where two operators share it, ReportBytes is the leader's share, HelperBytes the helper's and
	// PublicBytes what both read, which the accountant does not know.
	BitsPerCoordinate uint64 `json:"bits_per_coordinate"`
	ReportBytes       uint64 `json:"report_bytes"`
	HelperBytes       uint64 `json:"helper_bytes,omitempty"`
	PublicBytes       uint64 `json:"public_bytes,omitempty"`
	// GaussianNoiseStd is the noise of the analytic Gaussian mechanism for the same target, on the mean of all
	// reports or, under Local, on each of them before they are averaged: the floor.
	GaussianNoiseStd float64 `json:"gaussian_noise_std"`
	// ProvedEpsilon is the epsilon that Theorem A proves for these parameters, which a ledger charges; nil if it
	// proves nothing. Profile numeric: Epsilon.
	ProvedEpsilon *float64 `json:"proved_epsilon"`
	// Runnable is false where a report would need more than 2^31 trials per
	// coordinate (profile paper only): computed and printed, never run.
	Runnable bool `json:"runnable"`
}

// Release returns the release that the plan describes.
func (p Plan) Release() Release {
	return Release{
		Trust: p.Trust, Users: p.Users, Dim: p.Dim, Levels: p.Levels, Trials: p.Trials, P: p.P,
		FloorTrials: p.FloorTrials, HonestFraction: p.HonestFraction, Rounds: p.RoundsPerUser,
		Units: p.Units, Minimizer: p.Minimizer,
	}
}

// SentBytes returns what one user adds to a message before it is sealed.
func (p Plan) SentBytes() uint64 { return p.ReportBytes + p.HelperBytes + p.PublicBytes }

// TotalStd returns the worst-case standard deviation of one coordinate of the mean,
// rounding included, in units of the clip norm.
func (p Plan) TotalStd() float64 { return math.Hypot(p.NoiseStd, p.RoundingStd) }

// plan fills what follows from a release.
func (q Request) plan(r Release) Plan {
	return Plan{
		Users: q.Users, Units: q.units(), Minimizer: q.Minimizer, Dim: q.Dim, Epsilon: q.Epsilon, Delta: q.Delta,
		Trust:          q.Trust,
		HonestFraction: q.HonestFraction, RoundsPerUser: q.rounds(), Profile: q.Profile,
		Levels: r.Levels, Trials: r.Trials, P: r.P, FloorTrials: r.FloorTrials,
		NoiseStd: r.noiseStd(), RoundingStd: r.roundingStd(),
		BitsPerCoordinate: uint64(r.Levels) + r.Trials,
		ReportBytes:       uint64(randomizer.ReportBytes(r.Dim, uint64(r.Levels)+r.Trials)),
		GaussianNoiseStd:  q.gaussianSensitivity() * math.Sqrt(float64(q.rounds())) / gaussianMu(q.Epsilon, q.Delta),
		Runnable:          r.Trials <= randomizer.MaxTrials,
	}
}
