package shuffle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/randomizer"
)

var (
	// errCohortTooSmall means that fewer than Config.Minimum users are in the totals; the mixer goes on.
	errCohortTooSmall = errors.New("cohort is below the minimum")
	// errClosed means that the totals were released or erased before.
	errClosed = errors.New("mixer is closed")
)

// A ReportID names one user's report in one round. The caller has authenticated it.
type ReportID [16]byte

// A Mixer holds the running totals of one attempt. It is a value machine: no clock, no goroutine, no network, and
// not for concurrent use.
//
// Between two calls its memory holds the totals with the front floor in them, the id set, counters, and parameters; no
// single report, floor or generator.
type Mixer struct {
	cfg    Config
	adder  *randomizer.Adder
	floor  *randomizer.Binomial // of one floor; nil if there is none
	totals []uint64             // nil once closed
	ids    *idSet
	users  uint64
}

// NewMixer validates cfg and lays the front floor.
func NewMixer(cfg Config) (*Mixer, error) {
	cfg.MaxBundle = max(cfg.MaxBundle, defaultMaxBundle)
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Entropy == nil {
		cfg.Entropy = func() rand.Source { return randomizer.NewEntropy() }
	}
	m := &Mixer{
		cfg:    cfg,
		adder:  randomizer.NewAdder(cfg.Params, max(cfg.SideBySide, 1)),
		totals: make([]uint64, cfg.Params.Dim),
		ids:    newIDSet(min(cfg.Cohort, 1<<20)),
	}
	if floor := cfg.Params.FloorTrials; floor > 0 {
		var err error
		if m.floor, err = randomizer.NewBinomial(floor, cfg.Params.Coin); err != nil {
			return nil, err
		}
		m.addNoise(m.floor)
	}
	return m, nil
}

// addNoise adds an independent draw to each total, from a generator that nobody saw before or sees after.
func (m *Mixer) addNoise(noise *randomizer.Binomial) {
	src := m.cfg.Entropy()
	defer erase(src)
	for j := range m.totals {
		m.totals[j] += noise.Sample(src)
	}
}

// erase overwrites a generator that is dropped: ChaCha8 remembers what it gave last.
func erase(src rand.Source) {
	if c, ok := src.(*rand.ChaCha8); ok {
		c.Seed([32]byte{})
	}
}

// Add takes a bundle: the users' ids and their packed reports one after the other, in the same order. A single report
// is a bundle of one. All of it is checked before any of it is added, and either all users are counted or none. The
// caller overwrites packed afterwards; Add keeps no part of it.
func (m *Mixer) Add(ids []ReportID, packed []byte) Outcome {
	out := m.check(ids, packed)
	if out == Accepted {
		m.adder.Add(m.totals, packed)
		m.users += uint64(len(ids))
	}
	return out
}

// check decides, and puts the ids into the set if the bundle is accepted.
func (m *Mixer) check(ids []ReportID, packed []byte) Outcome {
	switch {
	case m.totals == nil:
		return Closed
	case len(ids) == 0 || uint64(len(ids)) > m.cfg.MaxBundle:
		return BadBundle
	case len(packed)%m.adder.ReportBytes() != 0 || len(packed)/m.adder.ReportBytes() != len(ids):
		return BadLength
	case !m.ids.add(ids):
		return Duplicate
	}
	if m.Full() {
		m.ids.remove(ids)
		return full
	}
	if m.adder.ValidateReport(packed) != nil {
		m.ids.remove(ids)
		return BadRange
	}
	return Accepted
}

// Has reports whether a user of this id is in the totals.
func (m *Mixer) Has(id ReportID) bool { return m.ids != nil && m.ids.has(id) }

// Users returns the number of users in the totals.
func (m *Mixer) Users() uint64 { return m.users }

// Full reports whether the planned cohort is complete; further reports are refused.
func (m *Mixer) Full() bool { return m.users >= m.cfg.Cohort }

// CanClose reports whether the minimum is reached.
func (m *Mixer) CanClose() bool { return m.totals != nil && m.users >= m.cfg.Minimum }

// A Release is the output of the stage for one round. It leaves the stage once.
type Release struct {
	// Users is m, the number of users in the totals.
	Users uint64
	// NoiseTrials counts all binomial trials inside each total: the users' own m b, the top-up and both floors.
	NoiseTrials uint64
	// Totals has one sum for each coordinate.
	Totals []uint64
}

// Close tops the noise up to the planned cohort's, adds the back floor, returns the release and erases the mixer. Below
// the minimum it returns errCohortTooSmall and changes nothing.
func (m *Mixer) Close() (Release, error) {
	if m.totals == nil {
		return Release{}, fmt.Errorf("close: %w", errClosed)
	}
	if m.users < m.cfg.Minimum {
		return Release{}, fmt.Errorf("close with %d users, Minimum = %d: %w", m.users, m.cfg.Minimum, errCohortTooSmall)
	}
	p := m.cfg.Params
	noise := p.NoiseTrials(m.users, m.cfg.planned())
	if missing := noise - p.NoiseTrials(m.users, 0); missing > 0 {
		top, err := randomizer.NewBinomial(missing, p.Coin)
		if err != nil {
			return Release{}, fmt.Errorf("close: top-up: %w", err)
		}
		m.addNoise(top)
	}
	if m.floor != nil {
		m.addNoise(m.floor)
	}
	r := Release{Users: m.users, NoiseTrials: noise, Totals: slices.Clone(m.totals)}
	m.Erase()
	return r, nil
}

// Format describes progress and shows no total, so that a mixer in a log line reveals nothing.
func (m Mixer) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "mixer with %d of %d users", m.users, m.cfg.Cohort)
}

// Erase overwrites the totals and drops the id set. It is safe to call at any time and more than once; later reports
// are Closed.
func (m *Mixer) Erase() {
	clear(m.totals)
	if m.ids != nil {
		clear(m.ids.slots)
	}
	m.totals, m.ids = nil, nil
}
