package manifest

import (
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream/wire"
)

// MixerConfig is what the stage mixes a round with. Its Entropy is nil, the right value in production. It refuses what
// shuffle.Config.Validate refuses: a total that could reach 2^63, a bundle larger than the cohort.
func MixerConfig(round *wire.Round) (shuffle.Config, error) {
	if round == nil {
		return shuffle.Config{}, errors.New("mixer of a round: no round")
	}
	cfg, err := mixer(round.Mechanism, round.Cohort, round.Minimum)
	if err != nil {
		return shuffle.Config{}, fmt.Errorf("mixer of round %d: %w", round.Round, err)
	}
	return cfg, nil
}

func mixer(m *wire.Mechanism, cohort, minimum uint64) (shuffle.Config, error) {
	params, err := Params(m)
	if err != nil {
		return shuffle.Config{}, err
	}
	cfg := shuffle.Config{
		Params: params, Cohort: cohort, Minimum: minimum,
		MaxBundle: uint64(m.MaxBundle),
	}
	if err := cfg.Validate(); err != nil {
		return shuffle.Config{}, err
	}
	return cfg, nil
}
