package audit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// rounded returns the law of Bin(N, p) plus the stochastic roundings of users at these positions of 0..g, one
// coordinate.
func rounded(noise, positions []float64) []float64 {
	law := noise
	for _, a := range positions {
		whole, frac := math.Modf(a)
		next := make([]float64, len(law)+int(whole)+1)
		for i, q := range law {
			next[i+int(whole)] += (1 - frac) * q
			next[i+int(whole)+1] += frac * q
		}
		law = next
	}
	return law
}

// hockeyStick returns sup_A P(A) - e^eps Q(A).
func hockeyStick(p, q []float64, eps float64) (sup float64) {
	at := func(law []float64, i int) float64 {
		if i < len(law) {
			return law[i]
		}
		return 0
	}
	for i := range max(len(p), len(q)) {
		sup += max(0, at(p, i)-math.Exp(eps)*at(q, i))
	}
	return sup
}

// What is claimed for k users who change together in one round, k^2 rounds of one user, is never below an exact attack
// on one coordinate (docs/proofs/theorem-a.md, section 4), at the poles and at random positions; and k rounds would
// be.
func TestGroupsNeverAboveTheClaim(t *testing.T) {
	rng := rand.New(dptest.Source(t, 12))
	closest, wrong := 0.0, 0
	for range 40 {
		k, g := 2+rng.IntN(8), 1+rng.IntN(20)
		trials := k * k * g * g * (1 + rng.IntN(10))
		trials = min(max(trials, 60), 20000)
		noise := dptest.BinomialProbabilities(trials, 0.5)
		random := func() []float64 {
			out := make([]float64, k)
			for i := range out {
				out[i] = rng.Float64() * float64(g)
			}
			return out
		}
		poles := func(a float64) []float64 {
			out := make([]float64, k)
			for i := range out {
				out[i] = a
			}
			return out
		}
		for _, pair := range [][2][]float64{{poles(float64(g)), poles(0)}, {random(), random()},
			{poles(rng.Float64() * float64(g)), poles(0)}} {
			p, q := rounded(noise, pair[0]), rounded(noise, pair[1])
			for _, eps := range []float64{0, 0.1, 0.5, 1, 2, 4} {
				attack := max(hockeyStick(p, q, eps), hockeyStick(q, p, eps))
				claim := func(rounds int) float64 {
					d, err := accounting.Delta(eps, accounting.Mechanism{Trials: uint64(trials), P: 0.5, Levels: g, Dim: 1,
						Rounds: rounds})
					if err != nil {
						t.Fatal(err)
					}
					return d
				}
				// 1e-12 is for the sums of the attack itself.
				if d := claim(k * k); attack > d*(1+1e-12)+1e-12 {
					t.Errorf("%d users, g = %d, N = %d, epsilon %v: delta is %v, claimed %v", k, g, trials, eps, attack, d)
				} else if attack > 1e-6 {
					closest = max(closest, attack/d)
				}
				if attack > claim(k)+1e-9 {
					wrong++
				}
			}
		}
	}
	t.Logf("closest: %.4f of the claim; k rounds in place of k^2 would be too few %d times", closest, wrong)
	if closest < 0.9 || wrong == 0 {
		t.Errorf("the attacks come to %v of the claim at most and refute that of k rounds %d times: they see nothing",
			closest, wrong)
	}
}
