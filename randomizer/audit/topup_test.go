package audit

import (
	"context"
	"testing"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
)

// forgetful makes mixers that count the top-up and do not add it.
func forgetful(c shuffle.Config) (subject, error) {
	planned := c.Cohort
	c.Cohort = c.Minimum
	m, err := shuffle.NewMixer(c)
	return forgets{real{m}, c.Params, planned}, err
}

type forgets struct {
	real
	params randomizer.Params
	cohort uint64
}

func (f forgets) Close() (shuffle.Release, error) {
	rel, err := f.real.Close()
	rel.NoiseTrials = f.params.NoiseTrials(rel.Users, f.cohort)
	return rel, err
}

// A stage that counts the top-up and does not add it is refuted, whether many users are missing or few, with dishonest
// users and with floors; the real one passes. Also where a plan lets nobody be missing: the audit tops up once in any
// case. Seeds are fixed. With free ones: the delta(0) of what is left where nearly all are missing is above 0.5, the
// claim is 0.24, and the bounds are 0.1 wide with standard errors of 0.01.
func TestAuditOfTheTopUp(t *testing.T) {
	const users, own, levels = 20, 10, 6
	base := Config{
		Params: randomizer.Params{Dim: 5, ClipNorm: 3, Levels: levels, Trials: own, Coin: randomizer.Fair},
		Users:  users, Minimum: 18, Trials: 5000, Claim: exact(users*own, levels, 0.5),
	}
	half, dishonest, floors, all := base, base, base, base
	half.Minimum = users / 2
	dishonest.Dishonest, dishonest.Claim = 5, exact((users-5)*own, levels, 0.5)
	floors.Params.FloorTrials, floors.Claim = 10, exact(users*own+20, levels, 0.5)
	all.Minimum = 0
	for name, cfg := range map[string]Config{"a tenth is missing": base, "half is missing": half,
		"a quarter is dishonest": dishonest, "floors": floors, "none is missing": all} {
		for subject, of := range map[string]func(shuffle.Config) (subject, error){"real": nil, "forgetful": forgetful} {
			t.Run(name+", "+subject, func(t *testing.T) {
				cfg := cfg
				cfg.subject, cfg.Entropy = of, seeded(t, 13)
				rep, err := Run(context.Background(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				pt := rep.Points[0]
				t.Logf("delta(0): claimed %.4f, at least %.4f (%s); refutable share %.2f", pt.Claimed, pt.Lower, pt.Pair,
					rep.RefutableShare)
				if want := subject == "real"; rep.Pass != want {
					t.Errorf("pass = %v, want %v", rep.Pass, want)
				}
			})
		}
	}
}
