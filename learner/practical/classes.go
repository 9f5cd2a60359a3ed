package practical

import (
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

const (
	classClip      = 0.7 // least clip of a gradient, in units of rho times the slope of the loss at 0
	mostClip       = 2   // largest clip, in the same units
	clipNoise      = 0.2 // share of v, without noise, that the noise of a longer clip may add
	classCurvature = 1.2 // v in units of the curvature of the loss
)

// A classLook turns a first look at classes into the frame of gradients and their steps.
type classLook struct {
	shape
	released
	layout           Layout
	at               coordinates
	rho              float64
	curve            convex.ClassShape
	shares, weighted []float64 // of the classes, and as the loss counts them
	meanWeight       float64   // of an event
}

func (s shape) firstOfClasses(l Layout, r released) (Learned, error) {
	c := classLook{shape: s, released: r, layout: l, at: s.shrunk(r), curve: s.Loss.ClassShape()}
	c.shares = c.classShares()
	c.weighted, c.meanWeight = s.weights.weighted(c.shares)
	out := Learned{Gain: 1}
	c.rho = s.frame(&out, c.at)
	out.Frame.Smoothing = c.curve.Smoothing
	if s.Continuous {
		c.stream(&out)
	} else {
		c.steps(&out)
	}
	out.Report = Report{Norm: c.rho, Shares: c.shares, Noise: c.shareNoise(),
		Clipped: c.clippedAtStart(out.Frame.Clip / c.rho)}
	err := out.begin(s.from(&out, c.startAt(&out)))
	return out, err
}

// steps sets the clip and the steps of a task that ends.
func (c *classLook) steps(out *Learned) {
	out.Weight = 1
	curvature := c.curve.Bend(c.weighted)
	noise := c.curve.Noise * c.gradientNoise(c.layout) * math.Sqrt(float64(c.dim)) // added to v by one unit of clip
	steepest := c.curve.Slope * c.weights.heaviest() * c.rho
	longer := min(clipNoise*classCurvature*c.meanWeight*curvature/noise, mostClip*steepest)
	out.Frame.Clip = c.clipAt(max(classClip*steepest, longer))
	out.Curvature = within(classCurvature*c.meanWeight*curvature*(c.at.top+c.at.mean) + noise*out.Frame.Clip +
		2*out.ridgeCurvature(c.Ridge, c.Intercept))
	out.Trust = classCurvature * c.meanWeight * curvature / c.slopes()
	out.FromStart = c.Start != nil && c.layout.Rounds == 1 // only with few users: otherwise it costs more than it saves
}

// slopes returns the mean square of the slope of the loss at the best constant. The gradient there is a mean of rows
// times slopes, so the second moment of rows along it is at least its square over the second moment of the slopes.
func (c *classLook) slopes() (square float64) {
	var squares float64
	for _, s := range c.weighted {
		squares += s * s
	}
	for k, s := range c.weighted {
		square += c.shares[k] * c.weights.of(k) * c.weights.of(k) * c.curve.Square(s, squares)
	}
	return square
}

// classShares returns the shares of the classes, corrected for noisy labels and raised to at least their noise.
func (c *classLook) classShares() []float64 {
	least, out := c.sd, slices.Clone(c.label)
	if c.traits.Labels == convex.TwoClasses {
		least /= 2 * (1 - 2*c.Loss.LabelNoise)
		plus := 0.5 + c.label[0]/2/(1-2*c.Loss.LabelNoise)
		out = []float64{1 - plus, plus}
	}
	others := float64(len(out) - 1)
	least = min(max(least, 1/float64(c.layout.MomentUsers+1)), 1/(others+1))
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
func (c *classLook) shareNoise() float64 {
	sd := c.sd
	if c.traits.Labels == convex.TwoClasses {
		sd /= 2 * (1 - 2*c.Loss.LabelNoise)
	}
	return math.Sqrt(sd*sd + 0.25/float64(max(1, c.layout.MomentUsers)))
}

// startAt gives every row the log odds of the weighted shares as its score, without an intercept the mean row; zero for
// scores that are no log odds.
func (c *classLook) startAt(l *Learned) []float64 {
	start := make([]float64, c.blocks*c.dim)
	switch c.traits.Scores {
	case convex.LogOdds:
		l.level(start, c.at, math.Log(c.weighted[1]/c.weighted[0]))
	case convex.LogProbabilities:
		mean := 0.0
		for _, s := range c.weighted {
			mean += math.Log(s) / float64(len(c.weighted))
		}
		for k, s := range c.weighted {
			l.level(start[k*c.dim:(k+1)*c.dim], c.at, math.Log(s)-mean)
		}
	}
	return start
}

// clippedAtStart returns the share of gradients that are clipped at the start, if all u have norm rho: the gradients of
// classes whose slope, times the weight of the class, exceeds the clip.
func (c *classLook) clippedAtStart(clip float64) float64 {
	at := slices.Clone(c.weighted)
	if c.Intercept == 0 {
		for i := range at {
			at[i] = 1 / float64(len(at))
		}
	}
	var squares, out float64
	for _, s := range at {
		squares += s * s
	}
	for k, s := range at {
		if c.weights.of(k)*c.curve.Length(s, squares) > clip {
			out += c.shares[k]
		}
	}
	return out
}
