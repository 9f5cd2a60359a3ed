package resque

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// known are subproblems whose minimizer has a formula; calls counts them.
type known struct {
	prox  func(y []float64, lambda float64) []float64
	calls int
}

func (k *known) Distance(_ context.Context, y []float64, lambda float64) (float64, error) {
	k.calls++
	var square float64
	for i, v := range k.prox(y, lambda) {
		square += (v - y[i]) * (v - y[i])
	}
	return math.Sqrt(square), nil
}

func (k *known) Solve(_ context.Context, y []float64, lambda, _, _, _ float64) (x, prox []float64, err error) {
	k.calls++
	x = k.prox(y, lambda)
	return x, x, nil
}

// norm returns ||x - b|| and its proximal step in a ball of radius r: a step of min(1/lambda, distance, r)
// towards b.
func norm(b []float64, r float64) (value func([]float64) float64, prox func([]float64, float64) []float64) {
	value = func(x []float64) (sum float64) {
		for i, v := range x {
			sum += (v - b[i]) * (v - b[i])
		}
		return math.Sqrt(sum)
	}
	return value, func(y []float64, lambda float64) []float64 {
		out, way := make([]float64, len(y)), value(y)
		step := min(1/lambda, way, r)
		for i, v := range y {
			out[i] = v
			if way > 0 {
				out[i] += step / way * (b[i] - v)
			}
		}
		return out
	}
}

// BallAccel over exact subproblems: within 7 % of the steps, and fewer calls, of one whose line search begins with
// the least strength and not with the last (45, 104, 486 steps, 165, 370, 1812 calls).
func TestBallAccelExact(t *testing.T) {
	for _, c := range []struct {
		kappa, inverse float64
		steps, calls   int
	}{{30, 30, 45, 165}, {100, 100, 104, 370}, {100, 1000, 486, 1812}} {
		r := 1 / c.inverse
		value, prox := norm([]float64{.6, 0, .8}, r)
		k := &known{prox: prox}
		x, counts, err := planBallAccel(ball{1, r, r}, 1, 1/c.kappa).run(t.Context(), 3, k)
		if err != nil {
			t.Fatal(err)
		}
		steps := counts[searched] + counts[least]
		t.Logf("kappa %v, R/r %v: %v steps, %d calls, gap %v", c.kappa, c.inverse, counts, k.calls, value(x))
		if value(x) > 1/c.kappa || counts[uncertified] > 0 || math.Abs(float64(steps-c.steps)) > .07*float64(c.steps) ||
			k.calls > c.calls {
			t.Errorf("gap %v, %d steps, %d calls", value(x), steps, k.calls)
		}
	}
}

// blind are subproblems whose distances nobody may ask for.
type blind struct {
	asked
	t *testing.T
}

func (b *blind) Distance(context.Context, []float64, float64) (float64, error) {
	b.t.Error("a distance was asked for")
	return 0, nil
}

// TestBallAccelUnsearched: with a least strength of L/(0.9 r) the minimizer of an L-Lipschitz function is at most 0.9 r away:
// no distance is asked for, all steps are certified, and what phi, in all steps, and R^2/A leave of the gap is within the
// proof's: at most 0.13 of the gap, and a half.
func TestBallAccelUnsearched(t *testing.T) {
	for _, c := range []struct{ kappa, inverse float64 }{{30, 30}, {100, 1000}, {40, 179}} {
		r, gap := 1/c.inverse, 1/c.kappa
		value, prox := norm([]float64{.6, 0, .8}, r)
		k := &blind{asked{known: known{prox: func(y []float64, lambda float64) []float64 {
			out := prox(y, lambda)
			var square float64
			for i, v := range out {
				square += (v - y[i]) * (v - y[i])
			}
			if math.Sqrt(square) > .9*r*(1+1e-9) {
				t.Errorf("a minimizer %v away, r is %v", math.Sqrt(square), r)
			}
			return out
		}}}, t}
		f := planBallAccel(ball{1, r, r}, 1, gap).unsearched()
		if math.Abs(f.least/(c.inverse/.9)-1) > 1e-12 {
			t.Errorf("strength %v", f.least)
		}
		x, counts, err := f.run(t.Context(), 3, k)
		var sum float64
		for _, phi := range k.phi {
			sum += phi
		}
		if err != nil || value(x) > gap || counts[searched]+counts[uncertified] > 0 || sum > .13*gap {
			t.Errorf("kappa %v, R/r %v: gap %v, steps %v, phi adds up to %v of the gap; %v", c.kappa, c.inverse, value(x), counts,
				sum/gap, err)
		}
	}
}

