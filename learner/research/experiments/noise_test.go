package main

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/isrl"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// profile returns delta at epsilon of a Gaussian that moves by mu of its standard deviations, in closed form.
func profile(mu, epsilon float64) float64 {
	tail := func(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }
	return tail(epsilon/mu-mu/2) - math.Exp(epsilon)*tail(epsilon/mu+mu/2)
}

// TestReportsOfAllRoundsMeetEpsilon checks the noise against one Gaussian: a row moves a mean over n by 2L/n,
// in each of R rounds, and so all reports of a silo together by sqrt(R) times that; the lattice's noise
// nearly equals a Gaussian's.
func TestReportsOfAllRoundsMeetEpsilon(t *testing.T) {
	s := &setting{study: study{rounds: 35}, least: 1238, mechanisms: map[float64]accounting.Plan{}}
	s.job.Problem.Dim = 50
	for _, epsilon := range []float64{0.75, 3} {
		m, err := s.mechanism(epsilon)
		if err != nil {
			t.Fatal(err)
		}
		delta := profile(2*math.Sqrt(35)/1238/m.TotalStd(), epsilon)
		t.Logf("epsilon %v: delta %.3g of %.3g", epsilon, delta, s.delta())
		if !(delta <= s.delta()) || !(delta >= s.delta()/2) {
			t.Errorf("epsilon %v: delta %v of 35 rounds, want at most %v, and no less than half", epsilon, delta, s.delta())
		}
	}
}

// TestEpochsOfAllRoundsMeetEpsilon: where one row is replaced by another that pulls the other way, the end of an
// epoch moves by as much as its noise is for, in each of R rounds.
func TestEpochsOfAllRoundsMeetEpsilon(t *testing.T) {
	const size, clip, rounds = 0.3, 0.2, 7
	b := accounting.Budget{Epsilon: 2, Delta: 1e-5}
	noise, err := epochNoise(size, clip, rounds, b)
	if err != nil {
		t.Fatal(err)
	}
	p := problem{loss: convex.Absolute{}, features: 1, clip: clip, silos: [][]convex.Example{
		{{Value: []float64{1}, Label: 9}, {Value: []float64{0}}}, {{Value: []float64{1}, Label: -9}, {Value: []float64{0}}}}}
	answer, ends := p.local(localSteps{size: size}, random(1)), [2][]float64{{0}, {0}}
	for silo := range ends {
		if err := answer(ends[silo], []float64{0}, silo); err != nil {
			t.Fatal(err)
		}
	}
	delta := profile(math.Abs(ends[0][0]-ends[1][0])*math.Sqrt(rounds)/noise, b.Epsilon)
	if !(delta <= b.Delta*(1+1e-6)) || !(delta >= b.Delta*(1-1e-6)) {
		t.Errorf("delta %v of %d epochs that end at %v and %v with noise %v, want %v", delta, rounds, ends[0], ends[1], noise,
			b.Delta)
	}
}

