package shuffle

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/randomizer"
)

func TestConfigRefuses(t *testing.T) {
	good := Config{
		Params: randomizer.Params{Dim: 2, ClipNorm: 1, Levels: 4, Trials: 3, FloorTrials: 1000, Coin: randomizer.Fair},
		Cohort: 100, Minimum: 80, MaxBundle: 10,
	}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, breakIt := range map[string][]func(*Config){
		"Dim":      {func(c *Config) { c.Params.Dim = 0 }},
		"ClipNorm": {func(c *Config) { c.Params.ClipNorm = math.NaN() }},
		"Cohort": {func(c *Config) { c.Cohort = 0 }, func(c *Config) { c.Cohort = maxCohort + 1 },
			func(c *Config) { c.Cohort = math.MaxUint64 }},
		"Planned":   {func(c *Config) { c.Planned = 99 }, func(c *Config) { c.Planned = maxCohort + 1 }},
		"Minimum":   {func(c *Config) { c.Minimum = 0 }, func(c *Config) { c.Minimum = 101 }},
		"MaxBundle": {func(c *Config) { c.MaxBundle = 101 }, func(c *Config) { c.MaxBundle = math.MaxUint64 }},
		"FloorTrials": {
			func(c *Config) { c.Params.FloorTrials = randomizer.MaxBinomialTrials + 1 },
			func(c *Config) { c.Params.FloorTrials = math.MaxUint64 },
		},
		"raise Minimum": {func(c *Config) {
			c.Params.Trials, c.Cohort, c.Minimum = randomizer.MaxTrials, 1<<14, 1
		}},
		"2^63": {func(c *Config) {
			c.Params.Trials, c.Cohort, c.Minimum = randomizer.MaxTrials, maxCohort, maxCohort
		}},
	} {
		for i, f := range breakIt {
			cfg := good
			f(&cfg)
			err := cfg.Validate()
			if err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%s, case %d: error %v does not say so", field, i, err)
			}
			if m, err := NewMixer(cfg); err == nil {
				t.Errorf("%s, case %d: NewMixer made %v", field, i, m)
			}
		}
	}
}

// Users of a last bundle and both floors count for the head-room: 2863311530 users of 3 2^30 leave 2^31.
func TestConfigHeadRoom(t *testing.T) {
	for _, c := range []struct {
		bundle, floor uint64
		ok            bool
	}{{0, 0, true}, {1, 1<<30 - 1, true}, {1, 1 << 30, false}, {2, 0, false}} {
		cfg := Config{
			Params: randomizer.Params{Dim: 1, ClipNorm: 1, Levels: randomizer.MaxLevels, Trials: randomizer.MaxTrials,
				FloorTrials: c.floor, Coin: randomizer.Fair},
			Cohort: 2863311530, Minimum: 2863311530, MaxBundle: c.bundle,
		}
		if err := cfg.Validate(); (err == nil) != c.ok {
			t.Errorf("MaxBundle %d, FloorTrials %d: %v, want ok = %v", c.bundle, c.floor, err, c.ok)
		}
	}
}

func TestOutcomeLabels(t *testing.T) {
	seen := map[string]bool{}
	for o := range outcomes {
		if s := o.String(); s == "" || s == "unknown" || seen[s] {
			t.Errorf("outcome %d has label %q", o, s)
		}
		seen[o.String()] = true
	}
	if got := Outcome(200).String(); got != "unknown" {
		t.Errorf("an outcome that does not exist is %q", got)
	}
}
