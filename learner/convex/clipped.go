package convex

import "math"

// ClippedGradient overwrites dst, of the length of theta, with the gradient of the loss that is kept from rising faster than limit,
//
//	l_L(theta) = min_u l(u; e) + L ||theta - u||,
//
// and has norm at most limit whatever rounding does. l_L is convex, L-Lipschitz and as smooth as the loss, because its conjugate is that of
// the loss on the ball of radius L. Where the loss's gradient is no longer than L it is the gradient; elsewhere it is the gradient at
// the u where that has norm L and points from u to theta. For a loss of one linear score this is the gradient scaled down, see Clip, which
// of several scores would be the gradient of nothing: its work around a closed loop is not zero. Losses from outside of this package
// are clipped by Clip. What is not finite becomes zero, as in Clip.
func ClippedGradient(l Loss, dst, theta []float64, e Example, limit float64) {
	if c, ok := l.(clippable); !ok || !(limit > 0) || !c.clippedGradient(dst, theta, e, math.Inf(1), limit) {
		l.Gradient(dst, theta, e)
	}
	Clip(dst, limit)
}

// clippable is a loss of several scores, or false. The gradient is that of its envelope with parameter b, +Inf for the loss itself:
// clipping and smoothing add ||.||^2/(2b) and a ball to the conjugate, in whichever order.
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

// clippedGradient is that of the envelope with the smallest c = ||x||^2/b at which the slopes are short enough: the way to the prox is
// c times the slopes, as the way to the u of ClippedGradient is a multiple of the gradient there. Newton's method finds c by the
// inverse of the slopes' norm, which is nearly linear in c. The loss is at least 0 at the prox, so c is at most l/norm^2.
func (l Softmax) clippedGradient(dst, theta []float64, e Example, b, limit float64) bool {
	c, y, features := curvature(e, b), l.class(e.Label), len(theta)/l.Classes
	if features == 0 {
		return false
	}
	l.scores(dst, theta, e)
	t, most := l.partition(dst, y, c, math.Inf(-1)), limit*(1-0x1p-39)/e.Norm() // below the limit by more than rounding
	if norm, _ := l.slopesAt(dst, y, c, t); norm > most && y >= 0 {
		var total logSum
		for j := range l.Classes {
			total.add(dst[j*features] - dst[y*features])
		}
		c = root(c, c+total.log()/most/most, c, func(c float64) (float64, float64) {
			t = l.partition(dst, y, c, t)
			norm, bend := l.slopesAt(dst, y, c, t)
			if math.Abs(norm-most) <= 1e-12*most {
				return 0, 1
			}
			return 1/norm - 1/most, bend / norm / norm / norm
		})
		t = l.partition(dst, y, c, t)
	}
	l.shrink(dst, y, c, t)
	for j := range l.Classes {
		block := dst[j*features : (j+1)*features]
		v := block[0]
		clear(block)
		e.AddTo(block, v)
	}
	return true
}

// slopesAt returns the norm of v = q - [. = y] for the scores in the first entries of dst's blocks, and minus half the derivative of its
// square by c, which is sum w (v - mean)^2 with the weights w = q/(1 + c q) and the mean that they give.
func (l Softmax) slopesAt(dst []float64, y int, c, t float64) (norm, bend float64) {
	features := len(dst) / l.Classes
	var others, squares, weight, first, second float64
	add := func(q, v float64) {
		w := q / (1 + float64(c*q))
		squares += float64(v * v)
		weight += w
		first += float64(w * v)
		second += float64(w*v) * v
	}
	for j := range l.Classes {
		if j != y {
			q := expSlope(dst[j*features]-t, c)
			others += q
			add(q, q)
		}
	}
	if y >= 0 {
		add(max(0, 1-others), -others)
	}
	return math.Sqrt(squares), max(0, second-first/weight*first)
}