// TestPaperNoiseIsThePapers runs contenders on rows that pull nowhere: all that moves the model is noise. In
// four rounds of two silos of 100 rows, at epsilon 2, L = 3 and delta = 1e-4, sigma^2 = 8 L^2 R
// ln(1/delta)/(n^2 epsilon^2) is 8 * 9 * 4 * 9.21034/40000 = 0.0663145, and K = 70 belongs to epsilon 8: 100
// sqrt(8)/(2 sqrt(4)), rounded down.
func TestPaperNoiseIsThePapers(t *testing.T) {
	const dim, variance, step, k = 10000, 0.06631446, 0.5, 70
	spec, err := task.Parse([]byte(`{version: 1, name: still, events: {format: libsvm}, features: {vector: {dimension: 10000, min: -1, max: 1}},
label: {positive: ["1"], negative: ["0"]}, norm_bound: 10, model: {loss: logistic}, privacy: {epsilon: 1, delta: 1e-6}, schedule: {users: 100}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &setting{study: study{rounds: 4, last: 1, epsilons: []float64{8, 2}}, reports: 2, least: 100,
		silos: make([][]convex.Example, 2)}
	if s.job.Features, err = spec.Compile(); err != nil {
		t.Fatal(err)
	}
	s.job.Loss, s.job.Problem.Dim = convex.Logistic{}, dim
	for i := range s.silos {
		for range s.least {
			s.silos[i] = append(s.silos[i], convex.Example{Value: make([]float64, dim), Label: 1})
		}
	}
	for _, c := range []struct {
		name     string
		released func(attempt) (reporter, error)
		want     float64 // the variance of a round's mean over silos, in steps
	}{
		{paperMB, nil, variance / 2},
		{releasedMB, clippedMeans, variance / 2},
		{releasedMB, sums, variance / k / k},    // once for all silos, of a sum that is divided by K
		{paperLocal, nil, k * variance * k / 2}, // K steps, each with K times the variance
	} {
		s.released = c.released
		for _, m := range contenders {
			if m.name != c.name {
				continue
			}
			theta, err := m.run(s.attempt(m, trial{seed: 1, silos: s.silos}, 2, choice{clip: 3, step: step}))
			if err != nil {
				t.Fatal(err)
			}
			dptest.Variance(t, c.name, theta, 0, 4*step*step*c.want, dptest.Alpha)
		}
	}
}

// TestBatchesMeetEpsilon: the noise of batches of K of n rows in all rounds is within the budget by the accountant's upper
// bound, and not by much; that of all rows in each report is smaller.
func TestBatchesMeetEpsilon(t *testing.T) {
	s := &setting{study: study{rounds: 20, epsilons: []float64{0.5, 2}}, reports: 3, least: 200,
		silos: make([][]convex.Example, 3)}
	for _, epsilon := range s.epsilons {
		a := attempt{setting: s, epsilon: epsilon, choice: choice{clip: 3}}
		noise, err := a.batchNoise()
		if err != nil {
			t.Fatal(err)
		}
		of := isrl.Sampled{Records: 200, Batch: uint64(a.batch()), Rounds: 20, Noise: noise / 3}
		got, err := of.Epsilon(s.delta())
		if err != nil || of.Batch >= 200 || !(got.Upper <= epsilon*(1+1e-6) && got.Upper > 0.99*epsilon) {
			t.Errorf("epsilon %v: %+v of batches of %d with noise %v, %v", epsilon, got, of.Batch, noise, err)
		}
		of.Batch = 200
		if all, err := of.LeastNoise(accounting.Budget{Epsilon: epsilon, Delta: s.delta()}); err != nil || !(3*all < noise) {
			t.Errorf("epsilon %v: all rows need %v, batches %v; %v", epsilon, 3*all, noise, err)
		}
	}
}

// TestBatchIsOfTheLargestEpsilon checks K = floor(n sqrt(epsilon)/(2 sqrt(R))) of the paper's MNIST silos,
// whatever the order of epsilons is.
func TestBatchIsOfTheLargestEpsilon(t *testing.T) {
	for _, epsilons := range [][]float64{{0.75, 1.5, 3, 6, 12, 18}, {18, 0.75}, {3, 18, 6}} {
		s := &setting{study: study{rounds: 35, epsilons: epsilons}, reports: 25, silos: make([][]convex.Example, 25),
			least: 1238}
		if k := s.batch(); k != 443 {
			t.Errorf("K = %d of epsilons %v, want 443", k, epsilons)
		}
	}
}

// TestSilosOfARoundAreDrawnAnew: in each round two of five silos answer, all pairs alike likely.
func TestSilosOfARoundAreDrawnAnew(t *testing.T) {
	const rounds = 2000
	var asked []int
	_, err := descent{dim: 1, rounds: rounds, last: 1, reports: 2}.run(5, random(8), func(_, _ []float64, silo int) error {
		asked = append(asked, silo)
		return nil
	})
	if err != nil || len(asked) != 2*rounds {
		t.Fatalf("%d answers in %d rounds: %v", len(asked), rounds, err)
	}
	pairs := make([]uint64, 25)
	for r := range rounds {
		a, b := asked[2*r], asked[2*r+1]
		if a == b {
			t.Fatalf("round %d: silo %d answers twice", r, a)
		}
		pairs[5*min(a, b)+max(a, b)]++
	}
	var counts []uint64
	var want []float64
	for i := range 5 {
		for j := range i {
			counts, want = append(counts, pairs[5*j+i]), append(want, 0.1)
		}
	}
	dptest.ChiSquare(t, "pairs of silos", counts, want, dptest.Alpha)
}
