package sim

import (
	"context"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// ConvergeConfig configures the search for the model that all examples together give, without privacy and clipping.
type ConvergeConfig struct {
	Loss     convex.Loss
	Set      convex.Set
	Ridge    float64
	Dim      int // of theta
	Examples []convex.Example
	Steps    int       // at most; 0 means 300
	Start    []float64 // in Set; nil means Set's own
}

// Converge minimises the mean loss plus ridge over the set by accelerated projected gradient descent with
// backtracking, FISTA (Beck & Teboulle, SIAM J. Imaging Sciences 2, 2009), its momentum restarted where the
// objective rises (O'Donoghue & Candes, Foundations of Computational Mathematics 15, 2015). It ends early when a
// step gains less than a billionth of the objective. A loss that is not smooth gives way to its envelope with B = 1000.
// The result is a baseline, not a certified optimum.
func Converge(ctx context.Context, c ConvergeConfig) ([]float64, error) {
	if len(c.Examples) == 0 {
		return nil, fmt.Errorf("converge: no examples")
	}
	loss := c.Loss
	if math.IsInf(loss.Smoothness(1), 1) {
		var err error
		if loss, err = convex.NewEnvelope(loss, 1000); err != nil {
			return nil, fmt.Errorf("converge: %w", err)
		}
	}
	if c.Steps == 0 {
		c.Steps = 300
	}
	f := objective{loss: loss, ridge: c.Ridge, examples: c.Examples, one: make([]float64, c.Dim)}
	at, ahead, next, slope := make([]float64, c.Dim), make([]float64, c.Dim), make([]float64, c.Dim),
		make([]float64, c.Dim)
	if c.Set.Start(at); c.Start != nil {
		copy(at, c.Start)
	}
	copy(ahead, at)
	value, curvature, momentum := f.value(at), 1.0, 1.0
	for range c.Steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		here := f.gradient(slope, ahead)
		var reached float64
		for {
			var linear, square float64
			for j, s := range slope {
				next[j] = ahead[j] - s/curvature
			}
			c.Set.Project(next, next)
			for j, s := range slope {
				d := next[j] - ahead[j]
				linear, square = linear+s*d, square+d*d
			}
			if reached = f.value(next); reached <= here+linear+curvature/2*square+1e-12*math.Abs(here) {
				break
			}
			curvature *= 2
		}
		if reached > value {
			if momentum == 1 { // a plain step does not rise but by rounding
				break
			}
			momentum = 1
			copy(ahead, at)
			continue
		}
		gain := value - reached
		following := (1 + math.Sqrt(1+4*momentum*momentum)) / 2
		for j := range at {
			ahead[j] = next[j] + (momentum-1)/following*(next[j]-at[j])
		}
		copy(at, next)
		plain := momentum == 1
		value, momentum, curvature = reached, following, 0.9*curvature
		if !plain && gain <= 1e-9*math.Abs(value) {
			break
		}
	}
	return at, nil
}

// An objective is a mean loss with a ridge.
type objective struct {
	loss     convex.Loss
	ridge    float64
	examples []convex.Example
	one      []float64 // scratch: the gradient of one example
}

func (f objective) value(theta []float64) float64 {
	n := convex.Norm(theta)
	return MeanLoss(f.loss, theta, f.examples) + f.ridge/2*n*n
}

// gradient writes the gradient and returns the value.
func (f objective) gradient(dst, theta []float64) float64 {
	clear(dst)
	for _, e := range f.examples {
		f.loss.Gradient(f.one, theta, e)
		for j, g := range f.one {
			dst[j] += g
		}
	}
	for j, t := range theta {
		dst[j] = dst[j]/float64(len(f.examples)) + f.ridge*t
	}
	return f.value(theta)
}
