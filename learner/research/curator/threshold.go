package curator

import (
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A threshold holds the numbers of a sequence of tests of the same K people, each followed by the release of
// a filtered mean, up to the first test that fails (Lowy, Liu and Asi 2024, Algorithms 2 and 4, with full
// batches). Scores are in pairs. Radii are the filter's.
type threshold struct {
	people int    // K
	filter filter // r_s = r_f, and U
	test   accounting.SharedTest
	sigma  float64 // of a release, in units of the radius
}

// calibrateThreshold returns the test that leaves the least noise, of Gaussian noise as a guide, for r_s =
// r_f = 1. A phase of people whose gradients are all that near to each other in every step halts with the
// probability failure at most. An error: too few people.
func calibrateThreshold(people, steps int, b accounting.Budget, failure float64) (threshold, error) {
	f := filter{1, 1, 0}
	test, sigma, err := accounting.CalibrateSharedTest(request(people, steps, f, b, failure))
	if err != nil {
		return threshold{sigma: math.Inf(1)}, err
	}
	return threshold{people, f.with(test.Full, people), test, sigma}, nil
}

// spreadRadius bounds the distance between the mean gradients of any two of so many people at each of so many
// fixed points, in units of L, except with the probability failure: people's rows are m independent draws
// (docs/proofs/curator.md, accelerated).
func spreadRadius(people, items, steps int, failure float64) float64 {
	k := float64(people)
	return (math.Sqrt2 + 2*math.Sqrt(math.Log(k*k*float64(steps)/(2*failure)))) / math.Sqrt(float64(items))
}

// A series is tests against one noisy level.
type series struct {
	level   int64 // with its noise
	each    randomizer.DiscreteLaplace
	entropy rand.Source
}

// begin draws the noise of the level: once, for all tests.
func (t *threshold) begin(entropy rand.Source) *series {
	return &series{t.test.Threshold + t.test.Once.Sample(entropy), t.test.Each, entropy}
}

// testAndRelease overwrites mean with the release of the filtered mean of points, which must not be published
// unless this test and all before it passed.
func (s *series) testAndRelease(mean []float64, points [][]float64, f filter, r *releaser) (passed bool, err error) {
	pairs, near := f.counts(points)
	passed = s.passes(pairs)
	weightedMean(mean, points, f.weights(near))
	return passed, r.release(mean)
}

// passes reports whether a score, in pairs, is at least the level, with fresh noise of its own.
func (s *series) passes(pairs int) bool { return int64(pairs)+s.each.Sample(s.entropy) >= s.level }
