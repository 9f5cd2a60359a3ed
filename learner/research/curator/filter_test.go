package curator

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

func line(xs ...float64) [][]float64 {
	out := make([][]float64, len(xs))
	for i, x := range xs {
		out[i] = []float64{x}
	}
	return out
}

func times(n int, x float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = x
	}
	return out
}

// filtered returns the weighted mean of points, by the deterministic rule.
func (f filter) filtered(points [][]float64) (pairs int, mean []float64) {
	pairs, near := f.counts(points)
	mean = make([]float64, len(points[0]))
	weightedMean(mean, points, f.weights(near))
	return pairs, mean
}

// TestScoreOfOneMoved: ten equal points, of which one moves away: the score falls from 10 to 8.2, by all of 2(C-1)/C.
func TestScoreOfOneMoved(t *testing.T) {
	f := filter{1, 1, 10}
	before, _ := f.counts(line(times(10, 0)...))
	after, _ := f.counts(line(append(times(9, 0), 7)...))
	if before != 100 || after != 82 || before-after != scoreSensitivity(10) {
		t.Errorf("%d and %d pairs, sensitivity %d", before, after, scoreSensitivity(10))
	}
}

// TestLemmaWByHand: 60 points on a line, one of them replaced.
func TestLemmaWByHand(t *testing.T) {
	// pairs at a distance of the radii count: up to rounding a filter leaves such out
	f := filter{1 + 1e-12, 2 + 2e-12, 48}
	var rest []float64
	rest = append(append(append(rest, times(5, -3.25)...), times(26, -1.25)...), times(28, -1)...)
	s, m := f.filtered(line(append(rest, 0.75)...))
	s2, m2 := f.filtered(line(append(rest, -3)...))
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-6*math.Abs(want) }
	if !near(float64(s)/60, 49.0333333) || !near(float64(s2)/60, 49.2) || !near(m[0], -1.09723618) ||
		!near(m2[0], -1.1755) ||
		!near(f.sensitivity(60, 0), 0.35648148) || !near(m[0]-m2[0], 0.0782638) {
		t.Errorf("pairs %d, %d, means %v, %v, S_U %v", s, s2, m, m2, f.sensitivity(60, 0))
	}
	if got := (filter{1, 2, 2 * 3254. / 3}).sensitivity(3254, 0) * 3254; !near(got, 41.9889367) {
		t.Errorf("S_U C/tau = %v", got)
	}
}

// TestScoredTogetherAreNear: two points that count in the score with a third are counted near each other by a
// filter of twice the radius, at radii and points where the squares of their distances round one way and that
// between them the other.
func TestScoredTogetherAreNear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	edges := 0
	for range 3000 {
		d := 2 + r.IntN(7)
		a, b, c := make([]float64, d), make([]float64, d), make([]float64, d)
		for j := range a {
			b[j] = r.Float64() - 0.5
			u := r.Float64() - 0.5
			a[j], c[j] = b[j]-u, b[j]+u*(1+float64(r.IntN(9)-4)*0x1p-53)
		}
		long := max(distance2(a, b), distance2(b, c))
		if distance2(a, c) > 4*long {
			edges++
		}
		for shrink := 0.; shrink < 4; shrink++ {
			for k := range 9 {
				f := filter{1, 2, 50}.scaled(math.Sqrt(long/(1-shrink*float64(d+8)*0x1p-52)) * (1 + float64(k-4)*0x1p-53))
				pairs, _ := f.counts([][]float64{a, b})
				others, _ := f.counts([][]float64{b, c})
				if _, near := f.counts([][]float64{a, c}); pairs == 4 && others == 4 && near[0] != 2 {
					t.Fatalf("radius %v: %v and %v are near %v, and not near each other", f.score, a, c, b)
				}
			}
		}
	}
	if edges < 20 {
		t.Errorf("%d triples at an edge", edges)
	}
}

// TestFilterRefuses: Lemma W is for an even C and U above C/2 + 2.
func TestFilterRefuses(t *testing.T) {
	for _, c := range []struct {
		f filter
		c int
	}{{filter{1, 2, 48}, 61}, {filter{1, 2, 32}, 60}, {filter{1, 2, 61}, 60}, {filter{1, 0.5, 48}, 60}, {filter{0, 2, 48},
		60}, {filter{1, 2, 4}, 4}} {
		if c.f.validate(c.c) == nil {
			t.Errorf("%+v of %d points: want an error", c.f, c.c)
		}
	}
}