// TestBallAccelTakesTheCheaper: at kappa = 20 in 20 dimensions, half of the gap for smoothing, measuring distances would take
// most of 2e10 queries; without it there are some 5e8.
func TestBallAccelTakesTheCheaper(t *testing.T) {
	r := .025 / math.Sqrt(20)
	f := planBallAccel(ball{1, r, r}, 1, .025)
	if one, other := f.queries(epochSGD{}), f.unsearched().queries(epochSGD{}); !(one > 1e10) || !(other > 3e8 && other < 1e9) ||
		f.sure() || !f.unsearched().sure() {
		t.Errorf("%.3g queries, or %.3g without distances", one, other)
	}
}

// The quadratic, whose minimizers are close: all steps are of the least strength.
func TestBallAccelQuadratic(t *testing.T) {
	const d, r, gap = 50, 1e-3, 1e-2
	q, b := make([]float64, d), make([]float64, d)
	var square float64
	for i := range q {
		q[i] = .5 * math.Pow(10, -4*float64(i)/49)
		b[i] = math.Pow(q[i], -.25)
		square += b[i] * b[i]
	}
	for i := range b {
		b[i] /= math.Sqrt(square)
	}
	k := &known{prox: func(y []float64, lambda float64) []float64 {
		free := func(strength float64) []float64 {
			out := make([]float64, d)
			for i, v := range y {
				out[i] = (strength*v + q[i]*b[i]) / (strength + q[i])
			}
			return out
		}
		way := func(x []float64) (sum float64) {
			for i, v := range x {
				sum += (v - y[i]) * (v - y[i])
			}
			return math.Sqrt(sum)
		}
		x := free(lambda)
		if way(x) <= r {
			return x
		}
		lo, hi := lambda, 1e9
		for range 100 {
			if m := math.Sqrt(lo * hi); way(free(m)) > r {
				lo = m
			} else {
				hi = m
			}
		}
		return free(hi)
	}}
	x, counts, err := planBallAccel(ball{1, r, r}, 1, gap).run(t.Context(), d, k)
	if err != nil {
		t.Fatal(err)
	}
	var value float64
	for i, v := range x {
		value += q[i] * (v - b[i]) * (v - b[i]) / 2
	}
	t.Logf("%v, %d calls, gap %v", counts, k.calls, value)
	if counts != [3]int{0, 280, 0} || k.calls != 560 || value > gap {
		t.Errorf("%v steps, %d calls, gap %v: want 280 of the least strength, 560 calls, at most %v", counts, k.calls, value,
			gap)
	}
}

// Where minimizers are exact, BallAccel stops with A >= 2 R^2/gap within its bounds of steps, every step is
// certified, and the gap is at most R^2/A.
func TestBallAccelStops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kappa, inverse := math.Exp(rapid.Float64Range(.2, 4.5).Draw(t, "log kappa")),
			math.Exp(rapid.Float64Range(0, 6).Draw(t, "log R/r"))
		angle, length := rapid.Float64Range(0, 2*math.Pi).Draw(t, "angle"), rapid.Float64Range(0, 1).Draw(t, "length")
		value, prox := norm([]float64{length * math.Cos(angle), length * math.Sin(angle)}, 1/inverse)
		f := planBallAccel(ball{1, 1 / inverse, 1 / inverse}, 1, 1/kappa)
		x, counts, err := f.run(context.Background(), 2, &known{prox: prox})
		if err != nil {
			t.Fatal(err)
		}
		if value(x) > 1/kappa/2*(1+1e-9) {
			t.Errorf("gap %v, want at most half of %v with exact minimizers", value(x), 1/kappa)
		}
		most, mostLeast := f.steps()
		if float64(counts[searched]) > most || float64(counts[least]) > mostLeast+1 || counts[uncertified] > 0 {
			t.Errorf("%v steps, want at most %v, %v and none", counts, most, mostLeast)
		}
	})
}

