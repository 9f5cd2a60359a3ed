package resque

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// asked records the tolerances of subproblems.
type asked struct {
	known
	lambda, phi, bias, variance []float64
}

func (a *asked) Solve(ctx context.Context, y []float64, lambda, phi, bias, variance float64) (x, prox []float64,
	err error) {
	a.lambda, a.phi = append(a.lambda, lambda), append(a.phi, phi)
	a.bias, a.variance = append(a.bias, bias), append(a.variance, variance)
	return a.known.Solve(ctx, y, lambda, phi, bias, variance)
}

// TestTolerancesOfBallAccel: those of its proof, in every step: phi = lambda r^2/41, a bias of gap/(16 R), a variance of
// gap/(2 a), where lambda a^2 = A' for A' the sum of all a so far.
func TestTolerancesOfBallAccel(t *testing.T) {
	const r, gap = 1. / 30, 1. / 30
	_, prox := norm([]float64{.6, 0, .8}, r)
	k := &asked{known: known{prox: prox}}
	if _, _, err := planBallAccel(ball{1, r, r}, 1, gap).run(t.Context(), 3, k); err != nil {
		t.Fatal(err)
	}
	var total float64
	for i, lambda := range k.lambda {
		a := gap / 2 / k.variance[i]
		if total += a; math.Abs(lambda*a*a/total-1) > 1e-9 {
			t.Fatalf("step %d: a = %v of %v in all, at lambda %v", i, a, total, lambda)
		}
		if math.Abs(k.phi[i]*41/(lambda*r*r)-1) > 1e-12 || math.Abs(k.bias[i]*16/gap-1) > 1e-12 {
			t.Fatalf("step %d: phi %v, bias %v", i, k.phi[i], k.bias[i])
		}
	}
	if len(k.lambda) < 10 {
		t.Errorf("%d steps", len(k.lambda))
	}
}

// TestReach: iterates are 2 R + 3 sqrt(kappa R r) from the optimum at most, kappa = L R/gap, which by hand is 4 + 3
// sqrt(20 * 2 * 1/4) for L = 1, R = 2, r = 1/4 and a gap of 1/10.
func TestReach(t *testing.T) {
	if got := planBallAccel(ball{1, .25, .25}, 2, .1).reach; math.Abs(got-13.4868329805) > 1e-9 {
		t.Errorf("reach %v", got)
	}
}

// TestEpochGaps: by hand, for L = 2, E||w g||^2 <= 9 and lambda = 1/2: the gap is 4 at the centre, and then a quarter of the
// last one and 9/(8 lambda) over 1, 2, 4, ...: 3.25, 1.9375, 1.046875.
func TestEpochGaps(t *testing.T) {
	for phi, want := range map[float64]struct {
		epochs int
		gap    float64
	}{4: {0, 4}, 3.5: {1, 3.25}, 2: {2, 1.9375}, 1.1: {3, 1.046875}} {
		if k, gap := epochs(2, 9, 0.5, phi); k != want.epochs || math.Abs(gap-want.gap) > 1e-12 {
			t.Errorf("phi = %v: %d epochs to %v, want %+v", phi, k, gap, want)
		}
	}
}

// TestFixedPlanHasTheBoundOfTheoremF: [R^2/2 + (1+s)^2 phi S + exp(s^2) L^2/N_g S/(2 lambda)]/A_N, with A and S by the
// recursion A' = lambda (A' - A)^2 and what the solver guarantees for phi.
func TestFixedPlanHasTheBoundOfTheoremF(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, length, radius := rapid.Float64Range(.1, 1.5).Draw(t, "s"), rapid.Float64Range(.5, 3).Draw(t, "L"),
			rapid.Float64Range(.5, 3).Draw(t, "R")
		b := ball{longest: length, r: radius / rapid.Float64Range(5, 100).Draw(t, "R/r")}
		b.rho = b.r / s
		f, err := planFixed(b, radius, length*radius/rapid.Float64Range(3, 50).Draw(t, "kappa"), 1, epochSGD{})
		if err != nil {
			t.Fatal(err)
		}
		lambda := length / b.r
		var A, S float64
		for range f.rounds {
			lo, hi := A, A+1
			for lambda*(hi-A)*(hi-A) < hi {
				hi *= 2
			}
			for range 200 {
				if mid := (lo + hi) / 2; lambda*(mid-A)*(mid-A) < mid {
					lo = mid
				} else {
					hi = mid
				}
			}
			A = hi
			S += A
		}
		_, reached := epochSGD{}.cost(b, lambda, f.phi)
		want := (radius*radius/2 + (1+s)*(1+s)*reached*S + math.Exp(s*s)*length*length/float64(f.fresh)*S/(2*lambda)) / A
		if math.Abs(f.bound/want-1) > 1e-6 {
			t.Fatalf("bound %v, Theorem F has %v", f.bound, want)
		}
	})
}
