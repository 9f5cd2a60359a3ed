package dptest

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Moment holds the theoretical moments of independent samples that are each a sum of independent terms.
type Moment struct {
	Mean, Variance float64
	// Term bounds the absolute deviation of one term from its own mean.
	Term float64
}

// meanRadius returns r with P(|average of n samples - mean| > r) <= alpha, by Bernstein's inequality for sums of
// bounded independent terms: exp(-s^2/(2 (n v + c s/3))) <= alpha/2 at s = n r.
func meanRadius(n int, m Moment, alpha float64) float64 {
	l := math.Log(2 / alpha)
	c := m.Term * l / 3
	s := c + math.Sqrt(c*c+2*float64(n)*m.Variance*l)
	return s / float64(n)
}

// Mean fails the test if the average of samples is further from m.Mean than chance explains, up to alpha. The bound
// holds for every n.
func Mean(t testing.TB, name string, samples []float64, m Moment, alpha float64) {
	t.Helper()
	var sum float64
	for _, x := range samples {
		sum += x - m.Mean
	}
	got, radius := sum/float64(len(samples)), meanRadius(len(samples), m, alpha)
	t.Logf("%s: average - mean = %.4g, allowed %.4g (n = %d, false-alarm rate %g)", name, got, radius, len(samples), alpha)
	if !(math.Abs(got) <= radius) {
		t.Errorf("%s: the average of %d samples is %v away from the mean %v, allowed %v", name, len(samples), got, m.Mean,
			radius)
	}
}

// Variance fails the test if the second moment of samples around the known mean is further from want than chance
// explains. It is for samples that are sums of many terms: the fourth moment is taken to be at most a normal
// variable's, 3 v^2 (a binomial exceeds it by at most v), and the average of n squares as normal with a tail widened
// by a tenth, which covers its skewness for n >= 10^4 at alpha >= 1e-10. The standard error is v sqrt(2/n).
func Variance(t testing.TB, name string, samples []float64, mean, want, alpha float64) {
	t.Helper()
	n := float64(len(samples))
	var sum float64
	for _, x := range samples {
		sum += (x - mean) * (x - mean)
	}
	got := sum / n
	radius := 1.1 * distuv.UnitNormal.Quantile(1-alpha/2) * want * math.Sqrt(2/n)
	t.Logf("%s: variance %.6g, want %.6g +- %.3g (n = %d, false-alarm rate %g)", name, got, want, radius, len(samples),
		alpha)
	if !(math.Abs(got-want) <= radius) {
		t.Errorf("%s: the variance of %d samples is %v, want %v +- %v", name, len(samples), got, want, radius)
	}
}

// varianceAtMost makes the upper check of Variance, for variances that are only bounded.
func varianceAtMost(t testing.TB, name string, samples []float64, mean, most, alpha float64) {
	t.Helper()
	n := float64(len(samples))
	var sum float64
	for _, x := range samples {
		sum += (x - mean) * (x - mean)
	}
	got := sum / n
	limit := most * (1 + 1.1*distuv.UnitNormal.Quantile(1-alpha)*math.Sqrt(2/n))
	if !(got <= limit) {
		t.Errorf("%s: the variance of %d samples is %v, want at most %v (%v with tolerance)", name, len(samples), got, most,
			limit)
	}
}
