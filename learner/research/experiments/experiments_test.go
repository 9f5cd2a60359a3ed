package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

func random(seed uint64) *rand.Rand { return rand.New(sim.Entropy(seed, "experiments: test")) }

// The components equal those that gonum finds another way: by a singular value decomposition of the centred
// rows.
func TestPrincipalIsTheSingularValueDecomposition(t *testing.T) {
	const n, dim, k = 200, 6, 3
	draw := random(1)
	direct := mat.NewDense(n, dim, nil)
	var rows []convex.Example
	for i := range n {
		x := make([]float64, dim)
		common := draw.NormFloat64()
		for j := range x {
			x[j] = float64(j) + common*float64(j+1) + draw.NormFloat64()*float64(dim-j)
		}
		x[1] = 0 // a sparse row has no entry there
		direct.SetRow(i, x)
		rows = append(rows, convex.Example{Index: []int32{0, 2, 3, 4, 5}, Value: slices.Delete(slices.Clone(x), 1, 2)})
	}
	got, err := principal(rows, dim, k)
	if err != nil {
		t.Fatal(err)
	}
	var want stat.PC
	if !want.PrincipalComponents(direct, nil) {
		t.Fatal("no decomposition")
	}
	var vectors mat.Dense
	want.VectorsTo(&vectors)
	for i, v := range want.VarsTo(nil)[:k] {
		if math.Abs(got.variance[i]-v*(n-1)/n) > 1e-9*v {
			t.Errorf("component %d: variance %v, want %v", i, got.variance[i], v*(n-1)/n)
		}
		var cosine float64
		for j, a := range got.directions[i] {
			cosine += a * vectors.At(j, i)
		}
		if math.Abs(math.Abs(cosine)-1) > 1e-9 {
			t.Errorf("component %d: cosine %v with the other decomposition's", i, cosine)
		}
		var square float64
		for _, x := range rows {
			square += math.Pow(got.of(x)[i], 2) / n
		}
		if math.Abs(square-got.variance[i]) > 1e-9*square {
			t.Errorf("component %d: the rows' coordinates have variance %v, want %v", i, square, got.variance[i])
		}
	}
}

// Of ten digits, each has its rows in five silos, no row in two; the released script's silos have rows in several.
func TestLabelPairsShareNoRow(t *testing.T) {
	const each = 5 * 6
	var rows []convex.Example
	var labels []string
	for i := range 10 * each {
		digit := i % 10
		rows = append(rows, convex.Example{Value: []float64{float64(i)}, Label: float64(1 - 2*(digit%2))})
		labels = append(labels, strconv.Itoa(digit))
	}
	silos, err := silosOf(sim.SplitLabelPairs, 25, rows, labels)
	if err != nil {
		t.Fatal(err)
	}
	seen, pairs := map[int]int{}, map[[2]int]bool{}
	for _, silo := range silos {
		digits := map[int]int{}
		for _, x := range silo {
			seen[int(x.Value[0])]++
			digits[int(x.Value[0])%10]++
		}
		var pair [2]int
		for digit, n := range digits {
			if pair[digit%2] = digit; n != each/5 {
				t.Errorf("a silo has %d rows of %d: want %d", n, digit, each/5)
			}
		}
		if pairs[pair] = true; len(digits) != 2 {
			t.Errorf("a silo has %d digits: want an even and an odd one", len(digits))
		}
	}
	if len(seen) != 10*each || len(pairs) != 25 {
		t.Errorf("%d rows of %d in %d pairs: want all in 25", len(seen), 10*each, len(pairs))
	}
	for at, n := range seen {
		if n != 1 {
			t.Errorf("row %d is in silos %d times", at, n)
		}
	}
	distinct, drawn := map[float64]bool{}, 0
	for i, silo := range drawnTwice(silos) {
		for _, x := range silo {
			distinct[x.Value[0]] = true
			drawn++
			if digit := int(x.Value[0]) % 10; digit != int(silos[i][0].Value[0])%10 &&
				digit != int(silos[i][len(silos[i])-1].Value[0])%10 {
				t.Errorf("silo %d has digit %d", i, digit)
			}
		}
	}
	if drawn != 10*each || len(distinct) > 10*each/5 {
		t.Errorf("as released: %d rows, %d of them distinct: want %d and a fifth of them at most", drawn, len(distinct),
			10*each)
	}
}

// halves returns two silos of f = (w-x)^2/2, x in {0, 2} and {4, 6}.
func halves() problem {
	one := func(y ...float64) (out []convex.Example) {
		for _, y := range y {
			out = append(out, convex.Example{Value: []float64{1}, Label: y})
		}
		return out
	}
	return problem{loss: convex.Squared{}, features: 1, clip: 100, silos: [][]convex.Example{one(0, 2), one(4, 6)}}
}

