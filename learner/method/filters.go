package method

import (
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// filters are random-walk filters over some coordinates, which share one observation of the optimum. Each has one
// variance for all coordinates.
type filters struct {
	dim      int
	walk     []float64 // growth of a coordinate's variance with each user
	noise    []float64 // factor on an observation's known noise variance
	points   []float64 // one after another
	variance []float64 // of one coordinate of the optimum
	weight   []float64 // of each filter, at least mixing/len
	raw      []float64 // weight before mixing
	gain     float64   // mean share of the way to the last observation
}

// newFilters returns filters that start at a point, one for each memory, noise and scale. For each scale, v = variance
// scale^2; a coordinate's variance grows by v/memory with each user, and is around(v) at the start.
func newFilters(start []float64, variance float64, scales []float64, around func(variance float64) float64) filters {
	f := filters{dim: len(start)}
	for _, memory := range memories {
		for _, noise := range noises {
			for _, scale := range scales {
				v := variance * scale * scale
				f.walk = append(f.walk, v/memory)
				f.noise = append(f.noise, noise)
				f.variance = append(f.variance, around(v))
				f.points = append(f.points, start...)
			}
		}
	}
	for range f.walk {
		f.weight = append(f.weight, 1/float64(len(f.walk)))
	}
	f.raw = f.weight
	return f
}

// point returns the point of filter j.
func (f *filters) point(j int) []float64 { return f.points[j*f.dim : (j+1)*f.dim] }

// mean returns the weighted mean of the points.
func (f *filters) mean() []float64 {
	out := make([]float64, f.dim)
	for j, w := range f.weight {
		for i, x := range f.point(j) {
			out[i] += float64(w * x)
		}
	}
	return out
}

// A deviation holds the observed and the expected squared distance of an observation from the filters' prediction.
type deviation struct {
	seen     float64
	expected float64 // own + noise
	own      float64 // variance of the optimum under the filters, summed over coordinates
	noise    float64 // variance of the observation, summed over coordinates
	// uneven is the part of expected that may lie in few directions: from rows, and from rounds that differ by more than
	// noise.
	uneven float64
}

// directions is the least number of directions in which uneven noise is assumed to lie.
const directions = 2

// and adds the deviations of other coordinates.
func (d deviation) and(o deviation) deviation {
	return deviation{d.seen + o.seen, d.expected + o.expected, d.own + o.own, d.noise + o.noise, d.uneven + o.uneven}
}

// surprise returns the number of deviations by which the observed distance exceeds the expected one: the cube root of a
// chi-squared variable is about normal (Wilson and Hilferty). Uneven noise has fewer degrees of freedom than
// coordinates.
func (d deviation) surprise(dim int) float64 {
	if dim == 0 {
		return math.Inf(-1)
	}
	n, uneven := float64(dim), d.uneven/d.expected
	n /= 1 - uneven*uneven + max(1, n/directions)*uneven*uneven
	v := 2 / (9 * n)
	return (math.Cbrt(d.seen/d.expected) - (1 - v)) / math.Sqrt(v)
}

// A seen is a round's observation of some coordinates: the gradient g at theta, where the loss has the curvature, of
// users whose mean has the variance in each coordinate. keep is the share of their points that filters keep before they
// move: 1 unless the model is worse than one of zeros.
type seen struct {
	theta, g                         []float64
	curvature, variance, users, keep float64
}

// step returns the filters after the observation theta - g/curvature, and the observation's deviation. It does not
// change f.
func (f *filters) step(of seen) (filters, deviation) {
	n := len(f.walk)
	out := filters{dim: f.dim, walk: f.walk, noise: f.noise, points: make([]float64, len(f.points)),
		variance: make([]float64, n), weight: make([]float64, n), raw: make([]float64, n)}
	if f.dim == 0 {
		copy(out.variance, f.variance)
		copy(out.weight, f.weight)
		copy(out.raw, f.raw)
		return out, deviation{}
	}
	z, theta := make([]float64, f.dim), of.theta
	for i, x := range theta {
		z[i] = x - of.g[i]/of.curvature
	}
	known, d := of.variance/of.curvature/of.curvature, deviation{}
	expected, likely := make([]float64, n), make([]float64, n)
	most := math.Inf(-1)
	for j := range n {
		far, off := 0.0, 0.0
		for i, x := range f.point(j) {
			far += float64((z[i] - x) * (z[i] - x))
			off += float64((theta[i] - x) * (theta[i] - x))
		}
		expected[j] = f.variance[j] + float64(known*f.noise[j])
		d.seen += float64(f.raw[j] * far)
		d.expected += float64(f.raw[j] * expected[j] * float64(f.dim))
		d.own += float64(f.raw[j] * (float64(f.dim)*f.variance[j] + off))
		d.noise += float64(f.raw[j] * f.noise[j] * float64(f.dim))
		likely[j] = forgetting*math.Log(f.weight[j]) - float64(f.dim)/2*math.Log(expected[j]) - far/expected[j]/2
		most = max(most, likely[j])
	}
	sum := 0.0
	for j, l := range likely {
		out.raw[j] = math.Exp(l - most)
		sum += out.raw[j]
	}
	for j := range n {
		out.raw[j] /= sum
		out.weight[j] = (1-mixing)*out.raw[j] + mixing/float64(n)
		k := f.variance[j] / expected[j]
		out.gain += float64(out.weight[j] * k)
		to := out.point(j)
		for i, x := range f.point(j) {
			kept := float64(of.keep * x)
			to[i] = kept + float64(k*(z[i]-kept))
		}
		out.variance[j] = (1-k)*f.variance[j] + float64(f.walk[j]*of.users)
	}
	return out, d
}

// near moves points farther than r from zero to distance r.
func (f *filters) near(r float64) {
	for j := range f.walk {
		convex.Clip(f.point(j), r)
	}
}

// unsure returns the expected squared distance of the optimum from the mean point.
func (f *filters) unsure() (sum float64) {
	mean := f.mean()
	for j, w := range f.weight {
		away := float64(f.dim) * f.variance[j]
		for i, x := range f.point(j) {
			away += float64((x - mean[i]) * (x - mean[i]))
		}
		sum += float64(w * away)
	}
	return sum
}

func (f *filters) finite() bool {
	return finite(f.points) && finite(f.variance) && finite(f.raw)
}
