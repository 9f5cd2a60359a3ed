package convex

// linear is embedded by losses h(<theta, x>; y) of one linear score.
type linear struct{}

// Parameters returns the number of features.
func (linear) Parameters(features int) int { return features }

// A score is the convex function h of a loss h(<theta, x>; y).
//
// The Moreau envelope of such a loss is a function of the score again: with c = ||x||^2/b, its gradient at a score s is p x where
// p is in the subdifferential of h at s - c p, and the prox of theta is theta - (p/b) x. So one number answers for
// the gradient, the prox and the envelope, and c = 0 stands for the loss itself.
type score interface {
	value(s, y float64) float64
	// slope returns the p of the subdifferential of h at s - c p, for c >= 0; unique for c > 0.
	slope(s, y, c float64) float64
}

// curvature returns c = ||x||^2/b.
func curvature(e Example, b float64) float64 {
	n := e.Norm()
	return n / b * n
}

func linearValue[H score](h H, theta []float64, e Example) float64 {
	return h.value(e.Dot(theta), e.Label)
}

func linearGradient[H score](h H, dst, theta []float64, e Example) {
	p := h.slope(e.Dot(theta), e.Label, 0)
	clear(dst)
	e.AddTo(dst, p)
}

func linearProx[H score](h H, dst, theta []float64, e Example, b float64) {
	p := h.slope(e.Dot(theta), e.Label, curvature(e, b))
	copy(dst, theta)
	e.AddTo(dst, -p/b)
}

func linearEnvelopeGradient[H score](h H, dst, theta []float64, e Example, b float64) {
	p := h.slope(e.Dot(theta), e.Label, curvature(e, b))
	clear(dst)
	e.AddTo(dst, p)
}

func linearEnvelopeValue[H score](h H, theta []float64, e Example, b float64) float64 {
	s, c := e.Dot(theta), curvature(e, b)
	p := h.slope(s, e.Label, c)
	shift := float64(c * p)
	return h.value(s-shift, e.Label) + float64(shift*p)/2
}

// clamp returns r/c cut to [low, high], an interval around 0; r/0 is an infinity of r's sign, and 0/0 is 0.
func clamp(r, c, low, high float64) float64 {
	if r == 0 {
		return 0
	}
	return min(max(r/c, low), high)
}
