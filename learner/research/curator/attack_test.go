package curator

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// halted is the statistic that an attacker uses for a run that halted.
const halted = -1e9

// attack looks for an event that refutes a claim: half of the runs choose thresholds of the scalars, the other half
// bounds what they show, each with an error of at most 1e-9 in 2 orders, 2 sides and 12 epsilons. It returns the
// largest delta that was shown above the claim, and the largest share of a claimed epsilon that was shown at its
// delta.
func attack(runs int, claim func(eps float64) float64, to float64, run func(neighbour bool) float64) (above,
	share float64) {
	var all [2][2][]float64 // by neighbour and half
	for i := range runs {
		for k := range 2 {
			all[k][i%2] = append(all[k][i%2], run(k == 1))
		}
	}
	const alpha = 1e-9 / 48
	above = -1
	for _, side := range []float64{1, -1} {
		for order := range 2 {
			var half [2][2][]float64
			for k := range 2 {
				for h := range 2 {
					for _, v := range all[k^order][h] {
						half[k][h] = append(half[k][h], side*v)
					}
					slices.Sort(half[k][h])
				}
			}
			count := func(x []float64, at float64) int { return len(x) - sort.SearchFloat64s(x, at) }
			for i := range 12 {
				eps := to * float64(i) / 11
				best, at := -1., 0.
				for j, v := range half[0][0] {
					p, q := float64(len(half[0][0])-j), float64(count(half[1][0], v))
					if gain := p - math.Exp(eps)*q; (j == 0 || v != half[0][0][j-1]) && gain > best {
						best, at = gain, v
					}
				}
				n := len(half[0][1])
				p := low(count(half[0][1], at), n, alpha)
				q := 1 - low(n-count(half[1][1], at), n, alpha)
				above = max(above, p-math.Exp(eps)*q-claim(eps))
				if d := claim(eps); eps > 0 && p > d {
					share = max(share, math.Log((p-d)/q)/eps)
				}
			}
		}
	}
	return above, share
}

// low returns Chernoff's lower bound on a probability of which so many of n were hits: the p below the rate
// at which n times the relative entropy is ln(1/alpha).
func low(hits, n int, alpha float64) float64 {
	rate := float64(hits) / float64(n)
	a, b := 0., rate
	for range 60 {
		p := (a + b) / 2
		entropy := 0.
		if hits > 0 {
			entropy += rate * math.Log(rate/p)
		}
		if hits < n {
			entropy += (1 - rate) * math.Log((1-rate)/(1-p))
		}
		if float64(n)*entropy > math.Log(1/alpha) {
			a = p
		} else {
			b = p
		}
	}
	return a
}

// worstPair searches points on a line and one replacement that move the filtered mean far, where both pass their
// test often.
func worstPair(f filter, c int, least int64) (a, b [][]float64, apart float64) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 20000 {
		var sites []float64
		for range 1 + r.IntN(4) {
			sites = append(sites, float64(r.IntN(33)-16)/8*f.near)
		}
		x := make([]float64, c)
		for i := range x {
			x[i] = sites[min(r.IntN(len(sites)+3), len(sites)-1)]
		}
		y := slices.Clone(x)
		y[0] = float64(r.IntN(65)-32) / 8 * f.near
		s, m := f.filtered(line(x...))
		s2, m2 := f.filtered(line(y...))
		if d := math.Abs(m[0] - m2[0]); int64(min(s, s2)) >= least && d > apart {
			a, b, apart = line(x...), line(y...), d
		}
	}
	return a, b, apart
}

