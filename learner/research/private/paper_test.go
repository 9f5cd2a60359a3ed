package private

import (
	"math"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/research/resque"
)

func close(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Theorem 3 with C = 1 at a million records.
func TestPaperParameters(t *testing.T) {
	p := newPaper(1e6, 10, 1, 1e-6)
	for _, c := range []struct {
		what      string
		got, want float64
	}{{"error", p.Error, .024586}, {"kappa", p.Kappa, 40.674}, {"rho", p.Rho, .0077746}, {"r", p.R, 1.0183e-5}, {"K", p.K,
		2128.5}, {"lambda", p.Lambda, 1.5295e6}, {"order", p.Order, 58.035},
		{"beta", p.Beta, .0097369}, {"iterations", p.Iterations, 7887.4}, {"T1", p.T1, 20.852}, {"T2", p.T2, 148.95},
		{"T3", p.T3, 287.10}, {"noise", p.Noise, 8.0506e-7}, {"probes", p.Probes, 15.2005}, {"copies", p.Copies, 253.57}} {
		close(t, c.what, c.got, c.want, 1e-4)
	}
	if newPaper(1e4, 10, 1, 1e-6).Error < 1 {
		t.Error("ten thousand records: want a vacuous error")
	}
}

// The paper's (24 p ||x-x'||/rho)^p beside the sharpened bound.
func TestPaperMoments(t *testing.T) {
	for _, c := range []struct {
		p           int
		apart, s    float64
		ours, paper float64
	}{
		{2, .1, .2, .0108244, 23.04},
		{2, math.Sqrt(.5), .5, .802516, 1152},
		{4, math.Sqrt(.125), .25, .152124, 1.327e6},
		{4, .5, .25, .608496, 5.31e6},
	} {
		close(t, "ours", math.Pow(c.apart, float64(c.p))*math.Exp(resque.LogMoment(c.p, c.s)), c.ours, 1e-5)
		close(t, "paper", math.Pow(24*float64(c.p)*c.apart, float64(c.p)), c.paper, 1e-3)
	}
}

func TestPhases(t *testing.T) {
	of := phases(100, 1)
	var steps []int
	for i, ph := range of {
		steps = append(steps, ph.steps)
		close(t, "step", ph.e, math.Pow(.25, float64(i+1)), 1e-12)
	}
	if !slices.Equal(steps, []int{32, 16, 8, 4, 2, 1}) {
		t.Errorf("steps %v", steps)
	}
	close(t, "Lemma 4", 16*(math.Sqrt(10)/(.1*1024)+1/math.Sqrt(1024.)), .9941, 1e-4)
}

func TestClipBias(t *testing.T) {
	for _, c := range [][3]float64{{.05, 1.25, 4.650e-8}, {.1, 1.5, 6.851e-7}, {.2, 2, 1.886e-5}, {1, 4, .06922}} {
		close(t, "clip bias", clipBias(c[0], c[1]), c[2], 1e-3)
	}
}

// Lemma 6 of the paper: a sequence without the record, in which a random set of a random number of positions
// becomes it, is uniform on those that have it.
func TestCouplingIsUniform(t *testing.T) {
	const m, n, most = 3, 4, 2
	prob := map[[m]int]float64{}
	choose := []float64{1, 3, 3, 1}
	var total float64
	for a := 1; a <= most; a++ {
		total += choose[a] * math.Pow(n-1, float64(m-a))
	}
	for code := range 27 {
		without := [m]int{1 + code%3, 1 + code/3%3, 1 + code/9}
		for set := 1; set < 1<<m; set++ {
			with, a := without, 0
			for j := range m {
				if set&(1<<j) != 0 {
					with[j] = 0
					a++
				}
			}
			if a <= most {
				prob[with] += 1. / 27 * choose[a] * math.Pow(n-1, float64(m-a)) / total / choose[a]
			}
		}
	}
	if len(prob) != 36 {
		t.Fatalf("%d sequences, want 36", len(prob))
	}
	for _, p := range prob {
		close(t, "chance", p, 1./36, 1e-12)
	}
}
