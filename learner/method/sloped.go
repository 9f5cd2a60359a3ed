package method

import (
	"math"

	"github.com/panlearn/panlearn/learner/convex"
)

// A sloped holds what a round's gradients reveal about the losses at its point without a cut: the mean over users of
// slope times score, which is the inner product of gradient and point. For losses that are minus the log of a
// probability it is below the loss, by the entropy of the prediction. It stays below the loss when a gradient is scaled
// down, because a negative value is below 0 and so below every loss. All of this is released with the step.
type sloped struct {
	mean  float64 // over users, noise included
	reach float64 // bound on the magnitude of each user's value
	proxy float64 // sub-Gaussian variance proxy of the noise in mean
	users float64
}

// slopes returns the sloped of an estimated gradient at the method's point, or false if it gives no information about
// losses.
func (p *Practical) slopes(e Estimate) (sloped, bool) {
	if _, ok := p.Problem.Doubt(); !ok || p.inner == nil || p.learned.Frame.Smoothing != 0 || p.learned.Offset != 0 {
		return sloped{}, false
	}
	// A point is Gain times the whitener times w, and gradients are reported whitened and in units of the clip.
	w, unit := p.inner.Query().Point, p.learned.Gain*p.learned.Frame.Clip
	if len(w) != len(e.Gradient) {
		return sloped{}, false
	}
	out := sloped{users: float64(e.Users)}
	for i, g := range e.Gradient {
		out.mean += float64(g * w[i])
	}
	out.mean *= unit
	out.reach = unit * convex.Norm(w)
	out.proxy = float64(out.reach*out.reach) * e.NoiseProxy
	return out, true
}

// least returns a lower bound on the mean loss. With sample it is about all users, of whom the round's users are a
// sample, else about the round's users alone. It is too large with probability at most twice exp(-rare): once for the
// noise, by Chernoff's bound, and once for the sample, see leastMean. doubt is the result of practical.Problem.Doubt.
func (s sloped) least(doubt, rare float64, sample bool) float64 {
	of := s.mean - math.Sqrt(2*s.proxy*rare)
	if sample {
		of = leastMean(of, -min(doubt, s.reach), s.reach, s.users, rare)
	}
	return max(0, of)
}

// leastMean returns the smallest expectation in [low, high] under which n independent numbers in that range have a mean
// of at least the observed one with probability above exp(-rare), by Chernoff's and Hoeffding's bound exp(-n
// KL(observed, expected)) of their places in it.
func leastMean(observed, low, high, n, rare float64) float64 {
	if !(observed > low) || !(high > low) {
		return low
	}
	p := min((observed-low)/(high-low), 1)
	divergence := func(q float64) float64 {
		kl := float64(p * math.Log(p/q))
		if p < 1 {
			kl += float64((1 - p) * math.Log((1-p)/(1-q)))
		}
		return kl
	}
	from, to := 0.0, p
	for range 60 {
		if q := (from + to) / 2; q > 0 && n*divergence(q) < rare {
			to = q
		} else {
			from = q
		}
	}
	return low + float64(from*(high-low))
}
