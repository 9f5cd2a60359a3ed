package accounting

import (
	"math"
	"math/rand/v2"
	"testing"
)

// fewOutcomes returns a pair of laws whose outcomes have losses of about this size, and sometimes an outcome of one of
// them alone, or one that is far rarer under the other.
func fewOutcomes(rng *rand.Rand, n int, loss float64) (pair [2][]float64) {
	for k := range pair {
		pair[k] = make([]float64, n, n+2)
	}
	var sum [2]float64
	for i := range n {
		pair[0][i] = math.Exp(3 * rng.NormFloat64())
		pair[1][i] = pair[0][i] * math.Exp(loss*(2*rng.Float64()-1))
		sum[0], sum[1] = sum[0]+pair[0][i], sum[1]+pair[1][i]
	}
	rare := math.Pow(10, -1-9*rng.Float64())
	extra := [][2][2]float64{{{0, 0}, {0, 0}}, {{rare, 0}, {0, 0}}, {{rare, 0}, {0, rare}},
		{{rare, 0}, {rare * 1e-9, 0}}}[rng.IntN(4)]
	for k := range pair {
		for i := range pair[k] {
			pair[k][i] *= (1 - extra[k][0] - extra[k][1]) / sum[k]
		}
		pair[k] = append(pair[k], extra[k][:]...)
	}
	return pair
}

// worstOf returns the largest divergence of releases one after the other, at a factor: after every outcome the next
// one's pair and order are the worst for what is left.
func worstOf(releases [][][2][]float64, factor float64) (most float64) {
	if len(releases) == 0 {
		return max(0, 1-factor)
	}
	for _, pair := range releases[0] {
		for order := range 2 {
			sum := 0.0
			for i, p := range pair[order] {
				if p > 0 {
					sum += p * worstOf(releases[1:], factor*pair[1-order][i]/p)
				}
			}
			most = max(most, sum)
		}
	}
	return most
}

// TestComposedLawsOfFewOutcomes: up to four releases of arbitrary laws, asymmetric ones and ones with infinite losses
// too, lose no more than is claimed of their exact profiles in all their adaptive orders; were profiles of one order
// alone, some would.
func TestComposedLawsOfFewOutcomes(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	closest, oneOrder := 0.0, 0.0
	for range 2000 * deepFactor(t, 20) {
		eps := 0.01 * math.Exp(rng.Float64()*math.Log(1600))
		releases := make([][][2][]float64, 1+rng.IntN(4))
		var both, one []func(eps float64) float64
		for i := range releases {
			for range 1 + rng.IntN(2) {
				releases[i] = append(releases[i], fewOutcomes(rng, 1+rng.IntN(2),
					eps*math.Exp(1.5*rng.NormFloat64())/float64(len(releases))))
			}
			profile := func(orders int) func(eps float64) float64 {
				return func(eps float64) (most float64) {
					for _, pair := range releases[i] {
						for order := range orders {
							most = max(most, stick([2][]float64{pair[order], pair[1-order]}, math.Exp(eps)))
						}
					}
					return most
				}
			}
			both, one = append(both, profile(2)), append(one, profile(1))
		}
		exact := worstOf(releases, math.Exp(eps))
		if bound := ComposedDelta(eps, both...); exact > bound*(1+1e-12) {
			t.Fatalf("epsilon %v, %d releases: exact %v, bound %v: %v", eps, len(releases), exact, bound, releases)
		} else if exact > 0 && bound < 0.5 {
			closest = max(closest, exact/bound)
		}
		if bound := ComposedDelta(eps, one...); bound > 0 {
			oneOrder = max(oneOrder, exact/bound)
		}
	}
	if t.Logf("closest exact/bound %.4f; of one order %.4f", closest, oneOrder); closest < 0.9 || oneOrder <= 1.01 {
		t.Errorf("closest exact/bound %v, want 0.9 to 1; with profiles of one order %v: not refuted", closest, oneOrder)
	}
}
