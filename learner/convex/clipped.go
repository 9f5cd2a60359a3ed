package convex

import "math"

// ClippedGradient overwrites dst, of the length of theta, with the gradient of the loss that is kept from
// rising faster than limit,
//
//	l_L(theta) = min_u l(u; e) + L ||theta - u||,
//
// and has norm at most limit whatever rounding does. l_L is convex, L-Lipschitz and as smooth as the loss,
// because its conjugate equals the loss's on the ball of radius L. Where the loss's gradient is no longer than
// L it is the loss's own gradient; elsewhere it is the gradient at the u where it has norm L and points from u
// to theta. For a loss of one linear score this is the gradient scaled down, see Clip. For several scores a
// gradient scaled down would be the gradient of no function: its work around a closed loop is not zero. Losses
// from outside of this package are clipped by Clip. Values that are not finite become zero, as in Clip.
func ClippedGradient(l Loss, dst, theta []float64, e Example, limit float64) {
	if c, ok := l.(clippable); !ok || !(limit > 0) || !c.clippedGradient(dst, theta, e, math.Inf(1), limit) {
		l.Gradient(dst, theta, e)
	}
	Clip(dst, limit)
}

// A clippable is a loss of several scores with a clipped gradient. clippedGradient overwrites dst with the
// gradient of the loss's envelope with parameter b, +Inf for the loss itself, and returns false where it cannot
// compute one. Clipping and smoothing add ||.||^2/(2b) and a ball to the conjugate, in either order.
type clippable interface {
	clippedGradient(dst, theta []float64, e Example, b, limit float64) bool
}

func (l envelope) clippedGradient(dst, theta []float64, e Example, b, limit float64) bool {
	c, ok := l.loss.(clippable)
	return ok && c.clippedGradient(dst, theta, e, 1/(1/b+1/l.b), limit)
}

func (l weighted) clippedGradient(dst, theta []float64, e Example, b, limit float64) bool {
	w := l.weight(e.Label)
	c, ok := l.base.(clippable)
	ok = ok && c.clippedGradient(dst, theta, e, b/w, limit/w)
	if ok {
		scale(dst, w)
	}
	return ok
}

// clippedGradient computes the gradient of the envelope with the smallest c = ||x||^2/b at which the slopes are
// short enough: the way to the prox is c times the slopes, as the way to the u of ClippedGradient is a multiple
// of the gradient there. It takes the same steps whether or not there is something to clip.
func (l Softmax) clippedGradient(dst, theta []float64, e Example, b, limit float64) bool {
	c, y := tempering(e, b), l.class(e.Label)
	if len(dst) == 0 || y < 0 {
		return false
	}
	s := l.scores(dst, theta, e)
	most := limit * (1 - 0x1p-39) / e.Norm() // below the limit by more than rounding
	t, norm := partition(s, y)
	cut := newTempered(s, y, c, most)
	if c > 0 || norm > most {
		cut.slopes(s)
	} else {
		probabilities(s, y, t)
	}
	l.spread(dst, e)
	return true
}
