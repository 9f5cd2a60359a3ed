package split

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/cloudflare/circl/vdaf/prio3/sumvec"

	"github.com/panlearn/panlearn/randomizer"
)

var (
	// errErased means that the accumulator was released or erased before.
	errErased = errors.New("accumulator is erased")
	// errTooSmall means that fewer users than the minimum are counted.
	errTooSmall = errors.New("cohort is below the minimum")
)

// Config fixes one attempt, the same at the leader and at the helper, who each compute it from what is signed.
type Config struct {
	X Attempt
	// Params are the round's: a lattice of 2^k - 1 levels, a fair coin, no trials of users, and floors.
	Params randomizer.Params
	// Context is Prio3's context, as in Params of this package.
	Context Hash
	// Key is the attempt's verify key, drawn by the helper. The leader has checked it against Join's hash.
	Key VerifyKey
	// Cohort is the number of users at which the attempt is full, Minimum that below which nothing is released.
	Cohort, Minimum uint64
	// MaxBundle is the largest number of users in one bundle; 0 means 1. A cohort can be exceeded by MaxBundle - 1.
	MaxBundle uint64
	// MaxRequest bounds the encoding of one request in bytes: half of the broker's largest payload, or less. 0 means the
	// largest that is allowed, 512 KiB.
	MaxRequest int
}

// withDefaults returns c with its zeros replaced.
func (c Config) withDefaults() Config {
	c.MaxBundle = max(c.MaxBundle, 1)
	c.MaxRequest = cmp.Or(c.MaxRequest, MaxRequestBytes)
	return c
}

// Validate refuses values without meaning, rounds without floors, and totals that could reach 2^63.
func (c Config) Validate() error {
	c = c.withDefaults()
	if err := c.Params.Validate(); err != nil {
		return err
	}
	if _, err := BitsOf(c.Params.Levels); err != nil {
		return err
	}
	switch p := c.Params; {
	case p.FloorTrials == 0 || p.Trials != 0 || p.Window != 0 || p.Coin != randomizer.Fair:
		return fmt.Errorf("split: FloorTrials = %d, Trials = %d, Window = %d, Coin = %v: want floors alone, of a fair coin",
			p.FloorTrials, p.Trials, p.Window, p.Coin)
	case c.X.Round < 1 || c.X.Number < 1:
		return fmt.Errorf("split: attempt %d of round %d: want both from 1", c.X.Number, c.X.Round)
	case c.Cohort < 1 || c.Cohort > maxCohort:
		return fmt.Errorf("split: Cohort = %d is outside [1, %d]", c.Cohort, uint64(maxCohort))
	case c.Minimum < 1 || c.Minimum > c.Cohort:
		return fmt.Errorf("split: Minimum = %d is outside [1, Cohort = %d]", c.Minimum, c.Cohort)
	case c.MaxBundle > min(c.Cohort, maxUsers):
		return fmt.Errorf("split: MaxBundle = %d is above Cohort = %d or %d", c.MaxBundle, c.Cohort, maxUsers)
	case c.MaxRequest < 0 || c.MaxRequest > MaxRequestBytes:
		return fmt.Errorf("split: MaxRequest = %d is outside [0, %d]", c.MaxRequest, MaxRequestBytes)
	}
	if err := c.sharing().Validate(); err != nil {
		return err
	}
	return c.Params.HeadRoom(c.most())
}

// maxCohort bounds the set of ids.
const maxCohort = 1 << 32

// most returns the largest number of users that can be counted.
func (c Config) most() uint64 { return c.Cohort + c.MaxBundle - 1 }

// sharing returns the parameters of Prio3.
func (c Config) sharing() Params {
	k, _ := BitsOf(c.Params.Levels) // 0 where there is none, which Params.Validate refuses
	return Params{Dim: c.Params.Dim, Bits: k, Context: c.Context}
}

// An accumulator holds one party's aggregate share of an attempt: a uniform vector of the field that alone says
// nothing of anybody's counts.
type accumulator struct {
	cfg   Config
	role  byte
	vec   *sumvec.SumVec
	agg   *sumvec.AggShare // nil once erased
	noise *randomizer.Binomial
	users uint64
	spent spentSet
}

func newAccumulator(cfg Config, role byte) (*accumulator, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	vec, err := cfg.sharing().newVec()
	if err != nil {
		return nil, err
	}
	noise, err := randomizer.NewBinomial(cfg.Params.FloorTrials, cfg.Params.Coin)
	if err != nil {
		return nil, err
	}
	agg := vec.AggregateInit()
	return &accumulator{cfg: cfg, role: role, vec: vec, agg: &agg, noise: noise, spent: spentSet{}}, nil
}

// add counts one user's output share.
func (a *accumulator) add(out *sumvec.OutShare) {
	a.vec.AggregateUpdate(a.agg, out)
	a.users++
}

// finish lays the floor into the aggregate share, in the field, returns the share's bytes and erases the accumulator.
// No share without its floor leaves: there is no other way to read one.
func (a *accumulator) finish(f Finish, e Entropy) ([]byte, error) {
	if a.agg == nil {
		return nil, errErased
	}
	if a.users < a.cfg.Minimum {
		return nil, fmt.Errorf("%d users, Minimum = %d: %w", a.users, a.cfg.Minimum, errTooSmall)
	}
	p := a.vec.Params()
	lay := new(sumvec.OutShare).New(&p)
	encoded := floor(a.noise, a.cfg.Params.Dim, floorSeed(e, a.role, f))
	if err := lay.UnmarshalBinary(encoded); err != nil {
		panic(fmt.Sprintf("split: a floor of %d bytes is no output share: %v", len(encoded), err))
	}
	a.vec.AggregateUpdate(a.agg, lay)
	floored, err := a.agg.MarshalBinary()
	if err != nil {
		panic(fmt.Sprintf("split: an aggregate share does not encode: %v", err))
	}
	clear(encoded)
	_ = lay.UnmarshalBinary(encoded) // overwrites the floor
	a.erase()
	return floored, nil
}

// erase overwrites the aggregate share and drops keys and ids. It is safe to call more than once.
func (a *accumulator) erase() {
	if a.agg != nil {
		_ = a.agg.UnmarshalBinary(make([]byte, a.cfg.Params.Dim*elementBytes))
	}
	clear(a.spent)
	a.agg, a.vec, a.spent, a.cfg.Key = nil, nil, nil, VerifyKey{}
}
