package practical

import (
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

const (
	classDamping, numberDamping = 0.01, 0.03 // of variances, in addition to the noise
	// of the mean variance, where that is less than the damping of classes; of a damping
	dampedShare, leastVariance = 0.25, 1e-6
)

// coordinates holds the map from features to u, and moments of u.
type coordinates struct {
	center, scale []float64
	square        float64 // mean square of the norm of u's features
	// squared norm of the mean of u, with the intercept if the frame is uniform; 0 if it is centred
	mean  float64
	top   float64   // largest mean square of a coordinate around its mean
	uncut float64   // mean square of the norm of u, if a whitener makes its mean short
	away  []float64 // mean of u that a whitener makes short; nil: none does
}

// shrunk returns coordinates for plans without a correcting matrix: centers and variances are moved toward the mean of
// their group (indicators or numbers) according to their noise.
func (s shape) shrunk(r released) coordinates {
	center, variance, weight := make([]float64, s.Features), make([]float64, s.Features), make([]float64, s.Features)
	around := s.centred || s.deflated
	q0 := s.Bound * s.Bound / 2 / float64(s.Features)
	for _, indicators := range []bool{true, false} {
		var group []int
		for j := range s.Features {
			if s.indicator(j) == indicators {
				group = append(group, j)
			}
		}
		z, sd := make([]float64, len(group)), make([]float64, len(group))
		for i, j := range group {
			z[i], sd[i] = r.mean[j], r.sd
		}
		w := shrink(z, sd, prior{spread: math.Sqrt(q0), variance: 1. / 12})
		for i, j := range group {
			if center[j], weight[j] = min(max(z[i], -s.Bound), s.Bound), w[i]; indicators {
				center[j] = min(max(z[i], 0), 1)
				if variance[j] = center[j]; around {
					variance[j] *= 1 - center[j]
				}
				continue
			}
			if z[i] = r.square[j]; around {
				z[i] -= center[j]*center[j] + w[i]*r.sd*r.sd
				sd[i] = r.sd * math.Sqrt(1+4*center[j]*center[j])
			}
		}
		if indicators {
			continue
		}
		w = shrink(z, sd, prior{mean: q0, spread: q0, variance: min(1./100, q0*q0/25)})
		for i, j := range group {
			variance[j], weight[j] = min(max(z[i], 0), s.Bound*s.Bound), w[i]
		}
	}
	least := 0.0
	for _, v := range variance {
		least += dampedShare * v / float64(s.Features)
	}
	least = max(min(least, classDamping), leastVariance)
	for j, w := range weight {
		if weight[j] = least + r.sd*math.Sqrt(w); s.Continuous {
			weight[j] = least + r.sd/2
		}
	}
	out := s.scaled(center, variance, weight)
	if s.deflated {
		out.deflate(center, r.sd)
	}
	return out
}

// seen returns coordinates for a round of the matrix, with centers and variances as released.
func (s shape) seen(r released) coordinates {
	variance, damping := make([]float64, s.Features), make([]float64, s.Features)
	for j, c := range r.mean {
		if variance[j] = max(r.square[j], 0); s.centred {
			variance[j] = max(r.square[j]-c*c, 0)
		}
		damping[j] = numberDamping + r.sd
	}
	return s.scaled(r.mean, variance, damping)
}

// scaled divides every coordinate by the root of its damped variance, or all by the root of the mean variance if the
// frame is uniform. Without centring, variances are mean squares.
func (s shape) scaled(center, variance, damping []float64) coordinates {
	out := coordinates{center: make([]float64, s.Features), scale: make([]float64, s.Features), top: 1}
	if s.uniform {
		var v, c float64
		for j := range variance {
			v += variance[j] / float64(s.Features)
			c += damping[j] / float64(s.Features)
		}
		out.top = 0
		for j := range variance {
			out.scale[j] = within(1 / math.Sqrt(v+c))
			out.top = max(out.top, variance[j]/(v+c))
		}
		out.mean = float64(s.Intercept*s.Intercept) / (v + c)
	}
	for j, v := range variance {
		if !s.uniform {
			out.scale[j] = within(1 / math.Sqrt(v+damping[j]))
		}
		if square := out.scale[j] * out.scale[j]; s.centred {
			out.center[j] = min(max(center[j], -convex.MaxScale), convex.MaxScale)
			out.square += v * square
		} else {
			out.mean += min(center[j]*center[j], v) * square
			out.square += v * square
		}
	}
	return out
}

// within moves a positive number into the range that convex.Frame accepts.
func within(x float64) float64 { return min(max(x, 1/convex.MaxScale), convex.MaxScale) }