// The search brackets any distance that falls with the strength as its contract says, in no more probes than its bound.
func TestSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inverse := math.Exp(rapid.Float64Range(0, 8).Draw(t, "log R/r"))
		f := planBallAccel(ball{1, 1 / inverse, 1 / inverse}, 1, math.Exp(-rapid.Float64Range(.1, 5).Draw(t, "log kappa")))
		// a distance of at most r/2 at the largest strength that rises linearly towards smaller ones, cut at r, and at
		// L/lambda, which no minimizer of an L-Lipschitz function is further than, where L = 1
		rise := rapid.Float64Range(0, .172*f.reach+f.r).Draw(t, "slope")
		noise := rapid.Float64Range(-1, 1).Draw(t, "noise") * f.r / 17
		truth := func(lambda float64) float64 { return min(f.r, 1/lambda, f.r/2+rise*math.Log(f.most/lambda)) }
		last := f.least * math.Pow(f.most/f.least, rapid.Float64Range(0, 1).Draw(t, "last"))
		probes := 0
		lambda, kind, err := f.search(last, func(lambda float64) (float64, error) {
			probes++
			return truth(lambda) + noise, nil
		})
		if err != nil || lambda < f.least || lambda > f.most || kind == uncertified || kind == least && lambda != f.least {
			t.Fatalf("%v, %v, %v", lambda, kind, err)
		}
		f.probes, probes = rapid.IntRange(1, 4).Draw(t, "probes"), 0
		within, kind, err := f.search(last, func(lambda float64) (float64, error) {
			probes++
			return truth(lambda) + noise, nil
		})
		if err != nil || probes > f.probes || kind == uncertified && (probes < f.probes || truth(within) > .96*f.r) ||
			kind != uncertified && within != lambda {
			t.Fatalf("at most %d probes: %d, %v, %v, %v", f.probes, probes, within, kind, err)
		}
		if u := truth(lambda); u > .96*f.r || kind == searched && u < .54*f.r {
			t.Errorf("distance %v r", u/f.r)
		}
		if most := 4 + math.Log2(max(1, math.Log(f.most/f.least)*(.172*f.reach+f.r)/(.18*f.r))); float64(probes) > most {
			t.Errorf("%d probes, want at most %v", probes, most)
		}
	})
}

// Multilevel: the mean over J telescopes to the last level, whatever the levels return.
func TestMultilevelTelescopes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.IntRange(0, 12).Draw(t, "levels")
		points := rapid.SliceOfN(rapid.Float64Range(-1, 1), levels+1, levels+1).Draw(t, "points")
		solve := func(level int) ([]float64, error) { return []float64{points[level]}, nil }
		var sum float64
		for j := 1; j <= levels+1; j++ {
			x, err := Proximal(j, levels, solve)
			if err != nil {
				t.Fatal(err)
			}
			chance := math.Ldexp(1, -j)
			if j > levels {
				chance = math.Ldexp(1, -levels) // of all J above
			}
			sum += chance * x[0]
		}
		if math.Abs(sum-points[levels]) > 1e-12 {
			t.Errorf("mean %v, want %v", sum, points[levels])
		}
		variance, bias, lambda := math.Exp(rapid.Float64Range(-9, 2).Draw(t, "log variance")),
			math.Exp(rapid.Float64Range(-12, 0).Draw(t, "log bias")), math.Exp(rapid.Float64Range(-3, 5).Draw(t, "log lambda"))
		phi0, most := multilevel(lambda, bias, variance)
		if math.Sqrt(2*phi0*lambda*math.Pow(2, -float64(most))) > bias*(1+1e-12) ||
			phi0*lambda*(4+24*float64(most)) > variance*(1+1e-12) {
			t.Errorf("phi0 %v with %d levels", phi0, most)
		}
	})
}

// The expected cost of a proximal estimate is 1 + 1.5 levels of the first level's, where cost goes with 1/phi, and
// J is geometric.
func TestMultilevelCost(t *testing.T) {
	const levels, trials = 6, 200_000
	p := &pool{dim: 1, seed: [32]byte{9}}
	var costs []float64
	for range trials {
		cost := 0.0
		if _, err := Proximal(p.level(), levels, func(level int) ([]float64, error) {
			cost += math.Ldexp(1, level)
			return []float64{0}, nil
		}); err != nil {
			t.Fatal(err)
		}
		costs = append(costs, cost)
	}
	mean(t, "cost", costs, 1+1.5*levels)
}

// Majorities: of the paper's number of copies, each good with probability 2/3, and of ours.
func TestMajority(t *testing.T) {
	for _, c := range []struct {
		zeta   float64
		k      int
		fails  float64
		strict int
	}{{1e-3, 139, 5.17e-5, 81}, {1e-6, 277, 4.33e-8, 193}} {
		k := int(math.Ceil(20 * math.Log(1/c.zeta)))
		if k != c.k {
			t.Errorf("zeta %v: %d copies, want %d", c.zeta, k, c.k)
		}
		near(t, "no majority", fewer(k, int(math.Ceil(.51*float64(k))), 2./3), c.fails, 2e-3)
		if fair := copiesFor(c.zeta, 2./3); fair != c.strict {
			t.Errorf("zeta %v: %d copies for a strict majority, want %d", c.zeta, fair, c.strict)
		}
		own := copiesFor(c.zeta, .9)
		if own%2 == 0 || fewer(own, own/2+1, .9) > c.zeta || fewer(own-2, own/2, .9) <= c.zeta {
			t.Errorf("zeta %v: %d copies of our own", c.zeta, own)
		}
	}
}
