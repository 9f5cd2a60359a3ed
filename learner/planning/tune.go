package planning

import (
	"math"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/schedule"
)

// An objective holds the constants in the bounds of the function that a phase minimises, in the units of theta
// and of the loss. Its expected excess risk is the risk of the loss (of its convex surrogate where gradients
// are clipped) plus the ridge.
type objective struct {
	lipschitz  float64 // L, of the clipped loss
	dim        int
	smoothness float64 // beta of one example's loss, +Inf if there is none
	mean       float64 // of the mean loss over the population, at most smoothness
	ridge      float64 // lambda
	radius     float64 // R, of the set around the origin
	continuous string
	rough      bool // search few step sizes of a weighted average, because many objectives are compared
}

// A situation is a phase about to begin.
type situation struct {
	distance float64 // D: E||start - optimum||^2 is at most D^2
	prior    float64 // bound on the expected excess risk of the start
	// users is the number of units in one round; if the same units answer all rounds, the units of all silos, even if each
	// round has only some of them.
	users uint64
	steps uint64 // T
	// variance is E||estimate - expectation||^2 of a round, including the sampling of new users and the drawing of silos.
	variance float64
	rounding float64 // the part of variance from stochastic rounding
	drawn    bool    // each round has some of the silos, drawn for it
}

// A setting is a choice of a method's constants, with the bound that they give.
type setting struct {
	stepSize, v, mu, smoothness, smoothing float64
	risk                                   float64
}

// regularLipschitz bounds the gradient of loss and ridge together.
func (o objective) regularLipschitz() float64 { return o.lipschitz + o.ridge*o.radius }

// tune returns the constants with the smallest bound; see docs/reference/bounds.md for the assumptions of each bound.
func (o objective) tune(t schedule.Method, s situation) setting {
	switch {
	case t.OnRecords():
		return o.repeated(s, t.Envelope)
	case t.Interactive && t.Envelope:
		return o.gradientEnvelope(s)
	case t.Interactive:
		return o.gradient(s, math.Inf(1))
	case t.Accelerated && t.Envelope:
		return o.acceleratedEnvelope(s)
	case t.Accelerated:
		return o.accelerated(s, o.mean)
	}
	return o.stochastic(s)
}

// Weights are taken where the product of step size and ridge lies between these: below, they are equal to within
// rounding errors.
const leastShare, mostShare = 1e-7, 0.999

// stochastic returns the setting of PSGD, Lemma 4.2.
func (o objective) stochastic(s situation) setting {
	l := o.regularLipschitz()
	second := l*l + s.variance
	out := setting{stepSize: PSGDStepSize(s.distance, second, s.steps)}
	if o.continuous != "" {
		out.risk = streamBound(s.distance, o.radius, second, out.stepSize, s.steps, o.continuous == schedule.Decaying)
	} else {
		out.risk = PSGDBound(s.distance, second, out.stepSize, s.steps)
	}
	if o.ridge > 0 && o.continuous == "" {
		bound := func(eta float64) float64 { return weightedBound(s.distance, second, eta, o.ridge, s.steps) }
		out = o.weigh(out, mostShare/o.ridge, bound)
	}
	return out
}

// weigh returns the setting with the step size of the smallest bound on a weighted average, up to a longest one, if
// that is below the bound of equal.
func (o objective) weigh(equal setting, longest float64, bound func(eta float64) float64) setting {
	var eta float64
	if o.rough {
		least := math.Inf(1)
		for _, times := range [...]float64{0.25, 0.5, 1, 2, 4} {
			if r := bound(min(times*equal.stepSize, longest)); r < least {
				eta, least = min(times*equal.stepSize, longest), r
			}
		}
	} else {
		eta = smallest(min(equal.stepSize, longest)/1e2, min(equal.stepSize*1e2, longest), bound)
	}
	if r := bound(eta); r < equal.risk && eta*o.ridge > leastShare {
		equal.stepSize, equal.mu, equal.risk = eta, o.ridge, r
	}
	return equal
}

