package curator

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestDeletionByBruteForce holds scores against their definition, and neighbours against what is charged: scores at
// most one apart, values at most (s + s' + 2) Delta; the function is the mean of numbers, of few people, by
// exhaustion of the definition.
func TestDeletionByBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	mean := func(x []float64) func(uint) []float64 {
		return func(without uint) []float64 {
			var sum, n float64
			for i, v := range x {
				if without&(1<<i) == 0 {
					sum, n = sum+v, n+1
				}
			}
			return []float64{sum / n}
		}
	}
	seen := map[int]int{}
	var closest float64
	for range 400 {
		most := 1 + rng.IntN(2) // Rmax
		level := 2 * most
		n := level + 2 + rng.IntN(9-level-1)
		delta := math.Exp(2*rng.Float64() - 2)
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.Float64()
			if rng.IntN(4) == 0 {
				x[i] += 4 * rng.NormFloat64()
			}
		}
		f := mean(x)
		s, set := newStability(n, level, f).score(most, delta)
		if want, first := bySets(n, level, most, delta, f); s != want || set != first {
			t.Fatalf("score %d without %b, by definition %d without %b", s, set, want, first)
		}
		seen[s]++
		y := append([]float64(nil), x...)
		y[rng.IntN(n)] = 5 * rng.NormFloat64()
		h := mean(y)
		s2, set2 := newStability(n, level, h).score(most, delta)
		if s-s2 > 1 || s2-s > 1 {
			t.Errorf("scores %d and %d of neighbours", s, s2)
		}
		if s <= most && s2 <= most {
			d := math.Abs(f(set)[0]-h(set2)[0]) / (float64(s+s2+2) * delta)
			if !(d <= 1) {
				t.Errorf("scores %d, %d: %v of what is charged", s, s2, d)
			}
			closest = max(closest, d)
		}
	}
	t.Logf("scores %v, closest %.3f of the bound", seen, closest)
	if len(seen) < 3 {
		t.Errorf("scores %v: the test is weak", seen)
	}
}

// bySets follows the definition: the smallest S, of several the first in lexicographic order, without whom no
// set of up to level - |S| others has a further person who moves the value by more than delta.
func bySets(n, level, most int, delta float64, f func(uint) []float64) (int, uint) {
	stable := func(s uint) bool {
		for t := range uint(1) << n {
			if t&s != 0 || bits.OnesCount(t) > level-bits.OnesCount(s) {
				continue
			}
			for i := range n {
				if (s|t)&(1<<i) == 0 && math.Abs(f(s | t)[0]-f(s | t | 1<<i)[0]) > delta {
					return false
				}
			}
		}
		return true
	}
	var found uint
	var search func(s uint, from, size int) bool // sets of so many more, in lexicographic order
	search = func(s uint, from, size int) bool {
		if size == 0 {
			found = s
			return stable(s)
		}
		for i := from; i < n; i++ {
			if search(s|1<<i, i+1, size-1) {
				return true
			}
		}
		return false
	}
	for size := 0; size <= most; size++ {
		if search(0, 0, size) {
			return size, found
		}
	}
	return most + 1, 0
}

// TestDeletionIsReleasedByItsScore releases iff the score of the definition, of sets of up to 4 kappa people, is at
// most the deletions that are drawn, which are kappa here but with the probability e^-60.
func TestDeletionIsReleasedByItsScore(t *testing.T) {
	const kappa = 1
	rng := rand.New(rand.NewPCG(23, 24))
	released, shallow := 0, 0
	for range 60 {
		p := public(7, 4, 1, 8)
		p.Set = convex.Ball{R: 1}
		s, err := newSolver(p, 4, p.People)
		if err != nil {
			t.Fatal(err)
		}
		d := &deletion{solver: s, lambda: 4, sensitivity: 0.01 + 0.03*rng.Float64()}
		d.scored = scored{deletions: lawOf(t, 60, kappa), radius: s.ball(), lattice: lattice{1, 1 << 20, 2}}
		people := make([]Person, p.People)
		for i := range people {
			people[i] = Person{{Value: []float64{rng.Float64()}, Label: float64(2*rng.IntN(2) - 1)}}
		}
		table, err := newTable(p, convex.Logistic{}, people)
		if err != nil {
			t.Fatal(err)
		}
		all := numbers([2]int{0, p.People})
		known := map[uint][]float64{}
		value := func(without uint) []float64 {
			x, ok := known[without]
			if !ok {
				keep := make([]bool, p.People)
				for i := range keep {
					keep[i] = without&(1<<i) == 0
				}
				if x, err = s.minimiser(t.Context(), table, p.start(), all, keep); err != nil {
					t.Fatal(err)
				}
				known[without] = x
			}
			return x
		}
		score, _ := bySets(p.People, 4*kappa, 2*kappa, d.sensitivity, value)
		if half, _ := bySets(p.People, 2*kappa, 2*kappa, d.sensitivity, value); half <= kappa && score > kappa {
			shallow++
		}
		_, ok, err := d.release(t.Context(), table, p.start(), all, rand.NewPCG(1, 2))
		if err != nil || ok != (score <= kappa) {
			t.Errorf("score %d of at most %d: released %v, %v", score, kappa, ok, err)
		}
		if ok {
			released++
		}
	}
	t.Logf("%d released; in %d sets of half as many people would have said otherwise", released, shallow)
	if released < 5 || released > 55 || shallow < 3 {
		t.Errorf("%d released, %d by half of the level: the test is weak", released, shallow)
	}
}