// adversarial draws two lists that differ in their first point: clusters, and points at multiples of the radii from
// each other.
func adversarial(t *rapid.T, f filter) (c int, a, b [][]float64) {
	c = 2 * rapid.IntRange(4, 24).Draw(t, "half")
	d := rapid.IntRange(1, 3).Draw(t, "d")
	at := rapid.Custom(func(t *rapid.T) []float64 {
		x := make([]float64, d)
		for j := range x {
			x[j] = float64(rapid.IntRange(-8, 8).Draw(t, "x")) * f.score / 4
			if rapid.IntRange(0, 2).Draw(t, "close") > 0 {
				x[j] /= 8
			}
		}
		return x
	})
	sites := rapid.SliceOfN(at, 1, 5).Draw(t, "sites")
	a = make([][]float64, c)
	for i := range a {
		a[i] = sites[rapid.IntRange(0, len(sites)-1).Draw(t, "site")]
	}
	b = append([][]float64{at.Draw(t, "replaced")}, a[1:]...)
	return c, a, b
}

// TestLemmaW: wherever one point goes, the score moves by at most 2(C-1) pairs, and the weighted means are within
// S_U of each other if one of the scores is at least U; for either pair of radii.
func TestLemmaW(t *testing.T) {
	var worst float64
	rapid.Check(t, func(t *rapid.T) {
		f := filter{score: 1, near: rapid.SampledFrom([]float64{1, 1.5, 2}).Draw(t, "near")}
		c, a, b := adversarial(t, f)
		s, _ := f.counts(a)
		s2, _ := f.counts(b)
		if s-s2 > scoreSensitivity(c) || s2-s > scoreSensitivity(c) {
			t.Fatalf("%d and %d pairs of %d points", s, s2, c)
		}
		// The U at which the lemma still speaks of this pair: the largest.
		f.full = min(float64(max(s, s2))/float64(c), float64(c))
		if f.validate(c) != nil {
			return
		}
		_, m := f.filtered(a)
		_, m2 := f.filtered(b)
		apart := math.Sqrt(distance2(m, m2)) / f.sensitivity(c, 9)
		worst = max(worst, apart)
		if apart > 1 {
			t.Fatalf("means %v of S_U apart", apart)
		}
	})
	t.Logf("closest to S_U: %.3f of it", worst)
}

// TestCoupledCoins: where the coins of the paper's inclusion rule are shared, the two means are at most 6 tau
// (differences + 2)/C apart, and points other than the replaced one differ with probability at most 6/C each.
func TestCoupledCoins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := filter{score: 1, near: 2}
		c, a, b := adversarial(t, f)
		f.full = 2 * float64(c) / 3
		s, n := f.counts(a)
		s2, n2 := f.counts(b)
		if f.validate(c) != nil || float64(max(s, s2)) < f.full*float64(c) {
			return
		}
		if s < s2 {
			a, b, n, n2 = b, a, n2, n
		}
		w, w2 := f.weights(n), f.weights(n2)
		seed := rapid.Uint64().Draw(t, "seed")
		differ := 2.
		for j := 1; j < c; j++ {
			if p := math.Abs(w[j] - w2[j]); p > 6/float64(c)+1e-12 {
				t.Fatalf("probabilities %v and %v of %d points", w[j], w2[j], c)
			}
		}
		coins(w, rand.NewPCG(seed, 1))
		coins(w2, rand.NewPCG(seed, 1))
		var all float64
		for j := range w {
			all += w2[j]
			if j > 0 {
				differ += math.Abs(w[j] - w2[j])
			}
		}
		if all == 0 {
			return // a halt
		}
		m, m2 := make([]float64, len(a[0])), make([]float64, len(a[0]))
		weightedMean(m, a, w)
		weightedMean(m2, b, w2)
		if apart := math.Sqrt(distance2(m, m2)); apart > 6*differ/float64(c)*(1+1e-9) {
			t.Fatalf("means %v apart with %v differences of %d points", apart, differ, c)
		}
	})
}

// TestCoinsAreTheirs: never at weight 0, always at 1, and half of the time at 1/2.
func TestCoinsAreTheirs(t *testing.T) {
	src, sum := rand.NewPCG(1, 2), 0.
	for range 10000 {
		w := []float64{0, 1, 0.5}
		coins(w, src)
		if w[0] != 0 || w[1] != 1 {
			t.Fatal(w)
		}
		sum += w[2]
	}
	if math.Abs(sum-5000) > 6*50+1 { // six standard deviations: 2e-9
		t.Errorf("%v of 10000", sum)
	}
}

// TestFilterIsTheMean: concentrated points all weigh 1, and the filter changes nothing.
func TestFilterIsTheMean(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	points, mean := make([][]float64, 20), make([]float64, 7)
	for i := range points {
		points[i] = make([]float64, 7)
		for j := range points[i] {
			points[i][j] = r.Float64() / 7
			mean[j] += points[i][j] / 20
		}
	}
	pairs, got := filter{1, 1, 18}.filtered(points)
	for j := range mean {
		mean[j] -= got[j]
	}
	if pairs != 400 || convex.Norm(mean) > 1e-15 {
		t.Errorf("%d pairs, off by %v", pairs, mean)
	}
}
