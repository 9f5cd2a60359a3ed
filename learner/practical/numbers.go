package practical

import (
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

const (
	diagonalClip      = 0.25 // of a gradient without a whitener, in units of rho and of what clips a slope
	diagonalCurvature = 3.5
	diagonalNoise     = 4    // kappa
	matrixCut         = 0.7  // clip of a report for the matrix, in units of rho^2
	leastMean         = 0.01 // of a count, as a share of the largest
	leastDeviation    = 0.3  // of a count, in units of its mean
	// prior variance of a label scaled to [-1, 1], whose uncertainty is as large
	labelVariance = 0.1
)

// A labelFit standardises labels: q = (y - center)/deviation.
type labelFit struct{ center, deviation float64 }

// A numberLook turns a first look at numbers or counts into the frame of the next rounds and their steps.
type numberLook struct {
	shape
	released
}

// fitLabel computes the labelFit from a label's moments. The center is 0 if no intercept can shift the scores.
func (s numberLook) fitLabel() labelFit {
	mean := min(max(s.label[0]/labelWeight, -1), 1)
	square := min(max(s.label[1]/labelWeight, 0), 1)
	switch {
	case s.counts():
		mean = max(mean, leastMean)
	case !s.centred:
		mean = 0
	}
	noise := s.sd / labelWeight
	weight := labelVariance * labelVariance / (labelVariance*labelVariance + noise*noise*(1+4*mean*mean))
	variance := labelVariance + weight*(max(square-mean*mean, 0)-labelVariance)
	deviation := math.Sqrt(min(1, variance+0.001+weight*noise/2))
	if s.counts() {
		deviation = max(deviation, leastDeviation*mean)
	}
	return labelFit{center: s.middle + s.half*mean, deviation: within(s.half * deviation)}
}

// beforeMatrix returns the frame in which the matrix is reported.
func (s numberLook) beforeMatrix() Learned {
	out := Learned{Gain: 1, Weight: 1}
	rho := s.frame(&out, s.seen(s.released))
	label := s.fitLabel()
	f := &out.Frame
	f.Clip = within(matrixCut * rho * rho)
	f.LabelCenter, f.LabelScale, f.LabelWeight = label.center, label.deviation, within(rho)
	out.Report = Report{Norm: rho, Mean: label.center, Deviation: label.deviation}
	return out
}

// withoutMatrix returns the frame and steps in scaled coordinates without a matrix. It assumes a residual as large as
// the label's deviation.
func (s numberLook) withoutMatrix(l Layout) (Learned, error) {
	at, label := s.shrunk(s.released), s.fitLabel()
	var out Learned
	rho := s.frame(&out, at)
	how := s.score(&out, label, 1)
	if s.uniform { // w is the point itself, so that the set is only scaled
		out.Gain, out.Weight = 1, out.Weight*out.Gain
	}
	out.Report = Report{Norm: rho, Mean: label.center, Deviation: label.deviation}
	start := make([]float64, s.dim)
	if s.Continuous {
		s.stream(&out, how)
		err := out.begin(s.from(&out, start))
		return out, err
	}
	clip := diagonalClip * how.Clip * rho
	out.Frame.Clip = s.clipAt(clip * how.Unit)
	noise := s.gradientNoise(l) * clip * math.Sqrt(float64(s.dim))
	out.Curvature = within(diagonalCurvature*how.Curvature*(at.top+at.mean) + diagonalNoise*noise +
		2*out.ridgeCurvature(s.Ridge, s.Intercept))
	if at.away != nil { // no offset takes up the label's mean
		mean := s.half * min(max(s.label[0]/labelWeight, -1), 1) / out.Gain
		if s.traits.Scores == convex.LogMean {
			mean = math.Log(label.center)
		}
		out.level(start, at, mean)
	}
	out.FromStart = s.Start != nil
	err := out.begin(s.from(&out, start))
	return out, err
}

// score sets out.Gain and out.Offset, which turn the z of a loss's shape into the announced score, and the smoothing of
// slopes. It returns the shape for a linear fit whose residual has deviation r, in units of the label's deviation.
func (s shape) score(out *Learned, label labelFit, r float64) convex.FitShape {
	how := s.Loss.FitShape(convex.Residuals{Center: label.center, Deviation: label.deviation, Left: r})
	out.Gain, out.Weight = how.Gain, 1/how.Unit
	if how.Smoothing > 0 {
		out.Frame.Smoothing = within(how.Smoothing)
	}
	if s.centred {
		out.Offset = how.Offset / out.Frame.Intercept
	}
	return how
}
