package private

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/research/resque"
	"gonum.org/v1/gonum/mathext"
)

// levelCaps returns for each of J = 1, 2, ..., levels how often it may be drawn in a run of steps proximal
// estimates: with probability at least 1/2 no more are drawn.
func levelCaps(steps, levels int) []int {
	caps := make([]int, levels)
	for i := range caps {
		// P[Bin(steps, p) > c] = I_p(c+1, steps-c)
		for p := math.Ldexp(1, -i-1); caps[i] < steps && mathext.RegIncBeta(float64(caps[i]+1), float64(steps-caps[i]),
			p) > 1/(2*float64(levels)); {
			caps[i]++
		}
	}
	return caps
}

// drawLevels draws J of every proximal estimate of a run, j with probability 2^-j, again until no more of each than
// its cap are. It is given no record and nothing that was released: each vector is one mechanism, and their mixture
// costs no more than the dearest.
func drawLevels(steps int, caps []int, entropy rand.Source) ([]int, error) {
	levels := make([]int, steps)
	for range 1 << 12 {
		left, ok := append([]int(nil), caps...), true
		for i := range levels {
			levels[i] = resque.Level(entropy.Uint64())
			if j := levels[i] - 1; j < len(left) {
				left[j]--
				ok = ok && left[j] >= 0
			}
		}
		if ok {
			return levels, nil
		}
	}
	return nil, fmt.Errorf("multilevel: no levels of %d estimates within %v", steps, caps)
}

// levelTimes returns for each of the levels 0, 1, ... how often it is solved, at most: once an estimate at
// level 0, and the two solves of J at levels J and J-1.
func levelTimes(steps int, caps []int) []int {
	times := make([]int, len(caps)+1)
	times[0] = steps
	for i, c := range caps {
		times[i] += c
		times[i+1] += c
	}
	return times
}
