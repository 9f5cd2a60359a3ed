package practical

import (
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

const (
	classDamping, numberDamping = 0.01, 0.03 // of variances, beside the noise
	// of the mean variance, where that is less than the damping of classes; of a damping
	dampedShare, leastVariance      = 0.25, 1e-6
	classIntercept, numberIntercept = 0.15, 0.35 // scale of the intercept in units of rho
	// of the norm of u, in units of rho: models are used on whole rows, and noise may hide what makes them long
	normBound, streamNumberBound = 16, 2
)

// coordinates hold the map of features to u, and moments of u.
type coordinates struct {
	center, scale []float64
	square        float64 // mean square of the norm of u's features
	// squared norm of the mean of u, with the intercept where the frame is uniform; 0 where it is centred
	mean  float64
	top   float64   // largest mean square of a coordinate around its mean
	uncut float64   // mean square of the norm of u, if a whitener makes its mean short
	away  []float64 // mean of u that a whitener makes short; nil: none does
}

// First turns the mean of the first cohort into the frame of the next rounds: of the matrix where the layout
// has one, of gradients otherwise. mean is the mean of the clipped vectors, in their own units, and sd the
// noise of each number in it.
func (p Problem) First(l Layout, mean []float64, sd float64) (Learned, error) {
	r, err := p.split(mean, sd)
	if err != nil {
		return Learned{}, err
	}
	switch {
	case p.Continuous:
		return p.stream(l, r)
	case p.classes() > 0:
		return p.firstOfClasses(l, p.uncut(r))
	case l.MatrixUsers > 0:
		return p.beforeMatrix(r), nil
	}
	return p.firstOfNumbers(l, r)
}

// shrunk returns coordinates for plans where no matrix corrects them: centers and variances are moved toward
// those of their group as far as noise hides them, indicators and numbers apart.
func (p Problem) shrunk(r released) coordinates {
	center, variance, weight := make([]float64, p.Features), make([]float64, p.Features), make([]float64, p.Features)
	around := p.centred() || p.Deflated()
	q0 := p.Bound * p.Bound / 2 / float64(p.Features)
	for _, indicators := range []bool{true, false} {
		var group []int
		for j := range p.Features {
			if p.indicator(j) == indicators {
				group = append(group, j)
			}
		}
		z, sd := make([]float64, len(group)), make([]float64, len(group))
		for i, j := range group {
			z[i], sd[i] = r.mean[j], r.sd
		}
		w := shrink(z, sd, prior{spread: math.Sqrt(q0), variance: 1. / 12})
		for i, j := range group {
			if center[j], weight[j] = min(max(z[i], -p.Bound), p.Bound), w[i]; indicators {
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
			variance[j], weight[j] = min(max(z[i], 0), p.Bound*p.Bound), w[i]
		}
	}
	least := 0.0
	for _, v := range variance {
		least += dampedShare * v / float64(p.Features)
	}
	least = max(min(least, classDamping), leastVariance)
	for j, w := range weight {
		if weight[j] = least + r.sd*math.Sqrt(w); p.Continuous {
			weight[j] = least + r.sd/2
		}
	}
	out := p.scaled(center, variance, weight)
	if p.Deflated() {
		out.deflate(center, r.sd)
	}
	return out
}

// seen returns coordinates before a matrix: centers and variances as they were released.
func (p Problem) seen(r released) coordinates {
	variance, damping := make([]float64, p.Features), make([]float64, p.Features)
	for j, c := range r.mean {
		if variance[j] = max(r.square[j], 0); p.centred() {
			variance[j] = max(r.square[j]-c*c, 0)
		}
		damping[j] = numberDamping + r.sd
	}
	return p.scaled(r.mean, variance, damping)
}

// scaled divides every coordinate by the root of its damped variance, or all by the root of the mean variance
// where the frame is uniform. Where nothing is centred, variances are mean squares.
func (p Problem) scaled(center, variance, damping []float64) coordinates {
	out := coordinates{center: make([]float64, p.Features), scale: make([]float64, p.Features), top: 1}
	if p.uniform() {
		var v, c float64
		for j := range variance {
			v += variance[j] / float64(p.Features)
			c += damping[j] / float64(p.Features)
		}
		out.top = 0
		for j := range variance {
			out.scale[j] = within(1 / math.Sqrt(v+c))
			out.top = max(out.top, variance[j]/(v+c))
		}
		out.mean = float64(p.Intercept*p.Intercept) / (v + c)
	}
	for j, v := range variance {
		if !p.uniform() {
			out.scale[j] = within(1 / math.Sqrt(v+damping[j]))
		}
		if s := out.scale[j] * out.scale[j]; p.centred() {
			out.center[j] = min(max(center[j], -convex.MaxScale), convex.MaxScale)
			out.square += v * s
		} else {
			out.mean += min(center[j]*center[j], v) * s
			out.square += v * s
		}
	}
	return out
}

// frame fills in coordinates, bound and set, and returns rho, which has the intercept in it and is at least the least.
// intercept is the constant coordinate in units of the norm of the others; in a task without end it is 1, so that class
// shares that move have as much curvature as anything else.
func (p Problem) frame(out *Learned, at coordinates, intercept, least float64) (rho float64) {
	square := max(at.square, least*least)
	f := &out.Frame
	f.Center, f.Scale = at.center, at.scale
	switch {
	case p.uniform():
		f.Intercept = p.Intercept * at.scale[0]
	case p.Intercept != 0 && p.Continuous:
		f.Intercept = 1
	case p.Intercept != 0:
		f.Intercept = within(intercept * math.Sqrt(square))
	}
	rho = math.Sqrt(square + f.Intercept*f.Intercept)
	bound := float64(normBound)
	if p.Continuous && p.classes() == 0 {
		bound = streamNumberBound
	}
	f.Bound = within(math.Sqrt(bound*bound*rho*rho - f.Intercept*f.Intercept))
	if at.away != nil {
		rho = math.Sqrt(square + at.mean)
		f.Bound = within(normBound * math.Sqrt(max(at.uncut, least*least)))
		f.Whitener = at.whitener()
	}
	if out.Set = p.Set; p.uniform() {
		out.Set.Radius /= at.scale[0]
		out.Set.Min /= at.scale[0]
		out.Set.Max /= at.scale[0]
	}
	return rho
}

// within moves a positive number to where convex.Frame accepts it.
func within(x float64) float64 { return min(max(x, 1/convex.MaxScale), convex.MaxScale) }

// ridgeCurvature bounds the largest eigenvalue of the ridge's second derivative in the coordinates of w, where there is
// no whitener.
func (p Problem) ridgeCurvature(l *Learned) float64 {
	if p.Ridge == 0 {
		return 0
	}
	var top, constant float64
	for j, s := range l.Frame.Scale {
		top = max(top, s*s)
		constant += s * s * l.Frame.Center[j] * l.Frame.Center[j]
	}
	if p.Intercept != 0 {
		top += (constant + l.Frame.Intercept*l.Frame.Intercept) / p.Intercept / p.Intercept
	}
	return p.Ridge * l.Gain * l.Weight * top
}

// begin puts the start into the set.
func (p Problem) begin(l *Learned, start []float64) error {
	l.Start = start
	if l.Set == (convex.SetDeclaration{}) {
		return nil
	}
	set, err := l.Set.New(len(start))
	if err != nil {
		return err
	}
	set.Project(start, start)
	return nil
}
