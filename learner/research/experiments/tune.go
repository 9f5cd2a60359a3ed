package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
)

// choices returns the choices that are tried for a contender.
func (s *setting) choices(m contender) (out []choice) {
	clips, steps := s.clips, s.steps
	if s.summed {
		by := math.Log(float64(s.reports))
		steps = bounds{steps.low + by, steps.high + by}
	}
	sizes := steps.sizes(s.tried())
	if m.paper && s.twice {
		clips = []float64{2 * s.longest}
	}
	if m.local {
		sizes = s.local.sizes(s.tried())
	}
	if m.name == provedLocal && !convex.OneScore(s.job.Loss) {
		// nothing is clipped: scaled down, gradients would be of nothing convex
		clips = []float64{s.job.Loss.Lipschitz(s.job.Features.Bound())}
	}
	most := 2 / s.job.Loss.Smoothness(s.job.Features.Bound())
	for _, clip := range clips {
		for _, step := range sizes {
			if m.name != provedLocal || step <= most { // else nothing is proved
				out = append(out, choice{clip, step})
			}
		}
	}
	return out
}

// best returns the choice of the least mean training loss over trials. The noise is the one for all rows,
// however small the share that is learned from. This choice looks at the training rows, and no epsilon covers
// that.
func (s *setting) best(m contender, trials []trial, epsilon float64) (best choice, err error) {
	try := m.run
	if m.tried != nil {
		try = m.tried
	}
	least := math.Inf(1)
	for _, c := range s.choices(m) {
		var loss float64
		for _, t := range trials {
			if !m.local {
				t = t.thinned(s.thin)
			}
			theta, err := try(s.attempt(m, t, epsilon, c))
			if err != nil {
				return best, err
			}
			for _, rows := range t.silos {
				loss += sim.MeanLoss(s.job.Loss, theta, rows)
			}
		}
		if loss < least { // and a number
			least, best = loss, c
		}
	}
	if math.IsInf(least, 1) {
		return best, fmt.Errorf("%s, epsilon %v: no choice ends anywhere", m.name, epsilon)
	}
	return best, nil
}

// atEnds returns, in words, at which ends of what was tried a choice lies; empty: at none. Better ones may lie beyond.
func atEnds(all []choice, c choice) string {
	var out []string
	for _, of := range []struct {
		name string
		get  func(choice) float64
	}{{"L", func(c choice) float64 { return c.clip }}, {"step", func(c choice) float64 { return c.step }}} {
		low, high := math.Inf(1), math.Inf(-1)
		for _, one := range all {
			low, high = min(low, of.get(one)), max(high, of.get(one))
		}
		switch v := of.get(c); {
		case low == high: // nothing to choose
		case v == low:
			out = append(out, "smallest "+of.name)
		case v == high:
			out = append(out, "largest "+of.name)
		}
	}
	return strings.Join(out, ", ")
}

func (s *setting) attempt(m contender, t trial, epsilon float64, c choice) attempt {
	return attempt{s, t, epsilon, c, rand.New(sim.Entropy(t.seed, "experiments: "+m.name))}
}