// accelerated returns the setting of PAGD on a loss of finite smoothness beta. With a ridge its steps make use
// of it, and v may be as small as the smoothness.
func (o objective) accelerated(s situation, beta float64) setting {
	beta += o.ridge
	if o.continuous == schedule.Epochs {
		return o.epochs(s, beta)
	}
	best := setting{risk: math.Inf(1)}
	for _, v := range [...]float64{PAGDCurvature(s.distance, beta, s.variance, s.steps), beta} {
		if r := PAGDBound(s.distance, s.variance, v, beta, o.ridge, s.steps); r < best.risk {
			best = setting{v: v, mu: o.ridge, smoothness: beta, risk: r}
		}
	}
	return best
}

// repeated returns the setting of PAGD on the mean loss of the same users in every round (Theorem 4.1 of Lowy,
// Razaviyayn, ICLR 2023), whose smoothness counts. The variance of the situation is without sampling, and the
// risk that on this mean loss.
func (o objective) repeated(s situation, envelope bool) setting {
	var unlucky float64
	if of := s.smoothness(o); of < o.smoothness {
		unlucky = 2 * unlikely * o.regularLipschitz() * o.radius // two points of the set are 2R apart at most
		o.mean = of
	} else {
		o.mean = o.smoothness
	}
	out := setting{}
	if envelope {
		out = o.acceleratedEnvelope(s)
	} else {
		out = o.accelerated(s, o.mean)
	}
	out.risk += unlucky
	return out
}

// epochs returns the setting of PAGD in epochs of 1, 2, 4 .. steps, T = 2^k - 1 in all, with one v that is
// scaled to each. The bound holds for the model at the end of the last epoch. Each epoch starts within the
// set's diameter of the optimum, or nearer where a ridge bounds the distance.
func (o objective) epochs(s situation, beta float64) setting {
	var risk float64
	distance, last := s.distance, (s.steps+1)/2
	v := PAGDCurvature(2*o.radius, beta, s.variance, s.steps)
	series := method.EpochsConfig{Horizon: s.steps, V: v, Smoothness: beta}
	for k := uint64(0); ; k++ {
		epoch := series.Epoch(k)
		risk = PAGDBound(distance, s.variance, epoch.V, beta, o.ridge, epoch.Steps)
		if epoch.Steps >= last {
			return setting{v: v, mu: o.ridge, smoothness: beta, risk: risk}
		}
		if distance = 2 * o.radius; o.ridge > 0 {
			distance = min(distance, restartDistance(risk, o.ridge))
		}
	}
}

// acceleratedEnvelope returns the setting of PAGD on the envelope, with the smoothing that balances its bound
// against what the envelope is below the loss.
func (o objective) acceleratedEnvelope(s situation) setting {
	at := func(b float64) setting {
		out := o.accelerated(s, min(o.mean, o.envelopeSmoothness(b)))
		out.smoothing, out.risk = b, out.risk+envelopeGap(o.lipschitz, b)
		return out
	}
	guess := envelopeSmoothing(o.lipschitz, s.distance, s.variance, s.steps)
	if o.ridge == 0 && math.IsInf(o.smoothness, 1) && o.continuous == "" {
		return at(guess) // exact then
	}
	return at(smallest(guess/1e2, guess*o.reach(), func(b float64) float64 { return at(b).risk }))
}

// reach returns the largest ratio of the best smoothing to the guess for a loss that is not smooth: it is large
// where the loss is smooth itself.
func (o objective) reach() float64 {
	if math.IsInf(o.smoothness, 1) {
		return 1e2
	}
	return 1e6
}

// envelopeSmoothness returns the smoothness of the envelope of a beta-smooth loss: 1/(1/beta + 1/B).
func (o objective) envelopeSmoothness(b float64) float64 {
	switch {
	case math.IsInf(o.smoothness, 1):
		return b
	case math.IsInf(b, 1):
		return o.smoothness
	}
	return o.smoothness / (1 + o.smoothness/b)
}

// unlikely is the probability with which users may be less smooth in the mean than empiricalSmoothness. The
// bound includes the worst case then.
const unlikely = 1e-9

