package isrl

import "math"

// ExperimentalNoise returns sigma of the paper's experiments with minibatches (Section 6): sigma^2 = 8 L^2 R
// ln(1/delta)/(n^2 epsilon^2), after the moments accountant of Abadi et al. 2016, whose constants are not
// stated. Doubt: it holds for records that are added or removed, 2L taken for L; for records that are
// replaced it fails from an epsilon of about 1.5 on. Sampled computes its real cost.
func (f Federation) ExperimentalNoise(rounds float64) float64 {
	return f.Lipschitz * math.Sqrt(8*rounds*f.logDelta()) / (f.Records * f.Epsilon)
}

// ExperimentalBatch returns K of the paper's experiments, n sqrt(epsilon)/(2 sqrt(R)), rounded down and at
// least 1. (The published scripts take the largest epsilon tried, for all.)
func (f Federation) ExperimentalBatch(rounds float64) float64 {
	return f.withinRecords(math.Floor(f.Records * math.Sqrt(f.Epsilon/rounds) / 2))
}

// LocalNoise returns sigma of every step of the paper's private Local SGD, of R rounds of K steps on one
// record each (Appendix I): sigma^2 = 8 L^2 R K ln(1/delta)/(n^2 epsilon^2). No proof of its epsilon is
// valid: seen step by step, which the cited accountant bounds, it is far from private, and for the K-th
// iterate alone there is a proof only for linear losses.
func (f Federation) LocalNoise(rounds, steps float64) float64 {
	return f.ExperimentalNoise(rounds) * math.Sqrt(steps)
}
