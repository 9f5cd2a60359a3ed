package practical

import "math"

// A prior describes a group of numbers before observation.
type prior struct {
	mean, spread float64 // of the group's mean
	variance     float64 // t0, of a number around it
}

// shrink moves noisy values z_j with noise sd_j toward their group's mean, in place, and returns the weight w_j
// that each keeps: its share of variance in the observed value. The group's mean goes toward the prior's first.
// A sum of squares counts as evidence for variance beyond the prior's only where it is above its noise by more
// than a deviation.
func shrink(z, sd []float64, of prior) (weight []float64) {
	if len(z) == 0 {
		return nil
	}
	k := float64(len(z))
	var mean, noise, fourth float64
	for j, v := range z {
		square := sd[j] * sd[j]
		mean += v / k
		noise += square
		fourth += square * square
	}
	spread := of.spread * of.spread
	if total := spread + noise/k/k; total > 0 {
		mean = of.mean + spread/total*(mean-of.mean)
	}
	excess := of.variance - math.Sqrt(2*fourth)
	for j, v := range z {
		excess += (v-mean)*(v-mean) - sd[j]*sd[j]
	}
	variance := max(of.variance, excess) / (k + 1)
	weight = make([]float64, len(z))
	for j, v := range z {
		weight[j] = variance / (variance + sd[j]*sd[j])
		z[j] = mean + weight[j]*(v-mean)
	}
	return weight
}