// smoothness bounds the smoothness of the mean loss of all units of a situation, except with probability
// unlikely.
func (s situation) smoothness(o objective) float64 {
	return empiricalSmoothness(o.smoothness, o.mean, s.users, o.dim, unlikely)
}

// gradient returns the setting of PGD on the envelope with parameter B, +Inf for a smooth loss itself. The
// bound needs the smoothness of these users' mean loss in every round, not of the population's, and one event's
// smoothness where a round has some of the silos, which may be like none of the others.
func (o objective) gradient(s situation, smoothing float64) setting {
	l := o.regularLipschitz()
	beta, risk := o.envelopeSmoothness(smoothing), 0.0
	if of := s.smoothness(o); of < beta && !s.drawn {
		// two points of the set are 2R apart at most, as to risk and as to generalisation
		beta, risk = of, 4*unlikely*l*o.radius
	}
	beta += o.ridge
	b := gradientBound{situation: s, loss: o.lipschitz, whole: l, beta: beta, ridge: o.ridge}
	slope := b.stability()
	best := setting{risk: math.Inf(1)}
	consider := func(limit, rise float64) {
		eta := min(limit, s.distance/math.Sqrt(2*float64(s.steps)*rise))
		if r := risk + b.risk(eta); r < best.risk {
			best = setting{stepSize: eta, smoothness: beta, risk: r}
		}
	}
	// The first term of either bound falls like D^2/(2 eta T), the rest rises at most in proportion to eta, up to a limit
	// of eta that the bound sets. How close to 1/beta the descent lemma is worth going depends on the noise.
	consider(2/(beta+o.ridge), (l*l+s.variance)/2+slope)
	for _, share := range [...]float64{0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99} {
		consider(share/beta, s.variance/(2*(1-share))+slope+2*slope/float64(s.steps))
	}
	if o.ridge > 0 {
		bound := func(eta float64) float64 { return risk + b.weighted(eta) }
		best = o.weigh(best, min(2/(beta+o.ridge), mostShare/o.ridge), bound)
	}
	return best
}

// gradientEnvelope returns the setting of PGD on the envelope. The step size requires a smoothing of at most 2/eta, and
// the largest is the best.
func (o objective) gradientEnvelope(s situation) setting {
	at := func(b float64) setting {
		out := o.gradient(s, b)
		out.smoothing, out.risk = b, out.risk+envelopeGap(o.lipschitz, b)
		return out
	}
	guess := 2 * math.Sqrt(float64(s.steps)) * max(o.lipschitz, math.Sqrt(s.variance)) / s.distance
	o.rough = true
	b := smallest(guess/1e3, guess*o.reach(), func(b float64) float64 { return at(b).risk })
	o.rough = false
	return at(b)
}

// smallest returns where a function of one positive variable is smallest between low and high: on a grid of ratio 3,
// and between the neighbours of its best by golden sections of the logarithm, to a hundredth, which is enough at a flat
// minimum.
func smallest(low, high float64, f func(float64) float64) float64 {
	const ratio = 3
	at, best := low, math.Inf(1)
	for x := low; x < ratio*high; x *= ratio {
		if y := f(min(x, high)); y < best {
			at, best = min(x, high), y
		}
	}
	golden := (math.Sqrt(5) - 1) / 2
	a, b := math.Log(max(low, at/ratio)), math.Log(min(high, at*ratio))
	x, y := b-golden*(b-a), a+golden*(b-a)
	fx, fy := f(math.Exp(x)), f(math.Exp(y))
	for b-a > 1e-2 {
		if fx <= fy {
			b, y, fy = y, x, fx
			x = b - golden*(b-a)
			fx = f(math.Exp(x))
		} else {
			a, x, fx = x, y, fy
			y = a + golden*(b-a)
			fy = f(math.Exp(y))
		}
	}
	switch {
	case best <= min(fx, fy):
		return at
	case fx <= fy:
		return math.Exp(x)
	}
	return math.Exp(y)
}
