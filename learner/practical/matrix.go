package practical

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/panlearn/panlearn/learner/convex"
)

const (
	largestLabel                   = 3         // of q in the matrix, in magnitude
	noiseDamping, leastDamping     = 0.6, 0.01 // of the matrix, in units of its noise's norm and of its mean eigenvalue
	descentNoise                   = 0.2       // kappa: shortens steps because of the noise of gradients
	leastSquare, largestSquare     = 0.05, 1.5 // of q
	leastResidual, largestResidual = 0.02, 1   // mean square that a fit to q leaves
)

// MatrixDim returns the number of coordinates that a user of the matrix reports.
func (p Problem) MatrixDim() int {
	d := p.shape().dim
	return d*(d+1)/2 + d + 1
}

// Matrix overwrites dst, of length MatrixDim, with the statistic of a row u in the coordinates of First's
// frame, before it is clipped: the lower triangle of u u' by rows, its entries off the diagonal times sqrt(2),
// so that the norm is the whole matrix's; rho q u; and rho q^2, where q is the label in deviations from
// its center, cut to [-3, 3].
func (p Problem) Matrix(dst []float64, f *convex.Frame, u convex.Example, label float64) {
	q := min(max((label-f.LabelCenter)/f.LabelScale, -largestLabel), largestLabel)
	at := 0
	for i, v := range u.Value {
		for _, w := range u.Value[:i] {
			dst[at] = math.Sqrt2 * v * w
			at++
		}
		dst[at] = v * v
		at++
	}
	for _, v := range u.Value {
		dst[at] = f.LabelWeight * q * v
		at++
	}
	dst[at] = f.LabelWeight * q * q
}

// Second turns the mean of the matrix's cohort into the frame of the gradients: whitened, with a start at the linear
// fit and with the residual of the fit. first is First's result; mean is the mean of the clipped vectors, in their own
// units, and sd the noise of each number in it.
func (p Problem) Second(first Learned, mean []float64, sd float64) (Learned, error) {
	if err := checkReleased(mean, sd, p.MatrixDim()); err != nil {
		return Learned{}, err
	}
	s := p.shape()
	d, rho := s.dim, first.Frame.LabelWeight
	sd = min(sd, convex.MaxScale)
	most := first.Frame.Clip + 10*sd
	h, b, at := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil), 0
	next := func() float64 { at++; return min(max(mean[at-1], -most), most) }
	for i := range d {
		for j := range i {
			h.SetSym(i, j, next()/math.Sqrt2)
		}
		h.SetSym(i, i, next())
	}
	for j := range d {
		b.SetVec(j, next()/rho)
	}
	square := min(max(next()/rho, leastSquare), largestSquare)
	damping := noiseDamping*sd*math.Sqrt(2*float64(d)) + leastDamping*rho*rho/float64(d)

	seen, err := eigen(h)
	if err != nil {
		return Learned{}, err
	}
	fit := seen.solve(b, damping)
	r := math.Sqrt(min(max(square-max(0, 2*mat.Dot(b, fit)-seen.form(fit)), leastResidual), largestResidual))
	k := max(seen.effective(damping), 1)

	out := Learned{Set: s.Set, Frame: first.Frame}
	f := &out.Frame
	how := s.score(&out, labelFit{center: f.LabelCenter, deviation: f.LabelScale}, r)
	out.Report = Report{Norm: first.Report.Norm, Mean: f.LabelCenter, Deviation: f.LabelScale, Residual: r * f.LabelScale,
		Effective: k, Clipped: how.Clipped}
	f.LabelCenter, f.LabelScale, f.LabelWeight = 0, 0, 0
	if s.Ridge > 0 {
		if seen, err = s.addRidge(&out, how.Curvature, seen, b); err != nil {
			return Learned{}, err
		}
	}
	if s.Start != nil {
		at := mat.NewVecDense(d, s.from(&out, nil))
		at.ScaleVec(1/how.Start, at)
		noise := matrixNoise{of: sd, rho: rho}
		if out.FromStart = !seen.beyond(b, at, noise); out.FromStart {
			b = seen.toward(b, at, damping, noise)
		}
	}
	f.Whitener = seen.whitener(damping)
	f.Clip = s.clipAt(how.Clip * math.Sqrt(k) * how.Unit)
	out.Step = 1 / (1/how.Step + descentNoise*s.noiseAfter(sd/first.Frame.Clip)*how.Clip*math.Sqrt(k*float64(d))/r)
	start := make([]float64, d)
	f.Whiten(start, b.RawVector().Data)
	for j := range start {
		start[j] *= how.Start
	}
	err = out.begin(start)
	return out, err
}

// noiseAfter converts the noise of one coordinate of the matrix's mean, in units of its clip, to the noise of
// one coordinate of a mean gradient, in units of the gradient's clip.
func (s shape) noiseAfter(sd float64) float64 {
	if s.Even {
		return sd * s.radius
	}
	return sd * s.radius * matrixShare * s.parts(matrixRounds) / (1 - leastMoments - matrixShare)
}

// addRidge adds the ridge to a matrix, and subtracts the ridge's gradient at the offset from b.
func (s shape) addRidge(l *Learned, curvature float64, seen spectrum, b *mat.VecDense) (spectrum, error) {
	one, pull := make([]float64, s.dim), make([]float64, s.dim)
	h := seen.matrix(func(l float64) float64 { return l })
	for i := range s.dim {
		clear(one)
		one[i] = 1
		l.Frame.Ridge(pull, one, s.Ridge*l.Gain*l.Weight/curvature, s.Intercept)
		for j := range i + 1 {
			h.SetSym(i, j, h.At(i, j)+pull[j])
		}
	}
	if l.Offset != 0 {
		clear(one)
		one[s.dim-1] = l.Offset
		l.Frame.Ridge(pull, one, s.Ridge*l.Weight/curvature, s.Intercept)
		b.SubVec(b, mat.NewVecDense(s.dim, pull))
	}
	return eigen(h)
}
