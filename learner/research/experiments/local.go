package main

import (
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// localSteps describes the steps of a silo: from the announced point, one step a row, along the row's clipped
// gradient.
type localSteps struct {
	size  float64 // of a step
	steps int     // rows drawn with replacement; 0: one epoch, each row once in a fresh random order
	noise float64 // of each gradient, standard deviation of a coordinate
	after float64 // of what is sent
}

// local returns a reporter of the start minus the end of a silo's local steps.
func (p problem) local(l localSteps, draw *rand.Rand) reporter {
	walk, slope := make([]float64, p.dim()), make([]float64, p.dim())
	return func(dst, at []float64, silo int) error {
		rows := p.silos[silo]
		copy(walk, at)
		order, steps := []int(nil), l.steps
		if steps == 0 {
			order, steps = draw.Perm(len(rows)), len(rows)
		}
		for t := range steps {
			k := 0
			if order != nil {
				k = order[t]
			} else {
				k = draw.IntN(len(rows))
			}
			convex.ClippedGradient(p.loss, slope, walk, rows[k], p.clip)
			disturb(slope, l.noise, draw)
			for j, g := range slope {
				walk[j] -= l.size * g
			}
		}
		for j := range dst {
			dst[j] = at[j] - walk[j]
		}
		disturb(dst, l.after, draw)
		return nil
	}
}

// epochNoise returns the standard deviation of each coordinate of what a silo sends after an epoch of steps
// of one size, where it does so in so many rounds. Replacing a row moves an epoch's end by at most 2 size
// clip, if size is at most 2 over the smoothness of the loss of a row (docs/measured/experiments.md).
func epochNoise(size, clip float64, rounds int, b accounting.Budget) (float64, error) {
	mu, err := accounting.GaussianMu(b)
	return 2 * size * clip * math.Sqrt(float64(rounds)) / mu, err
}
