package practical

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

const (
	classLeast     = 1   // rho is at least 1
	classClip      = 0.7 // of a gradient, in units of rho times the slope of the loss at 0, at least
	mostClip       = 2   // at most
	clipNoise      = 0.2 // share of v, without noise, that the noise of a longer clip may add
	classCurvature = 1.2 // v in units of the curvature of the loss
)

func (p Problem) firstOfClasses(l Layout, r released) (Learned, error) {
	at := p.shrunk(r)
	out := Learned{Gain: 1, Weight: 1}
	rho := p.frame(&out, at, classIntercept, classLeast)
	shares := p.shares(r, l)
	weighted, mean := p.weighted(shares)
	shape := p.Loss.ClassShape()
	curvature := shape.Bend(weighted)
	out.Frame.Smoothing = shape.Smoothing
	noise := shape.Noise * p.gradientNoise(l) * math.Sqrt(float64(p.dim())) // that one unit of clip adds to v
	steepest := shape.Slope * p.heaviest() * rho
	longer := min(clipNoise*classCurvature*mean*curvature/noise, mostClip*steepest)
	out.Frame.Clip = p.clipAt(max(classClip*steepest, longer))
	out.Curvature = within(classCurvature*mean*curvature*(at.top+at.mean) + noise*out.Frame.Clip +
		2*p.ridgeCurvature(&out))
	out.Trust = classCurvature * mean * curvature / p.slopes(shares, weighted)
	out.Report = Report{Norm: rho, Shares: shares, Noise: p.shareNoise(r, l), Clipped: p.clippedAtStart(shares,
		out.Frame.Clip/rho)}
	out.FromStart = p.Start != nil && l.Rounds == 1 // of few users: else it costs more than it saves
	return out, p.begin(&out, p.from(&out, p.startAt(&out, at, weighted)))
}

// slopes returns the mean square of the slope of the loss at the best constant. The gradient there is a mean of rows
// times slopes, so the second moment of rows along it is at least its square over that of the slopes.
func (p Problem) slopes(shares, weighted []float64) (square float64) {
	var squares float64
	shape := p.Loss.ClassShape()
	for _, s := range weighted {
		squares += s * s
	}
	for k, s := range weighted {
		square += shares[k] * p.weight(k) * p.weight(k) * shape.Square(s, squares)
	}
	return square
}

// smooths reports whether slopes of the loss are smoothed. For a loss that needs no smoothing, it would only
// make a row's time depend on its contents.
func (p Problem) smooths() bool { return p.traits().Rounded || !p.traits().Smooth }

// shares returns the shares of the classes, at least as large as their noise, and without the labels' noise.
func (p Problem) shares(r released, l Layout) []float64 {
	least, out := r.sd, slices.Clone(r.label)
	if p.labels() == convex.TwoClasses {
		least /= 2 * (1 - 2*p.Loss.LabelNoise)
		plus := 0.5 + r.label[0]/2/(1-2*p.Loss.LabelNoise)
		out = []float64{1 - plus, plus}
	}
	others := float64(len(out) - 1)
	least = min(max(least, 1/float64(l.MomentUsers+1)), 1/(others+1))
	sum := 0.0
	for i, v := range out {
		out[i] = min(max(v, least), 1-others*least)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// shareNoise returns the standard deviation of a released share: of its noise, and at most of the sample.
func (p Problem) shareNoise(r released, l Layout) float64 {
	sd := r.sd
	if p.labels() == convex.TwoClasses {
		sd /= 2 * (1 - 2*p.Loss.LabelNoise)
	}
	return math.Sqrt(sd*sd + 0.25/float64(max(1, l.MomentUsers)))
}

// weighted returns shares as the loss counts them, and the mean weight of an event.
func (p Problem) weighted(shares []float64) (out []float64, mean float64) {
	if out = slices.Clone(shares); p.Loss.ClassWeights == nil {
		return out, 1
	}
	for i, w := range p.Loss.ClassWeights {
		out[i] *= w
		mean += out[i]
	}
	for i := range out {
		out[i] /= mean
	}
	return out, mean
}

// startAt gives every row the log odds of the shares as its score, without an intercept the mean row; zero for scores
// that are no log odds.
func (p Problem) startAt(l *Learned, at coordinates, shares []float64) []float64 {
	start := make([]float64, p.Blocks()*p.dim())
	switch p.traits().Scores {
	case convex.LogOdds:
		p.level(start, l, at, math.Log(shares[1]/shares[0]))
	case convex.LogProbabilities:
		mean := 0.0
		for _, s := range shares {
			mean += math.Log(s) / float64(len(shares))
		}
		for k, s := range shares {
			p.level(start[k*p.dim():(k+1)*p.dim()], l, at, math.Log(s)-mean)
		}
	}
	return start
}

// clippedAtStart returns the share of gradients that are clipped at the start, if all u have norm rho: those of
// the classes whose slope, times the weight of the class, is larger than the clip.
func (p Problem) clippedAtStart(shares []float64, clip float64) float64 {
	at, _ := p.weighted(shares)
	if p.Intercept == 0 {
		for i := range at {
			at[i] = 1 / float64(len(at))
		}
	}
	var squares, out float64
	for _, s := range at {
		squares += s * s
	}
	shape := p.Loss.ClassShape()
	for k, s := range at {
		if p.weight(k)*shape.Length(s, squares) > clip {
			out += shares[k]
		}
	}
	return out
}
