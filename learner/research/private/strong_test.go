package private

import (
	"math"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/learner/convex"
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
	for i, c := range []struct{ steps, beta, E, D float64 }{{62.5, .4, 3.2768, .2}, {125, .282843, 1.6384, .809543},
		{250, .2, .8192, 1.151675}, {500, .141421, .4096, .971315}} {
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

// Whatever the numbers: E halves, D_(i+1)^2 = D_i E_i, the last D is at most 8 E_k and within Proposition 8, and
// the stages' squares add up.
func TestAlgorithm5Gap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		T, beta := math.Exp(rapid.Float64Range(1.5, 14).Draw(t, "log T")),
			math.Exp(rapid.Float64Range(-6, 1).Draw(t, "log beta"))
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
			if math.Abs(gaps[i+1]*gaps[i+1]/(gaps[i]*E(c))-1) > 1e-9 ||
				math.Abs(distances[i]*distances[i]*lambda/2/gaps[i]-1) > 1e-9 {
				t.Errorf("D_%d = %v, then %v with E = %v, from a distance of %v", i, gaps[i], gaps[i+1], E(c), distances[i])
			}
		}
		if gaps[k] > 8*E(factor(T, beta))*(1+1e-9) || gaps[k] > paperGap(1, lambda, d, beta, T)*(1+1e-9) {
			t.Errorf("a gap of %v", gaps[k])
		}
	})
}

// The steps that a call is charged for cover those of every strength: distances are at most 2r and fall as lambda
// rises, and KD grows with the steps.
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
		c := stage{slotted: slotted{slots: 1<<rapid.IntRange(1, 7).Draw(t, "log T") - 1}, unit: rapid.Float64Range(1e-3,
			.5).Draw(t, "unit")}
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

// Of an even number, more than half is one more than half: of these six, the first has four within 1, and the
// second has three, but not four, much nearer. In any order.
func TestAggregateOfMoreThanHalf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.Permutation([][]float64{{0, 0}, {0, 1.6}, {0, 1}, {0, 2.2}, {1, 0}, {-1, 0}}).Draw(t, "order")
		if got := aggregate(points); got[0] != 0 || got[1] != 0 {
			t.Errorf("the aggregate of %v is %v, want the origin", points, got)
		}
	})
}

// Two runs' means are within shift levels, with all that rounding adds to Lemma D's distance and truncation to
// whole steps: here rounding is most of what is allowed.
func TestPlaceHasRoomForRounding(t *testing.T) {
	p := public(ReSQueBall, 40, 2)
	c := slotted{slots: 7, rate: gridRate(.5), kd: 1.5, shift: 10}
	const r = .1
	of, err := c.place(p, r, 4e-10)
	if err != nil {
		t.Fatal(err)
	}
	for i, ph := range of {
		off := rounding(ph, p.Dim, r, c.batch(p.N), p.Lipschitz)
		if off < 1e-3 {
			t.Errorf("phase %d: rounding of %v shows nothing", i+1, off)
		}
		steps := c.kd*(1+off)*ph.e*p.Lipschitz/c.batch(p.N)*ph.scale + 2*math.Sqrt(float64(p.Dim))
		close(t, "steps of the lattice", steps, c.shift*(1<<stepBits), 1e-12)
		close(t, "a level", ph.level*ph.scale, 1<<stepBits, 1e-12)
	}
}

// playerOf plays these stages on these rows, with the same coins every time.
func playerOf(t *testing.T, p Public, r, rho float64, data Data, a strong) *player {
	t.Helper()
	noise, err := newLattice(nil, dptest.Source(t, 6))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := newRecords(data, p)
	if err != nil {
		t.Fatal(err)
	}
	out, err := newPlayer(p, r, rho, rows, noise, []strong{a})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Algorithm 5 is Algorithm 4 stage by stage, with the radius, the smoothing, the strength and the batch that were
// charged: with the same coins, the same bytes. The first stage ends at the ball's boundary.
func TestStrongIsItsStages(t *testing.T) {
	const n, d, r, rho, lambda = 40, 2, .1, 1., 6.
	p, y := public(ReSQueBall, n, d), []float64{-5, 2}
	a := strong{
		{slotted{slots: 3, rate: gridRate(.25), kd: 1.5, shift: 1e4, mu: 1}, 12, .25},
		{slotted{slots: 7, rate: gridRate(.25), kd: 1.5, shift: 1e4, mu: 1}, 2, .4},
	}
	play := playerOf(t, p, r, rho, world(n, d, 1), a)
	var far []float64
	play.seen = func(_ stage, _ []phase, x []float64) { far = append(far, convex.Norm(x)) }
	got, err := play.strong(t.Context(), a, y, lambda)
	if err != nil {
		t.Fatal(err)
	}
	hand := playerOf(t, p, r, rho, world(n, d, 1), a)
	want, still := make([]float64, d), make([]float64, d)
	// from the centre, then from a gap of .25 L/lambda; both are below 2r
	reach := []float64{1 / lambda, math.Sqrt(2 * .25 / lambda / lambda)}
	for i, c := range []struct{ batch, unit float64 }{{.25 * n / 3, 12}, {.25 * n / 7, 2}} {
		of, err := a[i].place(p, r, c.unit*reach[i])
		if err != nil {
			t.Fatal(err)
		}
		newSolver(d, r, rho, lambda, c.batch, of, hand.noise).solve(want, y, still, hand.data,
			hand.samples[a[i].slots].draw())
	}
	if !slices.Equal(got, want) || convex.Norm(got) == 0 {
		t.Errorf("%v, want %v", got, want)
	}
	if len(far) != 2 || far[0] < .999*r {
		t.Errorf("stages end at distances %v, want two, the first at the boundary", far)
	}
}

// A record moves a step by at most e L/B, however steep it is: here the only step, from the centre, where weights
// are 1, and hardly any noise.
func TestSteepRecordsAreClipped(t *testing.T) {
	const n, lipschitz = 4, .5
	p := public(ReSQueBall, n, 1)
	p.Lipschitz = lipschitz
	rows := make([]convex.Example, n)
	for i := range rows {
		rows[i] = convex.Example{Value: []float64{1000}, Label: 1e5}
	}
	a := strong{{slotted{slots: 1, rate: gridRate(.75), kd: 1.5, shift: 1e6, mu: 1}, .1, 1}}
	play := playerOf(t, p, .1, 1, Data{Loss: convex.Absolute{}, Features: 1, Rows: rows}, a)
	var one float64 // e L/B
	play.seen = func(s stage, of []phase, _ []float64) { one = of[0].e * lipschitz / s.batch(n) }
	x, err := play.strong(t.Context(), a, []float64{0}, 1e-3)
	if err != nil {
		t.Fatal(err)
	}
	if moved := math.Abs(x[0]) / one; moved < .99 || moved > n*1.01 {
		t.Errorf("at most %d records moved a step by %v e L/B", n, moved)
	} else {
		t.Logf("%.4f e L/B", moved)
	}
}