// w = 0, 1.5, 2.25, 2.625 by steps of a half along the mean of all four.
func TestDescentTrace(t *testing.T) {
	p := halves()
	for last, want := range map[int]float64{1: 2.625, 2: (2.25 + 2.625) / 2} {
		answer, err := p.means(0, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := descent{dim: 1, rounds: 3, last: last, step: 0.5, reports: 2}.run(2, random(1), answer)
		if err != nil || math.Abs(got[0]-want) > 1e-12 {
			t.Errorf("mean of the last %d: %v, %v; want %v", last, got, err, want)
		}
	}
}

// An epoch of steps of a half from 0 ends at 1 or 0.5 in the first silo, at 4 or 3.5 ... in the second, as the
// order is; one step of a silo with one row is a step of descent.
func TestLocalStepsTrace(t *testing.T) {
	p := halves()
	var ends [2]map[float64]bool
	for silo := range ends {
		ends[silo] = map[float64]bool{}
		answer, moved := p.local(localSteps{size: 0.5}, random(2)), []float64{0}
		for range 40 {
			if err := answer(moved, []float64{0}, silo); err != nil {
				t.Fatal(err)
			}
			ends[silo][-moved[0]] = true
		}
	}
	for silo, want := range [][]float64{{1, 0.5}, {4, 3.5}} {
		if len(ends[silo]) != 2 || !ends[silo][want[0]] || !ends[silo][want[1]] {
			t.Errorf("silo %d ends at %v, want %v", silo, ends[silo], want)
		}
	}
	p.silos = [][]convex.Example{p.silos[0][1:], p.silos[1][1:]}
	local := p.local(localSteps{size: 0.5, steps: 1}, random(3))
	mean, err := p.means(0, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := descent{dim: 1, rounds: 4, last: 1, step: 1, reports: 2}.run(2, random(4), local)
	b, _ := descent{dim: 1, rounds: 4, last: 1, step: 0.5, reports: 2}.run(2, random(4), mean)
	if math.Abs(a[0]-b[0]) > 1e-12 {
		t.Errorf("local steps of one row end at %v, descent at %v", a, b)
	}
}

// What an epoch's noise rests on: in whatever order, one row replaced by another moves its end by at most 2 size
// clip, up to rounding, where steps are at most 2 over the smoothness; and by nearly as much where rows are such.
func TestEpochMovesByTwoStepsAtMost(t *testing.T) {
	for _, loss := range []convex.Loss{convex.Logistic{}, convex.Squared{}} {
		var worst float64
		for seed := range uint64(300) {
			draw := random(seed)
			row := func() convex.Example {
				x := convex.Example{Value: []float64{draw.NormFloat64(), draw.NormFloat64()}, Label: float64(2*draw.IntN(2) - 1)}
				convex.Clip(x.Value, 1)
				return x
			}
			p := problem{loss: loss, features: 2, clip: 0.1 + draw.Float64()}
			var rows []convex.Example
			for range 1 + draw.IntN(6) {
				rows = append(rows, row())
			}
			other := slices.Clone(rows)
			other[draw.IntN(len(rows))] = row()
			p.silos = [][]convex.Example{rows, other}
			size := 2 / p.loss.Smoothness(1) * (1 - 0.9*draw.Float64())
			at, a, b := []float64{draw.NormFloat64(), draw.NormFloat64()}, make([]float64, 2), make([]float64, 2)
			l := localSteps{size: size}
			if p.local(l, random(seed+1000))(a, at, 0) != nil || p.local(l, random(seed+1000))(b, at, 1) != nil {
				t.Fatal("local steps fail")
			}
			worst = max(worst, math.Hypot(a[0]-b[0], a[1]-b[1])/(2*size*p.clip))
		}
		if worst > 1+1e-9 || worst < 0.5 {
			t.Errorf("%s: an epoch moved by %v of 2 size clip: want at most 1, and more than a half of it once", loss.Name(),
				worst)
		}
	}
}

// The reports of the system are the mean gradient, with the noise that the accountant says.
func TestReportsAreTheMeanGradient(t *testing.T) {
	p := halves()
	p.clip = 8
	m, err := accounting.Calibrate(accounting.Request{Users: 1, Dim: 1, Epsilon: 1, Delta: 1e-3, Trust: accounting.Local,
		HonestFraction: accounting.One,
		Rounds:         4, Units: 2})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := p.reports(m, sim.Entropy(5, "experiments: test"))
	if err != nil {
		t.Fatal(err)
	}
	const draws = 4000
	var all []float64
	for range draws {
		one := []float64{0}
		if err := answer(one, []float64{1}, 1); err != nil {
			t.Fatal(err)
		}
		all = append(all, one[0])
	}
	mean, sd := stat.MeanStdDev(all, nil)
	// Normal to within the lattice: 6 standard errors of a mean and of a deviation, 2e-9 each.
	if want := p.clip * m.TotalStd(); math.Abs(mean+4) > 6*want/math.Sqrt(draws) ||
		math.Abs(sd/want-1) > 6/math.Sqrt(2*draws) {
		t.Errorf("mean %v, standard deviation %v: want -4 and %v", mean, sd, want)
	}
}

// On silos that differ the order is the paper's: one report of all rows a round, with noise that meets epsilon,
// ends with less loss than the paper's local steps with theirs, both with the best of the sizes tried.
func TestOrderOfMethods(t *testing.T) {
	const rounds, n, dim, trials = 20, 100, 3, 10
	draw := random(6)
	p := problem{loss: convex.Logistic{}, features: dim, clip: math.Sqrt(dim)}
	for range 8 {
		centre := draw.NormFloat64()
		var rows []convex.Example
		for range n {
			x := convex.Example{Value: []float64{1, 0, 0}, Label: 1}
			for j := 1; j < dim; j++ {
				x.Value[j] = max(-1, min(1, draw.NormFloat64()+centre))
			}
			if draw.Float64() > 1/(1+math.Exp(-3*x.Value[1]+2*x.Value[2])) {
				x.Label = -1
			}
			rows = append(rows, x)
		}
		p.silos = append(p.silos, rows)
	}
	all := slices.Concat(p.silos...)
	s := &setting{study: study{rounds: rounds, epsilons: []float64{0.3, 3}}, reports: 8, silos: p.silos, least: n,
		mechanisms: map[float64]accounting.Plan{}}
	s.job.Problem.Dim = dim
	best := func(sizes bounds, step float64, answer func(size float64, seed uint64) (reporter, error)) float64 {
		least := math.Inf(1)
		for _, size := range sizes.sizes(6) {
			var sum float64
			for seed := range uint64(trials) {
				d := descent{dim: dim, rounds: rounds, last: 8, step: step, reports: 8}
				if step == 0 {
					d.step = size
				}
				one, err := answer(size, seed)
				if err != nil {
					t.Fatal(err)
				}
				theta, err := d.run(8, random(seed+100), one)
				if err != nil {
					t.Fatal(err)
				}
				sum += sim.MeanLoss(p.loss, theta, all) / trials
			}
			least = min(least, sum)
		}
		return least
	}
	for _, epsilon := range s.epsilons {
		m, err := s.mechanism(epsilon)
		if err != nil {
			t.Fatal(err)
		}
		ours := best(bounds{-3, 2}, 0, func(_ float64, seed uint64) (reporter, error) {
			return p.reports(m, sim.Entropy(seed, "experiments: test"))
		})
		local := best(bounds{-8, -1}, 1, func(size float64, seed uint64) (reporter, error) {
			k := s.batch()
			return p.local(localSteps{size: size, steps: k, noise: s.federation(epsilon, p.clip).LocalNoise(rounds, float64(k))},
				random(seed+200)), nil
		})
		if base := math.Ln2; !(ours < local) || !(local < base) {
			t.Errorf(
				"epsilon %v: loss %v with reports, %v with the paper's local steps, %v without learning: want them in this order",
				epsilon, ours, local, base)
		}
	}
}

// TestEndsOfWhatWasTried: a choice at an end of a grid says so, and one within, or of a single value, does not.
func TestEndsOfWhatWasTried(t *testing.T) {
	all := []choice{{1, 0.1}, {1, 0.2}, {1, 0.3}}
	for c, want := range map[choice]string{{1, 0.1}: "smallest step", {1, 0.2}: "", {1, 0.3}: "largest step"} {
		if got := atEnds(all, c); got != want {
			t.Errorf("%v: %q, want %q", c, got, want)
		}
	}
	if got := atEnds(append(all, choice{2, 0.2}), choice{1, 0.3}); got != "smallest L, largest step" {
		t.Errorf("%q", got)
	}
}

// TestBarsOfTheMean: of 5 trials with a standard deviation of 1, 2.132/sqrt(5), by a table of Student's law.
func TestBarsOfTheMean(t *testing.T) {
	if got := (cell{sd: 1}).bar(5); math.Abs(got-2.1318/math.Sqrt(5)) > 1e-4 {
		t.Errorf("half a bar of %v", got)
	}
}
