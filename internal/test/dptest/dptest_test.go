package dptest

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// recorder catches what an assertion would report.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Logf(string, ...any)   {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatalf(f string, a ...any) {
	panic(fmt.Sprintf(f, a...))
}

// The assertions at alpha = 1/20 must fail about as often as they say on true claims: at most 1/20 of 2000 runs plus
// 6.2 standard errors of 0.005 (rate about 3e-10), and always on claims that are far off.
func TestFalseAlarmsAndPower(t *testing.T) {
	rng := rand.New(Source(t, 1))
	draw := func(n int, p float64) ([]float64, []uint64) {
		samples, counts := make([]float64, n), make([]uint64, 3)
		for i := range samples {
			k := 0
			for range 2 {
				if rng.Float64() < p {
					k++
				}
			}
			samples[i] = float64(k)
			counts[k]++
		}
		return samples, counts
	}
	const runs, n, alpha = 2000, 1000, 0.05
	var mean, fit, rate int
	for range runs {
		samples, counts := draw(n, 0.5)
		for i, check := range []func(t testing.TB){
			func(t testing.TB) { Mean(t, "", samples, Moment{1, 0.5, 0.5}, alpha) },
			func(t testing.TB) { ChiSquare(t, "", counts, BinomialProbabilities(2, 0.5), alpha) },
			func(t testing.TB) { Rate(t, "", counts[0], n, 0.25, alpha) },
		} {
			r := &recorder{TB: t}
			check(r)
			if r.failed {
				*[]*int{&mean, &fit, &rate}[i]++
			}
		}
	}
	t.Logf("false alarms of %d at %v: mean %d, fit %d, rate %d", runs, alpha, mean, fit, rate)
	for name, c := range map[string]int{"mean": mean, "fit": fit, "rate": rate} {
		if float64(c) > runs*(alpha+6.2*0.005) {
			t.Errorf("%s: %d false alarms of %d at alpha %v", name, c, runs, alpha)
		}
	}

	samples, counts := draw(20000, 0.55)
	for name, check := range map[string]func(t testing.TB){
		"mean":     func(t testing.TB) { Mean(t, "", samples, Moment{1, 0.5, 0.5}, Alpha) },
		"variance": func(t testing.TB) { Variance(t, "", samples, 1.1, 0.7, Alpha) },
		"at most":  func(t testing.TB) { varianceAtMost(t, "", samples, 1.1, 0.4, Alpha) },
		"fit":      func(t testing.TB) { ChiSquare(t, "", counts, BinomialProbabilities(2, 0.5), Alpha) },
		"rate":     func(t testing.TB) { Rate(t, "", counts[0], 20000, 0.25, Alpha) },
	} {
		r := &recorder{TB: t}
		check(r)
		if !r.failed {
			t.Errorf("%s: a false claim passed", name)
		}
	}
}
