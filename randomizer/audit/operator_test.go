package audit

import (
	"context"
	"testing"

	"github.com/panlearn/panlearn/randomizer"
)

// An operator has one floor against it, in a cohort where nobody else adds noise. A mixer that lays the floor as
// planned passes; one with half of it fails, and so does a claim that counts on both floors, as the learner's does.
//
// Seeds are fixed. The broken ones have a true delta(0) of about 0.31 and 0.22 where 0.22 and 0.11 are claimed, and bounds that are
// 0.05 wide.
func TestAuditOfTheOperator(t *testing.T) {
	const levels, floor = 4, 200
	base := Config{View: Operator, Users: 20, Trials: 10_000,
		Params: randomizer.Params{Dim: 3, ClipNorm: 1, Levels: levels, FloorTrials: floor, Coin: randomizer.Fair},
		Claim:  exact(floor, levels, 0.5)}
	half, both := base, base
	half.subject = withFloors(floor/2, floor)
	both.Claim = exact(4*floor, levels, 0.5)
	for name, c := range map[string]struct {
		Config
		pass bool
	}{"as planned": {base, true}, "half of a floor": {half, false}, "a claim of too much noise": {both, false}} {
		c.Entropy = seeded(t, 5)
		rep, err := Run(context.Background(), c.Config)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: delta(0) claimed %.4f, at least %.4f; refutable share %.2f", name, rep.Points[0].Claimed, rep.Points[0].Lower,
			rep.RefutableShare)
		if rep.Pass != c.pass {
			t.Errorf("%s: pass = %t, want %t", name, rep.Pass, c.pass)
		}
	}
}
