package private

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Algorithm 5 at T = 1000, beta = 0.1, lambda = 10, d = 10, L = 1, with the paper's first gap and constant.
func TestAlgorithm5Invariants(t *testing.T) {
	const T, beta, lambda, d = 1000, 0.1, 10, 10
	steps, betas := restarts(T, beta)
	factors := make([]float64, len(steps))
	var square, sum float64
	for i := range steps {
		factors[i] = paperConvex * (math.Sqrt(d)/(betas[i]*steps[i]) + 1/math.Sqrt(steps[i]))
		square += betas[i] * betas[i] * steps[i] * steps[i]
		sum += steps[i]
	}
	_, gaps := doubling(2./lambda, 1, lambda, math.Inf(1), factors)
	for i, c := range []struct{ steps, beta, E, D float64 }{{62.5, .4, 3.2768, .2}, {125, .282843, 1.6384, .809543}, {250, .2, .8192, 1.151675}, {500, .141421, .4096, .971315}} {
		close(t, "T", steps[i], c.steps, 1e-12)
		close(t, "beta", betas[i], c.beta, 1e-5)
		close(t, "E", 2*factors[i]*factors[i]/lambda, c.E, 1e-5)
		close(t, "D", gaps[i], c.D, 1e-5)
	}
	close(t, "D", gaps[4], .630754, 1e-5)
	close(t, "(b T)^2", square/(beta*T)/(beta*T), .9375, 1e-12)
	if len(steps) != 4 || sum >= T || powerOfTwo(62.5) != 32 || powerOfTwo(2) != 2 || powerOfTwo(1.3) != 2 {
		t.Errorf("%d stages of %v steps in all", len(steps), sum)
	}
}

// Whatever the numbers: E halves, D_(i+1)^2 = D_i E_i, the last D is at most 8 E_k and within Proposition 8, and the stages' squares add up.
func TestAlgorithm5Gap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		T, beta := math.Exp(rapid.Float64Range(1.5, 14).Draw(t, "log T")), math.Exp(rapid.Float64Range(-6, 1).Draw(t, "log beta"))
		d, lambda := rapid.Float64Range(1, 1000).Draw(t, "d"), math.Exp(rapid.Float64Range(-5, 9).Draw(t, "log lambda"))
		steps, betas := restarts(T, beta)
		k := len(steps)
		if k != max(1, int(math.Ceil(math.Log2(math.Log2(T))))) {
			t.Fatalf("%d stages", k)
		}
		factor := func(T, beta float64) float64 { return paperConvex * (math.Sqrt(d)/(beta*T) + 1/math.Sqrt(T)) }
		factors, square, sum := make([]float64, k), 0., 0.
		for i := range steps {
			factors[i] = factor(steps[i], betas[i])
			square += math.Pow(betas[i]*steps[i], 2)
			sum += steps[i]
		}
		if want := (1 - math.Ldexp(1, -k)) * math.Pow(beta*T, 2); math.Abs(square/want-1) > 1e-9 || !(sum < T) {
			t.Errorf("squares %v, want %v; %v steps of %v", square, want, sum, T)
		}
		E := func(c float64) float64 { return 2 * c * c / lambda }
		distances, gaps := doubling(2/lambda, 1, lambda, math.Inf(1), factors)
		for i, c := range factors {
			next := factor(T, beta)
			if i+1 < k {
				next = factors[i+1]
			}
			if math.Abs(E(next)/E(c)-.5) > 1e-9 {
				t.Errorf("E_%d = %v, then %v", i, E(c), E(next))
			}
			if math.Abs(gaps[i+1]*gaps[i+1]/(gaps[i]*E(c))-1) > 1e-9 || math.Abs(distances[i]*distances[i]*lambda/2/gaps[i]-1) > 1e-9 {
				t.Errorf("D_%d = %v, then %v with E = %v, from a distance of %v", i, gaps[i], gaps[i+1], E(c), distances[i])
			}
		}
		if gaps[k] > 8*E(factor(T, beta))*(1+1e-9) || gaps[k] > PaperGap(1, lambda, d, beta, T)*(1+1e-9) {
			t.Errorf("a gap of %v", gaps[k])
		}
	})
}

// The steps that a call is charged for cover those of every strength: distances are at most 2r and fall as lambda rises, and KD grows with the steps.
func TestChargeCoversEveryStrength(t *testing.T) {
	var kinds []*moments
	for _, s := range []float64{.02, .1} {
		kinds = append(kinds, newMoments(s, 1, true), newMoments(s, 1, false))
	}
	rapid.Check(t, func(t *rapid.T) {
		factors := rapid.SliceOfN(rapid.Float64Range(0.01, 3), 1, 4).Draw(t, "factors")
		r, lambda := rapid.Float64Range(1e-4, 1).Draw(t, "r"), math.Exp(rapid.Float64Range(-3, 8).Draw(t, "log lambda"))
		more := lambda * rapid.Float64Range(1, 50).Draw(t, "more")
		wide, _ := doubling(.5/lambda, 1, lambda, 2*r, factors)
		near, _ := doubling(.5/more, 1, more, 2*r, factors)
		for i := range wide {
			if wide[i] > 2*r || near[i] > wide[i]*(1+1e-12) {
				t.Errorf("distance %d: %v at lambda %v, %v at %v; r %v", i, wide[i], lambda, near[i], more, r)
			}
		}
		m := rapid.SampledFrom(kinds).Draw(t, "moments")
		c := stage{slotted: slotted{slots: 1<<rapid.IntRange(1, 7).Draw(t, "log T") - 1}, unit: rapid.Float64Range(1e-3, .5).Draw(t, "unit")}
		charged := c.drift(m, 1e-10)
		part := rapid.Float64Range(1e-3, 1).Draw(t, "part")
		for _, ph := range phases(c.slots+1, c.longest()*part) {
			if kd, _ := m.multiplier(1, ph.e*m.s, ph.steps, 1e-10); kd > charged*(1+1e-12) {
				t.Errorf("%d steps of %v: KD %v, charged %v", ph.steps, ph.e, kd, charged)
			}
		}
	})
}

// Lemma 11: where more than half of the points are within delta of y, what is returned is within 3 delta.
func TestAggregate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, d := rapid.IntRange(1, 15).Draw(t, "k"), rapid.IntRange(1, 4).Draw(t, "d")
		good := rapid.IntRange(k/2+1, k).Draw(t, "good")
		points := make([][]float64, k)
		for i := range points {
			points[i] = rapid.SliceOfN(rapid.Float64Range(-1, 1), d, d).Draw(t, "point")
			for j := range points[i] {
				if points[i][j] /= math.Sqrt(float64(d)); i >= good { // the others may agree with each other
					points[i][j] = 3 + points[i][j]/10
				}
			}
		}
		points = rapid.Permutation(points).Draw(t, "order")
		var square float64
		for _, v := range aggregate(points) {
			square += v * v
		}
		if square > 9*(1+1e-12) {
			t.Errorf("%d of %d points are within 1, and the aggregate is %v away", good, k, math.Sqrt(square))
		}
	})
}
