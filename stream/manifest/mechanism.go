package manifest

import (
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// maxScores bounds the coordinates of a report that are no part of the gradient.
const maxScores = 1 << 4

// Params returns the randomizer's parameters of a mechanism. It returns the errors of randomizer.Params.Validate, and
// refuses coins on another grid than randomizer.CoinBits, and more coordinates, scores or users in a bundle than a
// message may have.
func Params(m *wire.Mechanism) (randomizer.Params, error) {
	if m == nil {
		return randomizer.Params{}, errors.New("mechanism: missing")
	}
	if m.CoinBits != randomizer.CoinBits {
		return randomizer.Params{}, fmt.Errorf("mechanism: coin_bits %d: want %d", m.CoinBits, randomizer.CoinBits)
	}
	if m.Dim > stream.MaxDim {
		return randomizer.Params{}, fmt.Errorf("mechanism: dim %d: want 1 to %d", m.Dim, stream.MaxDim)
	}
	if m.Scores > maxScores || m.Scores >= max(m.Dim, 1) {
		return randomizer.Params{}, fmt.Errorf("mechanism: scores %d: want at most %d, and fewer than dim", m.Scores,
			maxScores)
	}
	if m.MaxBundle == 0 || m.MaxBundle > stream.MaxBundle {
		return randomizer.Params{}, fmt.Errorf("mechanism: max_bundle %d: want 1 to %d", m.MaxBundle, stream.MaxBundle)
	}
	p := randomizer.Params{
		Dim: int(m.Dim), ClipNorm: m.ClipNorm, Levels: m.Levels, Trials: m.Trials, FloorTrials: m.FloorTrials,
		Coin:  randomizer.Coin(m.Coin),
		Units: m.Units, Window: m.Window, Minimizer: m.Minimizer,
	}
	if err := p.Validate(); err != nil {
		return randomizer.Params{}, fmt.Errorf("mechanism: %w", err)
	}
	return p, nil
}

// Mechanism is the inverse of Params. maxBundle counts the users that one report message may carry. There are no
// scores among the coordinates; a caller whose reports have some sets them.
func Mechanism(p randomizer.Params, maxBundle uint32) *wire.Mechanism {
	return &wire.Mechanism{
		Dim: uint32(p.Dim), ClipNorm: p.ClipNorm, Levels: p.Levels, Trials: p.Trials,
		Coin: uint32(p.Coin), CoinBits: randomizer.CoinBits,
		FloorTrials: p.FloorTrials, MaxBundle: maxBundle, Units: p.Units, Window: p.Window, Minimizer: p.Minimizer,
	}
}

// Trust returns the accountant's trust model for one on the wire.
func Trust(t wire.Trust) (accounting.Trust, error) {
	switch t {
	case wire.Trust_TRUST_SHUFFLE:
		return accounting.Shuffle, nil
	case wire.Trust_TRUST_PAN:
		return accounting.Pan, nil
	case wire.Trust_TRUST_SHUFFLE_PAN:
		return accounting.ShufflePan, nil
	case wire.Trust_TRUST_LOCAL:
		return accounting.Local, nil
	case wire.Trust_TRUST_SPLIT:
		return accounting.Split, nil
	}
	return 0, fmt.Errorf("trust %d: unknown", int32(t))
}

// WireTrust is the inverse of Trust.
func WireTrust(t accounting.Trust) (wire.Trust, error) {
	switch t {
	case accounting.Shuffle:
		return wire.Trust_TRUST_SHUFFLE, nil
	case accounting.Pan:
		return wire.Trust_TRUST_PAN, nil
	case accounting.ShufflePan:
		return wire.Trust_TRUST_SHUFFLE_PAN, nil
	case accounting.Local:
		return wire.Trust_TRUST_LOCAL, nil
	case accounting.Split:
		return wire.Trust_TRUST_SPLIT, nil
	}
	return wire.Trust_TRUST_UNSPECIFIED, fmt.Errorf("trust %d: unknown", int(t))
}
