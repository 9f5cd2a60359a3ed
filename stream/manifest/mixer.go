package manifest

import "github.com/panlearn/panlearn/shuffle"

// Mixer is what the stage mixes a round with. Its Entropy is nil, the right value in production. It refuses what
// shuffle.Config.Validate refuses: a total that could reach 2^63, a bundle larger than the cohort.
func (p Place) Mixer() (shuffle.Config, error) {
	params, err := Params(p.Phase.GetMechanism())
	if err != nil {
		return shuffle.Config{}, err
	}
	cfg := shuffle.Config{
		Params: params, Cohort: p.Cohort, Minimum: p.Phase.GetMinimum(),
		MaxBundle: uint64(p.Phase.GetMechanism().GetMaxBundle()),
	}
	return cfg, cfg.Validate()
}
