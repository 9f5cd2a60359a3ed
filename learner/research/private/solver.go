package private

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/resque"
	"gonum.org/v1/gonum/mathext"
)

// A phase is T steps of length e, and noise on the mean of their points.
type phase struct {
	steps int
	e     float64
	level float64 // of the lattice, in units of the points
	scale float64 // steps of the lattice a unit
}

// phases returns the schedule of Algorithms 3 and 4 for a T that is rounded down to a power of two: T/2, T/4,
// ..., 1 steps of lengths eta/4, eta/16, ...
func phases(T int, eta float64) []phase {
	k := bits.Len(uint(T)) - 1
	out := make([]phase, k)
	for i := range out {
		out[i] = phase{steps: (1 << k) >> (i + 1), e: eta / math.Pow(4, float64(i+1))}
	}
	return out
}

// A solver is Algorithm 4 around one centre: min of F + (lambda/2) ||. - c||^2 over B(centre, r) for the smoothed
// mean F. Every noisy mean is projected back into the ball, which the moment bounds need of the points at which
// weights are taken.
//
// All points are kept as displacements from the centre, so that rounding is relative to r.
type solver struct {
	r, rho, lambda, batch float64
	phases                []phase
	noise                 lattice
	normal                *rand.Rand

	query, xi, g, step, sum []float64 // scratch
	place                   []int64
}

func newSolver(d int, r, rho, lambda, batch float64, of []phase, noise lattice) *solver {
	v := func() []float64 { return make([]float64, d) }
	return &solver{r: r, rho: rho, lambda: lambda, batch: batch, phases: of, noise: noise, normal: rand.New(noise.entropy),
		query: v(), xi: v(), g: v(), step: v(), sum: v(), place: make([]int64, d)}
}

// solve overwrites dst, at first the start, with the noisy solution; both, and pull = c - centre, are
// displacements. slots[j] are the records of step j; there are as many as the phases have steps.
func (s *solver) solve(dst, centre, pull []float64, r *records, slots [][]int) {
	y := dst
	next := 0
	for _, ph := range s.phases {
		convex.Clip(y, s.r)
		clear(s.sum)
		for range ph.steps {
			clear(s.step)
			for _, i := range slots[next] {
				s.draw(centre)
				r.gradient(s.g, s.query, i)
				w := math.Exp(resque.LogWeight(y, s.xi, s.rho))
				for j, v := range s.g {
					s.step[j] += w * v
				}
			}
			next++
			for j := range y {
				y[j] = (y[j] + ph.e*s.lambda*pull[j] - ph.e/s.batch*s.step[j]) / (1 + ph.e*s.lambda)
			}
			convex.Clip(y, s.r)
			for j, v := range y {
				s.sum[j] += v
			}
		}
		for j, v := range s.sum {
			s.place[j] = int64(v / float64(ph.steps) * ph.scale)
		}
		s.noise.release(y, s.place, ph.level)
	}
	convex.Clip(y, s.r)
}

// draw makes a query point around the centre: xi, and query = centre + xi.
func (s *solver) draw(centre []float64) {
	for j := range s.xi {
		s.xi[j] = s.rho * gaussian(s.normal)
		s.query[j] = centre[j] + s.xi[j]
	}
}

// gaussian inverts a uniform number of 53 bits: the proof is about moments of weights at 10 standard deviations,
// too far for a table of single precision.
func gaussian(rng *rand.Rand) float64 {
	u := rng.Uint64()
	z := mathext.NormalQuantile((float64(u>>12) + 0.5) / (1 << 53)) // at most 1/2
	if u&1 == 0 {
		return z
	}
	return -z
}
