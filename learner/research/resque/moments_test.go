package resque

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// The moments of differences of weights: exact, and bounded by mu_k.
func TestDifferenceMoments(t *testing.T) {
	for _, c := range []struct {
		p            int
		a, b         []float64
		exact, bound float64
	}{
		{2, []float64{.2, 0}, []float64{.1, 0}, 0.0104583, 0.0108244},
		{2, []float64{.5, 0}, []float64{0, .5}, 0.568051, 0.802516},
		{4, []float64{.25, 0}, []float64{0, .25}, 0.0590316, 0.152124},
		{4, []float64{.25, 0}, []float64{-.25, 0}, 0.204964, 0.608496},
	} {
		near(t, "exact moment", evenMoment(c.p, c.a, c.b), c.exact, 1e-5)
		s := math.Sqrt(max(dot(c.a, c.a), dot(c.b, c.b)))
		way := math.Hypot(c.a[0]-c.b[0], c.a[1]-c.b[1])
		near(t, "bound", math.Pow(way, float64(c.p))*math.Exp(LogMoment(c.p, s)), c.bound, 1e-5)
	}
	near(t, "mu_2(.1)", math.Exp(LogMoment(2, .1)), 1.020151, 1e-6)
	near(t, "mu_4(.1)", math.Exp(LogMoment(4, .1)), 3.767502, 1e-6)
	near(t, "mu_10(.1)", math.Exp(LogMoment(10, .1)), 11281.64, 1e-6)
	near(t, "mu_1", math.Exp(LogMoment(1, .3)), math.Sqrt(2/math.Pi), 1e-9)
	near(t, "mu_4(0) = 3", math.Exp(LogMoment(4, 0)), 3, 1e-9)
	near(t, "mu_400(0) = 399!!", LogMoment(400, 0), logFactorial(400)-200*math.Ln2-logFactorial(200), 1e-12)
	if got := LogMoment(2001, .1); !math.IsInf(got, 1) {
		t.Errorf("mu_2001: %v, want +Inf", got)
	}
}

// The bound holds, and is monotone in s, wherever the points are.
func TestDifferenceMomentsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := 2 * rapid.IntRange(1, 3).Draw(t, "p/2")
		s := rapid.Float64Range(.05, .6).Draw(t, "s")
		point := func(name string) []float64 {
			angle, r := rapid.Float64Range(0, 2*math.Pi).Draw(t, name+" angle"), s*rapid.Float64Range(0, 1).Draw(t,
				name+" radius")
			return []float64{r * math.Cos(angle), r * math.Sin(angle)}
		}
		a, b := point("a"), point("b")
		way := math.Hypot(a[0]-b[0], a[1]-b[1])
		bound := math.Exp(float64(p)*math.Log(way) + LogMoment(p, s))
		if exact := evenMoment(p, a, b); exact > bound*(1+1e-9)+1e-10 {
			t.Errorf("E|w-w'|^%d = %v above %v", p, exact, bound)
		}
		k := rapid.IntRange(1, 200).Draw(t, "k")
		if LogMoment(k, s) > LogMoment(k, s*1.01) {
			t.Errorf("mu_%d falls from %v to %v", k, s, s*1.01)
		}
	})
}

// By quadrature: E|N(m,1)|^k for k even.
func TestMomentByQuadrature(t *testing.T) {
	for _, k := range []int{2, 6, 10, 20} {
		for _, s := range []float64{0, .1, .5, 1} {
			m, sum := float64(k-1)*s, 0.0
			const h = 1e-3
			for x := m - 40; x <= m+40; x += h {
				sum += h * math.Pow(math.Abs(x), float64(k)) * math.Exp(-(x-m)*(x-m)/2) / math.Sqrt(2*math.Pi)
			}
			if got, want := LogMoment(k, s), math.Log(sum)+float64(k*(k-1))*s*s/2; !(math.Abs(got-want) < 1e-8) {
				t.Errorf("log mu_%d(%v): %v, want %v", k, s, got, want)
			}
		}
	}
}

// evenMoment returns E(w(v) - w(v'))^p for even p, by the binomial sum over a = v/rho and b = v'/rho:
//
//	sum_q (-1)^q C(p,q) exp(((p-q)^2-(p-q)) |a|^2/2 + (q^2-q) |b|^2/2 + q(p-q) <a,b>).
//
// It is exact up to cancellation: an error of about 1e-16 times the largest term.
func evenMoment(p int, a, b []float64) float64 {
	aa, bb, ab := dot(a, a), dot(b, b), dot(a, b)
	var sum float64
	for q := range p + 1 {
		u, v := float64(p-q), float64(q)
		t := math.Exp(logFactorial(p) - logFactorial(q) - logFactorial(p-q) + u*(u-1)*aa/2 + v*(v-1)*bb/2 + u*v*ab)
		if q%2 == 1 {
			t = -t
		}
		sum += t
	}
	return sum
}
