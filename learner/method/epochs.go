package method

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/panlearn/panlearn/learner/convex"
)

// EpochsConfig configures PAGD without an end: epochs of 1, 2, 4 .. steps, then of Horizon steps each, each epoch
// starting from the model of the one before. At any time the current model, or the one before it, comes from an epoch
// with a quarter of all steps, or of the horizon, so that the risk is within a constant factor of the risk of a plan
// for exactly that many steps (the doubling trick; Cesa-Bianchi & Lugosi, Prediction, Learning, and Games, 2006,
// Section 2.3). An epoch forgets the gradients before its start, so the horizon bounds for how long a drifting
// population is remembered.
//
// It may be the last Stage of Restarts.
type EpochsConfig struct {
	Dim        int        // length of theta
	Set        convex.Set // constraint set
	Start      []float64  // in Set; nil means Set's own
	Horizon    uint64     // steps of the longest epochs
	V          float64    // PAGD's v for an epoch of Horizon steps, at least 2 Smoothness
	Smoothness float64    // beta > 0 of the loss, the ridge included
	Mu         float64    // see PAGDConfig
	Ridge      float64    // see PSGDConfig
}

// NewEpochs returns the first epoch at its start. The error names the field that does not fit.
func NewEpochs(c EpochsConfig) (*restarts, error) {
	if c.Horizon < 1 || c.Horizon > MaxSteps {
		return nil, fmt.Errorf("epochs: horizon: %d, want 1 to %d", c.Horizon, uint64(MaxSteps))
	}
	if !(c.Smoothness > 0) || !(c.V >= 2*c.Smoothness) || math.IsInf(c.V, 0) {
		return nil,
			fmt.Errorf("epochs: v and smoothness: %v, %v, want a positive smoothness and a finite v of at least twice of it",
				c.V, c.Smoothness)
	}
	return newRestarts(c.Dim, c.Set, c.Start, doubling{c}, c.growing()+1)
}

func (c EpochsConfig) length() uint64 { return 0 }

// Begin returns the method of one stage, see Stage.
func (c EpochsConfig) Begin(start []float64) (Method, error) {
	c.Start = start
	return NewEpochs(c)
}

// Epoch returns the configuration of epoch k, from 0, with the v for its length: the noise's part of v grows with
// sqrt(T(T+1)(T+2)), and the smoothness's part is 2 beta. If the latter is larger at the horizon, it is larger for all
// shorter epochs.
func (c EpochsConfig) Epoch(k uint64) PAGDConfig {
	cube := func(steps uint64) float64 {
		t := float64(steps)
		return t * (t + 1) * (t + 2)
	}
	n := c.Horizon
	if k < c.growing() {
		n = 1 << k
	}
	v := max(2*c.Smoothness, c.V*math.Sqrt(cube(n)/cube(c.Horizon)))
	return PAGDConfig{Dim: c.Dim, Set: c.Set, Steps: n, V: v, Mu: c.Mu, Ridge: c.Ridge}
}

// growing returns how many epochs are shorter than the horizon.
func (c EpochsConfig) growing() uint64 { return uint64(bits.Len64(c.Horizon - 1)) }

// doubling is the series of epochs.
type doubling struct{ EpochsConfig }

func (d doubling) count() uint64 { return 0 }

func (d doubling) stage(k uint64) Stage { return d.Epoch(k) }

// before returns the number of steps before stage k, cut to MaxSteps.
func (d doubling) before(k uint64) uint64 {
	grown := d.growing()
	if k <= grown {
		return 1<<k - 1
	}
	full := k - grown
	if full > MaxSteps/d.Horizon {
		return MaxSteps
	}
	return min(MaxSteps, 1<<grown-1+full*d.Horizon)
}