// TestAttackOnGroups: the test and release of eight groups, at a replacement that moves the filtered mean far and
// at one that moves the score by all that it can, does not show more than is claimed; with half of the noise of the
// release, or half of that of the test, it does.
func TestAttackOnGroups(t *testing.T) {
	const groups, ball = 8, 4.
	b := accounting.Budget{Epsilon: 8, Delta: 0.05}
	c, err := calibrateGroups(groups, 1, b, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	ratio := c.filter.sensitivity(groups, ball) / (2 * ball)
	var curve accounting.Curve
	enough := func(l lattice) bool {
		curve, err = accounting.Compose(l.mechanism(ratio, 1))
		return err == nil && c.test.Profile(b.Epsilon, curve) <= b.Delta
	}
	l := lattice{1, int(4 / ratio), 2} // coarse: noise of few coins is drawn fast
	for !enough(l) {
		l.trials += 2
	}
	claim := func(eps float64) float64 { return c.test.Profile(eps, curve) }
	far, near, apart := worstPair(c.filter, groups, c.test.Threshold)
	t.Logf("claimed: epsilon %v, of it %v for the test, %+v; means %v of S_U apart", b.Epsilon, c.test.Epsilon(), l,
		apart/c.filter.sensitivity(groups, 0))
	same, moved := line(times(groups, 0)...), line(append([]float64{9}, times(groups-1, 0)...)...)
	entropy := rand.NewPCG(1, 2)
	with := func(c constants, l lattice, a, b [][]float64) func(bool) float64 {
		mean := make([]float64, 1)
		return func(neighbour bool) float64 {
			points := a
			if neighbour {
				points = b
			}
			if passed, err := c.testAndRelease(mean, points, 1, l, ball, entropy); err != nil {
				t.Fatal(err)
			} else if !passed {
				return halted
			}
			return mean[0]
		}
	}
	runs := 20000
	if longtest.On() {
		runs = 1000000
	}
	for name, pair := range map[string][2][][]float64{"mean": {far, near}, "score": {same, moved}} {
		above, share := attack(runs, claim, b.Epsilon, with(c, l, pair[0], pair[1]))
		t.Logf("%s: delta %.3f below the claim, %.2f of epsilon shown", name, -above, share)
		if above > 0 {
			t.Errorf("%s: the claim is refuted by %v", name, above)
		}
	}
	// The release alone, calibrated for how far apart these means are: what is added is what was planned.
	open := c
	open.test.Threshold = 0
	own, fine := apart/(2*ball), lattice{1, int(8 * ball / apart), 128}
	if curve, err = accounting.Compose(fine.mechanism(own, 1)); err != nil {
		t.Fatal(err)
	}
	above, share := attack(runs, curve.Delta, 3, with(open, fine, far, near))
	t.Logf("release: delta %.3f below the claim, %.2f of epsilon shown", -above, share)
	if above > 0 {
		t.Errorf("the release's claim is refuted by %v", above)
	}
	quiet := fine
	quiet.trials /= 4
	if above, _ := attack(runs, curve.Delta, 3, with(open, quiet, far, near)); above <= 0 {
		t.Errorf("half of the release's noise was not seen: %v", above)
	}
	sharp := c
	if sharp.test.Noise, err = randomizer.LaplaceOfRate(2 * c.test.Noise.Rate()); err != nil {
		t.Fatal(err)
	}
	sharp.test.Threshold = int64(groups*groups) - 5 // where half of the noise shows
	if above, _ := attack(runs, func(eps float64) float64 {
		test := c.test
		test.Threshold = sharp.test.Threshold
		return max(math.Exp(-60), math.Max(0, -math.Expm1(eps-test.Epsilon())))
	}, c.test.Epsilon()+0.1, with(sharp, l, same, moved)); above <= 0 {
		t.Errorf("half of the test's noise was not seen: %v", above)
	}
}

// TestAttackOnFilteredSteps: four tests and releases of Mode F at such pairs; the releases alone, of which half of the
// noise is seen; and the tests alone, of which an eighth is.
func TestAttackOnFilteredSteps(t *testing.T) {
	const people, steps, ball = 20, 4, 4.
	b := accounting.Budget{Epsilon: 10, Delta: 0.1}
	c, err := calibrateThreshold(people, steps, b, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	ratio := c.filter.sensitivity(people, ball) / (2 * ball)
	l := lattice{1, int(4 / ratio), 2}
	var curve accounting.Curve
	for {
		if curve, err = accounting.Compose(l.mechanism(ratio, steps)); err != nil {
			t.Fatal(err)
		}
		if c.test.Delta(b.Epsilon, curve) <= b.Delta {
			break
		}
		l.trials += 2
	}
	far, near, apart := worstPair(c.filter, people, c.test.Threshold)
	t.Logf("claimed: epsilon %v, of it %v for the tests, %+v; means %v of S_U apart", b.Epsilon, c.test.Epsilon(), l,
		apart/c.filter.sensitivity(people, 0))
	same, moved := line(times(people, 0)...), line(append([]float64{9}, times(people-1, 0)...)...)
	entropy := rand.NewPCG(3, 4)
	with := func(c threshold, l lattice, a, b [][]float64) func(bool) float64 {
		noise, err := l.open(ball, entropy)
		if err != nil {
			t.Fatal(err)
		}
		mean := make([]float64, 1)
		return func(neighbour bool) float64 {
			points, sum := a, 0.
			if neighbour {
				points = b
			}
			tests := c.begin(entropy)
			for i := range steps {
				passed, err := tests.testAndRelease(mean, points, c.filter, noise)
				if err != nil {
					t.Fatal(err)
				}
				if !passed {
					return halted * float64(steps-i)
				}
				sum += mean[0]
			}
			return sum
		}
	}
	runs := 3000
	if longtest.On() {
		runs = 300000
	}
	for name, pair := range map[string][2][][]float64{"mean": {far, near}, "score": {same, moved}} {
		above, share := attack(runs, func(eps float64) float64 { return c.test.Delta(eps, curve) }, b.Epsilon,
			with(c, l, pair[0], pair[1]))
		t.Logf("%s: delta %.3f below the claim, %.2f of epsilon shown", name, -above, share)
		if above > 0 {
			t.Errorf("%s: the claim is refuted by %v", name, above)
		}
	}
	// The releases alone, calibrated for how far apart these means are.
	open := c
	open.test.Threshold = -people * people
	fine := lattice{1, int(8 * ball / apart), 512}
	if curve, err = accounting.Compose(fine.mechanism(apart/(2*ball), steps)); err != nil {
		t.Fatal(err)
	}
	above, share := attack(5*runs, curve.Delta, 3, with(open, fine, far, near))
	t.Logf("releases: delta %.3f below the claim, %.2f of epsilon shown", -above, share)
	if above > 0 {
		t.Errorf("the releases' claim is refuted by %v", above)
	}
	quiet := fine
	quiet.trials /= 4
	if above, _ := attack(5*runs, curve.Delta, 3, with(open, quiet, far, near)); above <= 0 {
		t.Errorf("half of the releases' noise was not seen: %v", above)
	}
	// All tests together, where nothing else tells: means that are the same, and a score that moves by all that it can.
	flags := func(c threshold) func(bool) float64 {
		full, less := people*people, people*people-scoreSensitivity(people)
		return func(neighbour bool) float64 {
			tests, pairs, failed := c.begin(entropy), full, steps
			if neighbour {
				pairs = less
			}
			for i := steps - 1; i >= 0; i-- {
				if !tests.passes(pairs) {
					failed = steps - 1 - i
					break
				}
			}
			return float64(failed)
		}
	}
	claim := func(eps float64) float64 { return max(0, -math.Expm1(eps-c.test.Epsilon())) }
	sharp := c
	sharp.test.Threshold = people*people - people
	for _, noise := range []*randomizer.DiscreteLaplace{&sharp.test.Once, &sharp.test.Each} {
		if *noise, err = randomizer.LaplaceOfRate(8 * noise.Rate()); err != nil {
			t.Fatal(err)
		}
	}
	if above, _ := attack(40*runs, claim, c.test.Epsilon(), flags(sharp)); above <= 0 {
		t.Errorf("an eighth of the tests' noise was not seen: %v", above)
	}
	if above, share := attack(40*runs, claim, c.test.Epsilon(), flags(c)); above > 0 {
		t.Errorf("tests: the claim is refuted by %v", above)
	} else {
		t.Logf("tests: delta %.3f below the claim, %.2f of epsilon shown", -above, share)
	}
}
