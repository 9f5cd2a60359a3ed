package stream

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/panlearn/panlearn/stream/wire"
)

func checkMechanism(m *wire.Mechanism, trust wire.Trust) error {
	if m == nil {
		return errors.New("mechanism: missing")
	}
	err := positive("clip_norm", m.ClipNorm)
	if m.Dim == 0 || m.Dim > MaxDim {
		err = errors.Join(err, fmt.Errorf("dim %d: want 1 to %d", m.Dim, MaxDim))
	}
	if m.Scores > MaxScores || m.Scores >= max(m.Dim, 1) {
		err = errors.Join(err, fmt.Errorf("scores %d: want at most %d, and fewer than dim", m.Scores, MaxScores))
	}
	if m.Levels == 0 {
		err = errors.Join(err, errors.New("levels 0: want at least 1"))
	}
	if m.CoinBits != CoinBits {
		err = errors.Join(err, fmt.Errorf("coin_bits %d: want %d", m.CoinBits, CoinBits))
	}
	if m.Coin == 0 || m.Coin >= 1<<CoinBits {
		err = errors.Join(err, fmt.Errorf("coin %d: want 1 to 2^%d-1", m.Coin, CoinBits))
	}
	if m.MaxBundle == 0 || m.MaxBundle > MaxBundle {
		err = errors.Join(err, fmt.Errorf("max_bundle %d: want 1 to %d", m.MaxBundle, MaxBundle))
	}
	if uint64(m.Levels)+uint64(m.Trials) > math.MaxUint32 {
		err = errors.Join(err, fmt.Errorf("levels %d + trials %d: want below 2^32", m.Levels, m.Trials))
	}
	floors, noisy := trust != wire.Trust_TRUST_SHUFFLE, trust != wire.Trust_TRUST_PAN
	switch {
	case trust < wire.Trust_TRUST_SHUFFLE || trust > wire.Trust_TRUST_SHUFFLE_PAN:
		err = errors.Join(err, fmt.Errorf("trust %d: unknown", trust))
	case floors != (m.FloorTrials > 0):
		err = errors.Join(err, fmt.Errorf("floor_trials %d: trust %v wants floors: %t", m.FloorTrials, trust, floors))
	case noisy != (m.Trials > 0):
		err = errors.Join(err, fmt.Errorf("trials %d: trust %v wants noise in reports: %t", m.Trials, trust, noisy))
	}
	return err
}

// headRoom keeps a total below 2^63: every user of a cohort, overfull by a bundle, and both floors.
func headRoom(cohort uint64, m *wire.Mechanism) error {
	users := min(cohort, math.MaxInt64) + uint64(m.MaxBundle)
	high, reports := bits.Mul64(users, uint64(m.Levels)+uint64(m.Trials))
	floors := 2 * min(m.FloorTrials, math.MaxInt64)
	total, carry := bits.Add64(reports, floors, 0)
	if high != 0 || carry != 0 || total > math.MaxInt64 {
		return fmt.Errorf("cohort %d, max_bundle %d, levels %d, trials %d, floor_trials %d: a total may reach 2^63: want fewer",
			cohort, m.MaxBundle, m.Levels, m.Trials, m.FloorTrials)
	}
	return nil
}
