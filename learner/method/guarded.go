package method

import (
	"fmt"
	"math"
	"slices"
)

// Guarded is PAGD with a v that grows with the curvature seen in released gradients, which stops steps that are too
// long. Before the first step
//
//	v = max(v, trust (|g_1|^2 - noise)),
//
// because rows whose gradients agree lie far out in one direction; before each later one
//
//	v = max(v, c - sd),   c = <g_t - g_s, x_t - x_s>/|x_t - x_s|^2
//
// the mean curvature of the loss between the point of this gradient and the one before, less the standard deviation of
// its noise. It uses released values only.
type Guarded struct {
	PAGD
	trust float64
	first float64  // v of the configuration
	last  released // zero before the first step
}

// released is a gradient with its point and the variance of one of its coordinates.
type released struct {
	point, gradient []float64
	variance        float64
}

// newGuarded returns the method at its start, with c.V as its first v.
func newGuarded(c PAGDConfig, trust float64) (*Guarded, error) {
	if !(trust >= 0) || math.IsInf(trust, 0) {
		return nil, fmt.Errorf("guarded: trust: %v, want a finite number of at least 0", trust)
	}
	of, err := NewPAGD(c)
	if err != nil {
		return nil, err
	}
	of.base, err = newBase(methodGuarded, settings{dim: c.Dim, set: c.Set, start: c.Start, steps: c.Steps, ridge: c.Ridge},
		c.V, c.Mu, trust)
	return &Guarded{PAGD: *of, trust: trust, first: c.V}, err
}

// Step raises v if needed, and steps as PAGD does.
func (p *Guarded) Step(e Estimate) error {
	if err := p.validate(e); err != nil {
		return err
	}
	now := released{point: p.Query().Point, gradient: slices.Clone(e.Gradient),
		variance: e.PrivacyVariance + e.RoundingVariance}
	before := p.v
	if v := p.curvature(now); v > p.v && !math.IsInf(v, 0) {
		p.v = v
	}
	if err := p.PAGD.Step(e); err != nil {
		p.v = before
		return err
	}
	p.last = now
	return nil
}

// curvature returns a low estimate of the curvature between the last point and this one.
func (p *Guarded) curvature(now released) float64 {
	if p.last.point == nil {
		square := 0.0
		for _, g := range now.gradient {
			square += float64(g*g) - now.variance
		}
		return p.trust * square
	}
	var length, turn float64
	for i, x := range now.point {
		move := x - p.last.point[i]
		length += float64(move * move)
		turn += float64(move * (now.gradient[i] - p.last.gradient[i]))
	}
	if length == 0 {
		return 0
	}
	return turn/length - math.Sqrt((now.variance+p.last.variance)/length)
}

// MarshalBinary returns the state, see learner.Algorithm: PAGD's, and after the first step v, the variance of the last
// gradient, its point and the gradient.
func (p *Guarded) MarshalBinary() ([]byte, error) {
	out := p.encode(p.prox, p.ag)
	if p.taken == 0 {
		return out, nil
	}
	out = AppendFloats(out, p.v, p.last.variance)
	return AppendFloats(AppendFloats(out, p.last.point...), p.last.gradient...), nil
}

// UnmarshalBinary replaces the state, see learner.Algorithm.
func (p *Guarded) UnmarshalBinary(data []byte) error {
	d := len(p.start)
	n, own := headerLen+16*d, 8*(2+2*d)
	rest := data[min(n, len(data)):]
	if len(rest) != 0 && len(rest) != own {
		return fmt.Errorf("%w: %d bytes, want %d or %d", ErrState, len(data), n, n+own)
	}
	to := *p
	if err := to.PAGD.UnmarshalBinary(data[:len(data)-len(rest)]); err != nil {
		return err
	}
	if (to.taken > 0) != (len(rest) > 0) {
		return fmt.Errorf("%w: %d bytes after %d steps", ErrState, len(data), to.taken)
	}
	if to.last = (released{}); to.taken == 0 {
		to.v = p.first
		*p = to
		return nil
	}
	numbers := Floats(rest)
	to.v, to.last = numbers[0], released{variance: numbers[1], point: numbers[2 : 2+d], gradient: numbers[2+d:]}
	unsound := func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
	if !(to.v >= p.first) || !(to.last.variance >= 0) || slices.ContainsFunc(numbers, unsound) ||
		!p.set.Contains(to.last.point) {
		return fmt.Errorf("%w: a last gradient that no step had", ErrState)
	}
	*p = to
	return nil
}
