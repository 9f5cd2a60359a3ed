package audit

import (
	"context"
	"testing"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A round of 250 of a task without an end is released with the noise of the 4,000 that are planned for. Where 249 of
// the 250 are fakes without noise, around one target, what is left are the stage's noise and the target's own: no more
// is learned of the target than is printed for an honest share of 3,751 of 4,000, about 1.03 for an epsilon of 1. A
// stage that forgets its part is refuted. Seeds are fixed; a true claim fails with probability 1e-9.
func TestFakesAroundOneTarget(t *testing.T) {
	const planned, cohort, dim, delta = 4000, 250, 9, 1e-6
	c, err := accounting.Calibrate(accounting.Request{Users: planned, Dim: dim, Epsilon: 1, Delta: delta,
		Trust:          accounting.Shuffle,
		HonestFraction: accounting.One, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	coin, err := randomizer.CoinFromFloat(c.P)
	if err != nil {
		t.Fatal(err)
	}
	honest, err := accounting.ParseFraction("3751/4000")
	if err != nil {
		t.Fatal(err)
	}
	r := accounting.Release{Trust: accounting.Shuffle, Users: planned, Dim: dim, Levels: int(c.Levels),
		Trials: uint64(c.Trials), P: c.P, HonestFraction: honest, Rounds: 1}
	printed, err := r.Epsilon(delta)
	if err != nil {
		t.Fatal(err)
	}
	if !(printed.Epsilon > 1 && printed.Epsilon < 1.05) {
		t.Errorf("epsilon %v beside %d fakes, want a little above 1", printed.Epsilon, cohort-1)
	}
	for subject, want := range map[string]bool{"real": true, "forgetful": false} {
		cfg := Config{Params: randomizer.Params{Dim: dim, ClipNorm: 1, Levels: uint32(c.Levels), Trials: uint32(c.Trials),
			Coin: coin}, Users: planned, Minimum: cohort,
			Dishonest: cohort - 1, Trials: 20_000, Confidence: 1 - 1e-9, Entropy: seeded(t, 27),
			Claim: func(epsilon float64) (float64, error) {
				f, err := r.Delta(epsilon)
				return f.Delta, err
			}}
		if !want {
			cfg.subject = forgetful
		}
		rep, err := Run(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: epsilon %.3f printed at delta %g; at delta %.3g claimed %.3f, at least %.3f", subject, printed.Epsilon,
			delta, rep.Delta, rep.ClaimedEpsilon,
			rep.EmpiricalEpsilonLower)
		if rep.Pass != want {
			t.Errorf("%s: pass = %v, want %v: %+v", subject, rep.Pass, want, rep.Points)
		}
	}
}
