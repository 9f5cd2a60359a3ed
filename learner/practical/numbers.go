package practical

import (
	"math"
)

const (
	diagonalClip      = 0.25 // of a gradient without a whitener, in units of rho and of what clips a slope
	diagonalCurvature = 3.5
	diagonalNoise     = 4    // kappa
	matrixCut         = 0.7  // of what is reported for the matrix, in units of rho^2
	leastMean         = 0.01 // of a count, as a share of the largest
	leastDeviation    = 0.3  // of a count, in units of its mean
	numberLeast       = 1    // rho is at least 1 before the intercept is added
	largestShift      = 3    // of the start of a quantile, in deviations of the residual
	// what is thought of a label in its range as [-1, 1] before it is seen, as uncertain as it is large
	labelVariance = 0.1
	leastDensity  = 0.02 // of residuals at a quantile near 0 or 1, where steps would be without bounds
)

// A labelFit standardises labels: q = (y - center)/deviation.
type labelFit struct{ center, deviation float64 }

// fitLabel takes it from a label's moments. Numbers that no intercept can move have center 0.
func (p Problem) fitLabel(r released) labelFit {
	middle, half := p.labelRange()
	mean := min(max(r.label[0]/labelWeight, -1), 1)
	square := min(max(r.label[1]/labelWeight, 0), 1)
	switch {
	case p.counts():
		mean = max(mean, leastMean)
	case !p.centred():
		mean = 0
	}
	noise := r.sd / labelWeight
	weight := labelVariance * labelVariance / (labelVariance*labelVariance + noise*noise*(1+4*mean*mean))
	variance := labelVariance + weight*(max(square-mean*mean, 0)-labelVariance)
	deviation := math.Sqrt(min(1, variance+0.001+weight*noise/2))
	if p.counts() {
		deviation = max(deviation, leastDeviation*mean)
	}
	return labelFit{center: middle + half*mean, deviation: within(half * deviation)}
}

// beforeMatrix returns the frame in which the matrix is reported.
func (p Problem) beforeMatrix(r released) Learned {
	out := Learned{Gain: 1, Weight: 1}
	rho := p.frame(&out, p.seen(r), numberIntercept, numberLeast)
	label := p.fitLabel(r)
	f := &out.Frame
	f.Clip = within(matrixCut * rho * rho)
	f.LabelCenter, f.LabelScale, f.LabelWeight = label.center, label.deviation, within(rho)
	out.Report = Report{Norm: rho, Mean: label.center, Deviation: label.deviation}
	return out
}

// firstOfNumbers steps in scaled coordinates without a matrix; the residual is taken to be as large as the label's
// deviation.
func (p Problem) firstOfNumbers(l Layout, r released) (Learned, error) {
	at := p.shrunk(r)
	var out Learned
	rho := p.frame(&out, at, numberIntercept, numberLeast)
	label := p.fitLabel(r)
	s := p.score(&out, label, 1)
	if p.uniform() { // w is the point itself, so that the set is only scaled
		out.Gain, out.Weight = 1, out.Weight*out.Gain
	}
	clip := diagonalClip * s.clip * rho
	out.Frame.Clip = p.clipAt(clip * s.unit)
	noise := p.gradientNoise(l) * clip * math.Sqrt(float64(p.dim()))
	out.Curvature = within(diagonalCurvature*s.curvature*(at.top+at.mean) + diagonalNoise*noise + 2*p.ridgeCurvature(&out))
	out.Report = Report{Norm: rho, Mean: label.center, Deviation: label.deviation}
	start := make([]float64, p.dim())
	if at.away != nil { // no offset takes up the label's mean
		_, half := p.labelRange()
		mean := half * min(max(r.label[0]/labelWeight, -1), 1) / out.Gain
		if p.counts() {
			mean = math.Log(label.center)
		}
		p.level(start, &out, at, mean)
	}
	out.FromStart = p.Start != nil
	return out, p.begin(&out, p.from(&out, start))
}

// A scoring describes a loss as a function of the score z in which steps are made, if the residual of a linear
// fit to q has deviation r.
type scoring struct {
	unit      float64 // of slopes: those of the task's loss are this times those in z
	clip      float64 // to which slopes are cut, about
	curvature float64 // mean second derivative
	step      float64 // of descent along whitened coordinates
	slope     float64 // standard deviation of slopes at the fit, in z
	start     float64 // what a fit to q is multiplied with to be one to z
	clipped   float64 // share of gradients expected to be clipped at the fit, all of them being equally long
}

// score sets out.Gain and out.Offset, which turn z into the announced score, and the smoothing of slopes. It
// returns the loss's scoring in z.
func (p Problem) score(out *Learned, label labelFit, r float64) scoring {
	s, offset := label.deviation, label.center
	how := scoring{unit: s, clip: 1.5 * r, curvature: 1, step: 1, slope: r, start: 1, clipped: math.Erfc(1.5 / math.Sqrt2)}
	out.Gain = s
	switch p.Loss.Name {
	case "poisson":
		ratio := s / label.center
		out.Gain, offset = 1, math.Log(label.center)
		how = scoring{unit: label.center, clip: 1.5 * r * ratio, curvature: 1, step: 0.7, slope: r * ratio,
			start: 0.9 * ratio, clipped: how.clipped}
	case "huber":
		a := p.Loss.Width / s
		if how.clip >= a {
			how.clip, how.clipped = a, 0
		}
		how.curvature = max(0.25, math.Erf(a/(r*math.Sqrt2)))
		how.step, how.slope = 1/how.curvature, min(r, a)
	case "absolute", "quantile":
		level, unit := 0.5, 2.0
		if p.Loss.Name == "quantile" {
			level, unit = p.Loss.Level, 1
		}
		z := math.Sqrt2 * math.Erfinv(2*level-1)
		density := max(math.Exp(-z*z/2)/math.Sqrt(2*math.Pi), leastDensity)
		offset += s * r * min(max(z, -largestShift), largestShift)
		out.Frame.Smoothing = within(s * r / unit)
		how = scoring{unit: unit, clip: 1, curvature: density / r, step: 0.6 * r / density,
			slope: math.Sqrt(level * (1 - level)), start: 1}
	}
	out.Weight = 1 / how.unit
	if p.centred() {
		out.Offset = offset / out.Frame.Intercept
	}
	return how
}
