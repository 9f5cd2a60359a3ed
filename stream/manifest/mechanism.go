package manifest

import (
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// Params is the randomizer of a mechanism. It refuses what randomizer.Params.Validate refuses, and coins on another
// grid than randomizer.CoinBits.
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
	p := randomizer.Params{
		Dim: int(m.Dim), ClipNorm: m.ClipNorm, Levels: m.Levels, Trials: m.Trials, FloorTrials: m.FloorTrials, Coin: randomizer.Coin(m.Coin),
	}
	if err := p.Validate(); err != nil {
		return randomizer.Params{}, fmt.Errorf("mechanism: %w", err)
	}
	return p, nil
}

// Mechanism is the inverse of Params. maxBundle counts the users that one report
// message may carry. There are no scores among the coordinates; a caller whose reports have some says so.
func Mechanism(p randomizer.Params, maxBundle uint32) *wire.Mechanism {
	return &wire.Mechanism{
		Dim: uint32(p.Dim), ClipNorm: p.ClipNorm, Levels: p.Levels, Trials: p.Trials,
		Coin: uint32(p.Coin), CoinBits: randomizer.CoinBits,
		FloorTrials: p.FloorTrials, MaxBundle: maxBundle,
	}
}
