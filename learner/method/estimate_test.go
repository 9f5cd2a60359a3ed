package method_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/randomizer"
)

// The example worked by hand: m = 200, g = 12, b = 9, p = 1/2 give a sum with privacy variance (2L/12)^2 200 9/4 =
// 12.5 L^2 and rounding variance at most (2L/12)^2 50 = 1.389 L^2 a coordinate.
var worked = randomizer.Params{Dim: 7, ClipNorm: 3, Levels: 12, Trials: 9, Coin: randomizer.Fair}

const workedUsers = 200

func TestTheorem32_KnownVariance(t *testing.T) {
	totals := make([]uint64, worked.Dim)
	for j := range totals {
		totals[j] = workedUsers * (6 + 9/2) // one below the expected total of zero vectors, 200 * 10.5
	}
	e, err := method.EstimateMean(worked, totals, workedUsers, workedUsers*9)
	if err != nil {
		t.Fatal(err)
	}
	l2, m2 := worked.ClipNorm*worked.ClipNorm, float64(workedUsers*workedUsers)
	if got, want := e.PrivacyVariance*m2/l2, 12.5; math.Abs(got-want) > 1e-12 {
		t.Errorf("privacy variance of the sum %v L^2, want %v", got, want)
	}
	if got, want := e.RoundingVariance*m2/l2, 50.0/36; math.Abs(got-want) > 1e-12 {
		t.Errorf("rounding variance of the sum %v L^2, want %v", got, want)
	}
	if got, want := e.Gradient[0], -0.5*2*worked.ClipNorm/12; math.Abs(got-want) > 1e-15 || e.Users != workedUsers {
		t.Errorf("mean %v of %d users, want %v of %d", got, e.Users, want, workedUsers)
	}
}

// TestEstimateSubtractsAllNoise: floors and top-up are subtracted by their expectation: m users of ten, both
// floors of 40 trials.
func TestEstimateSubtractsAllNoise(t *testing.T) {
	p := randomizer.Params{Dim: 1, ClipNorm: 1, Levels: 4, Trials: 8, Coin: randomizer.Fair / 2}
	const users, trials = 7, 10*8 + 2*40
	e, err := method.EstimateMean(p, []uint64{7*4 + trials/4}, users, trials) // everybody at +L
	if err != nil {
		t.Fatal(err)
	}
	if e.Gradient[0] != 1 {
		t.Errorf("mean %v, want 1", e.Gradient[0])
	}
	if want := 0.25 * trials * 3 / 16 / 49; math.Abs(e.PrivacyVariance-want) > 1e-15 {
		t.Errorf("privacy variance %v, want %v", e.PrivacyVariance, want)
	}
}

// TestTheorem32_Unbiased: unbiased over the whole way from vectors to the mean. The mean error of R cohorts is
// a sum of independent centred terms of size at most step = (2L/g)/(R m) with the known variance, so by
// Bernstein's inequality it exceeds t with probability at most 2 exp(-t^2/(2 var + 2 step t/3)); t makes that
// 1e-9 / (7 coordinates).
func TestTheorem32_Unbiased(t *testing.T) {
	const seed, cohorts = 7, 300
	t.Logf("seed %d, false-alarm rate 1e-9", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	enc, err := randomizer.NewVectorSum(worked, rand.NewChaCha8([32]byte{seed}))
	if err != nil {
		t.Fatal(err)
	}
	truth, got := make([]float64, worked.Dim), make([]float64, worked.Dim)
	var variance float64
	for range cohorts {
		totals := make([]uint64, worked.Dim)
		for range workedUsers {
			x := make([]float64, worked.Dim)
			for j := range x {
				x[j] = (2*r.Float64() - 1 + float64(j)/7) / 2 // norm at most sqrt(7) < L: nothing is clipped
				truth[j] += x[j] / workedUsers / cohorts
			}
			counts, err := enc.Encode(nil, x)
			if err != nil {
				t.Fatal(err)
			}
			for j, c := range counts {
				totals[j] += uint64(c)
			}
		}
		e, err := method.EstimateMean(worked, totals, workedUsers, workedUsers*9)
		if err != nil {
			t.Fatal(err)
		}
		for j, g := range e.Gradient {
			got[j] += g / cohorts
		}
		variance = (e.PrivacyVariance + e.RoundingVariance) / cohorts
	}
	step := 2 * worked.ClipNorm / 12 / workedUsers / cohorts
	lambda := math.Log(2 * 7 / 1e-9)
	margin := step*lambda/3 + math.Sqrt(step*step*lambda*lambda/9+2*variance*lambda)
	for j := range got {
		if math.Abs(got[j]-truth[j]) > margin {
			t.Errorf("coordinate %d: mean estimate %v, true mean %v, margin %v", j, got[j], truth[j], margin)
		}
	}
}

func TestEstimateRefuses(t *testing.T) {
	fine := make([]uint64, worked.Dim)
	bad := worked
	bad.ClipNorm = math.NaN()
	high := make([]uint64, worked.Dim)
	high[6] = 2*12 + 18 + 1
	for name, c := range map[string]struct {
		params        randomizer.Params
		totals        []uint64
		users, trials uint64
	}{
		"params":                  {bad, fine, 2, 18},
		"dimension":               {worked, fine[:6], 2, 18},
		"no users":                {worked, fine, 0, 18},
		"too few trials":          {worked, fine, 2, 17},
		"more than users can say": {worked, high, 2, 18},
		"users overflow":          {worked, fine, math.MaxUint64, math.MaxUint64},
		"trials overflow":         {worked, fine, 2, math.MaxUint64},
	} {
		if _, err := method.EstimateMean(c.params, c.totals, c.users, c.trials); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
