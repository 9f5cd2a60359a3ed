package shuffle

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/randomizer"
)

// The estimate from a release is unbiased with the variance that Params.Variance states, whether the cohort was missed,
// met, or exceeded by a bundle less one, with floors and without.
func TestReleaseDecodesWithoutBias(t *testing.T) {
	const repeat, dim, cohort, size = 250, 40, 6, 3 // coordinates are independent samples
	params := randomizer.Params{Dim: dim, ClipNorm: 1, Levels: 8, Trials: 50, Coin: randomizer.Fair}
	x := make([]float64, dim)
	for j := range x {
		x[j] = 0.1 // position 4.4: rounding has variance 0.24 steps^2
	}
	for _, c := range []struct {
		users int
		floor uint64
	}{{4, 0}, {6, 0}, {8, 0}, {4, 500}, {8, 500}} {
		params.FloorTrials = c.floor
		what := fmt.Sprintf("%d of %d users, floors of %d", c.users, cohort, c.floor)
		seeds := dptest.Source(t, uint64(c.users)+c.floor)
		entropy := func() rand.Source { return rand.NewChaCha8(dptest.Seed(seeds.Uint64())) }
		device, err := randomizer.NewVectorSum(params, entropy())
		if err != nil {
			t.Fatal(err)
		}
		var samples []float64
		var noise uint64
		for range repeat {
			m := mustMixer(t, Config{Params: params, Cohort: cohort, Minimum: 2, MaxBundle: size, Entropy: entropy})
			for first := 0; first < c.users; {
				// Singles up to one below the cohort, then as many as are left, at most a bundle.
				n := 1
				if first >= cohort-1 {
					n = min(size, c.users-first)
				}
				var ids []ReportID
				var packed []byte
				for i := range n {
					counts, err := device.Encode(nil, x)
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, name(first+i))
					packed = params.Pack(packed, counts)
				}
				if got := m.Add(ids, packed); got != Accepted {
					t.Fatalf("%s: %v", what, got)
				}
				first += n
			}
			rel, err := m.Close()
			if err != nil {
				t.Fatal(err)
			}
			noise = rel.NoiseTrials
			sum, err := params.Decode(nil, rel.Totals, rel.Users, noise)
			if err != nil {
				t.Fatal(err)
			}
			samples = append(samples, sum...)
		}
		if want := uint64(max(c.users, cohort))*50 + 2*c.floor; noise != want {
			t.Errorf("%s: NoiseTrials = %d, want %d", what, noise, want)
		}
		step := 2.0 / 8
		users := float64(c.users)
		variance := params.Variance(uint64(c.users), noise).Privacy + step*step*users*0.24
		dptest.Mean(t, what, samples, dptest.Moment{Mean: users * 0.1, Variance: variance, Term: step}, dptest.Alpha)
		dptest.Variance(t, what, samples, users*0.1, variance, dptest.Alpha)
	}
}