// TestDeletionIsChargedByItsScores: what is released of neighbours with scores s and t is (s + t + 2) sensitivities
// apart, each of s and t deletions and the one that takes the person in whom they differ from either.
func TestDeletionIsChargedByItsScores(t *testing.T) {
	p := public(7, 4, 1, 20)
	p.Budget.Delta = 1e-2
	d, err := newDeletion(p, p.Budget, 4, p.People, lawOf(t, 8, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]float64{{0, 0, 2}, {0, 1, 3}, {2, 1, 5}, {2, 2, 6}} {
		near(t, "move", d.ratio(int(c[0]), int(c[1]))*2*d.radius, c[2]*d.sensitivity, 1e-5)
	}
}

func TestDeletionLearnsOfFew(t *testing.T) {
	p := public(8, 1<<20, 1, 20)
	p.Budget.Delta = 1e-3
	m, _ := Of("deletion")
	if least := m.Least(p); least > 8 || least < 6 {
		t.Fatalf("least %d", least)
	}
	plan, err := m.Plan(p)
	if err != nil {
		t.Fatal(err)
	}
	people := make([]Person, 8)
	for i := range people {
		people[i] = Person{{Value: []float64{1}, Label: 1}}
	}
	r, err := plan.Fit(t.Context(), convex.Logistic{}, people, rand.NewPCG(1, 2))
	t.Logf("%+v %v, noise %v, %v", r, err, plan.NoiseStd, plan.Notes)
	if err != nil || r.Halted || !(r.Model[0] > 0) {
		t.Errorf("%+v, %v", r, err)
	}
	p.People = 15
	if _, err := m.Plan(p); err == nil {
		t.Error("15 people: no refusal")
	}
	p.People = 3
	var few *TooFewError
	if _, err := m.Plan(p); !errors.As(err, &few) || few.Least != m.Least(p) {
		t.Errorf("3 people: %v", err)
	}
	p.Budget.Epsilon, p.Budget.Delta = 1, 1e-6
	if _, err := m.Plan(p); !errors.As(err, &few) || few.Least <= mostDeletable ||
		!strings.Contains(err.Error(), "no number will do") {
		t.Errorf("more people are needed than there may be: %v", err)
	}
}

// TestPaperDeletions compares with figures of the paper's constants, computed independently: for 1000 people
// of 16 rows, G = mu = 1, b = 1e-3, epsilon 1, delta 1e-6.
func TestPaperDeletions(t *testing.T) {
	p := public(1000, 16, 1, 1)
	kappa, noise := paperDeletions(p.Budget)
	sensitivity := deletionSensitivity(p, 16, kappa)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"kappa", float64(kappa), 32},
		{"sensitivity", sensitivity, 0.0430062926},
		{"sigma", noise * sensitivity, 123.790469},
		{"certified sensitivity", float64(8*kappa+1) * swaps(1, 16, math.Log(1000), 1e-3) / float64(1000-4*kappa-1),
			1.37090844},
	} {
		if math.Abs(c.got/c.want-1) > 1e-6 {
			t.Errorf("%s %v, want %v", c.name, c.got, c.want)
		}
	}
}
