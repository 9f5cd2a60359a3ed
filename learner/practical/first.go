package practical

import "math"

const (
	classIntercept, numberIntercept = 0.15, 0.35 // scale of the intercept in units of rho
	leastNorm                       = 1          // rho is at least 1 before the intercept is added
	// of the norm of u, in units of rho: models are used on unclipped rows, and noise may hide the features that make them
	// long
	normBound, streamNumberBound = 16, 2
)

// First turns the mean of the first cohort into the frame of the next rounds: of the matrix if the layout has one, else
// of gradients. mean is the mean of the clipped vectors, in their own units, and sd the noise of each number in it.
func (p Problem) First(l Layout, mean []float64, sd float64) (Learned, error) {
	s := p.shape()
	r, err := s.split(mean, sd)
	switch {
	case err != nil:
		return Learned{}, err
	case s.classes > 0:
		return s.firstOfClasses(l, s.uncut(r))
	case l.MatrixUsers > 0:
		return numberLook{s, r}.beforeMatrix(), nil
	}
	return numberLook{s, r}.withoutMatrix(l)
}

// from returns the declared start in coordinates w, without a whitener; if none is declared, the looks' start.
func (s shape) from(l *Learned, looks []float64) []float64 {
	if s.Start == nil {
		return looks
	}
	return l.unscaled(s.Start, s.Intercept)
}

// frame sets coordinates, bound and set, and returns rho, the intercept included. In a task without an end the constant
// coordinate is 1, so that changing class shares have as much curvature as other directions.
func (s shape) frame(out *Learned, at coordinates) (rho float64) {
	square := max(at.square, leastNorm*leastNorm)
	f := &out.Frame
	f.Center, f.Scale = at.center, at.scale
	switch {
	case s.uniform:
		f.Intercept = s.Intercept * at.scale[0]
	case s.Intercept != 0 && s.Continuous:
		f.Intercept = 1
	case s.Intercept != 0 && s.classes > 0:
		f.Intercept = within(classIntercept * math.Sqrt(square))
	case s.Intercept != 0:
		f.Intercept = within(numberIntercept * math.Sqrt(square))
	}
	rho = math.Sqrt(square + f.Intercept*f.Intercept)
	bound := float64(normBound)
	if s.Continuous && s.classes == 0 {
		bound = streamNumberBound
	}
	f.Bound = within(math.Sqrt(bound*bound*rho*rho - f.Intercept*f.Intercept))
	if at.away != nil {
		rho = math.Sqrt(square + at.mean)
		f.Bound = within(normBound * math.Sqrt(max(at.uncut, leastNorm*leastNorm)))
		f.Whitener = at.whitener()
	}
	if out.Set = s.Set; s.uniform {
		out.Set.Radius /= at.scale[0]
		out.Set.Min /= at.scale[0]
		out.Set.Max /= at.scale[0]
	}
	return rho
}
