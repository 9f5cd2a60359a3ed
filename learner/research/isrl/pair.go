package isrl

import (
	"fmt"
	"math"
)

// A pair is P = (1-q) N(0,1) + q N(m,1) against Q = N(0,1). Its privacy loss ln(dP/dQ)(x) = ln(1 - q + q e^(m x -
// m^2/2)) grows with x.
type pair struct{ q, m float64 }

func (p pair) loss(x float64) float64 {
	t := p.m*x - p.m*p.m/2
	if t > 30 {
		return math.Log(p.q) + t + (1-p.q)/p.q*math.Exp(-t)
	}
	return math.Log1p(p.q * math.Expm1(t))
}

// at returns the x of a loss; -Inf at and below ln(1-q), which no x has.
func (p pair) at(loss float64) float64 {
	t := math.Expm1(loss) / p.q // e^(m x - m^2/2) - 1
	if !(t > -1) {
		return math.Inf(-1)
	}
	u := math.Log1p(t)
	if loss > 30 {
		u = loss - math.Log(p.q)
	}
	return (u + p.m*p.m/2) / p.m
}

// between returns the masses of P and Q between two points, and their errors at most.
func (p pair) between(a, b float64) (inP, inQ, errP, errQ float64) {
	inQ, errQ = normalBetween(a, b)
	moved, errMoved := normalBetween(a-p.m, b-p.m)
	return (1-p.q)*inQ + p.q*moved, inQ, (1-p.q)*errQ + p.q*errMoved, errQ
}

// normalBetween returns the standard normal mass of (a, b], and an upper bound on its error.
func normalBetween(a, b float64) (mass, err float64) {
	if a < 0 && b <= 0 {
		a, b = -b, -a
	}
	if a >= 0 {
		x, y := math.Erfc(a/math.Sqrt2)/2, math.Erfc(b/math.Sqrt2)/2
		// The rounding of a/sqrt 2 moves the tail by up to 2e-16 a^2 of itself, and erfc is good to a few units of
		// the last place.
		return math.Max(0, x-y), 1e-15 * (1 + a*a) * x
	}
	return 1 - math.Erfc(-a/math.Sqrt2)/2 - math.Erfc(b/math.Sqrt2)/2, 1e-15
}

// beyond is the number of standard deviations from its middle at which a normal law is cut; the mass further
// out, 1e-21, has an infinite loss.
const beyond = 9.5

// step returns a width of bins that is small relative to the loss of one round.
func (p pair) step() float64 {
	const points = 4000
	from, to := -beyond, p.m+beyond
	dx, sum := (to-from)/points, 0.0
	for i := range points {
		x := from + (float64(i)+0.5)*dx
		in := (1-p.q)*math.Exp(-x*x/2) + p.q*math.Exp(-(x-p.m)*(x-p.m)/2)
		l := p.loss(x)
		sum += in * l * l * dx
	}
	return fineness * math.Sqrt(sum/math.Sqrt(2*math.Pi))
}

const (
	fineness = 0.02
	maxBins  = 1 << 21
)

// symmetric returns the law of the loss of the symmetric pair, which has the profile of (P, Q) at orders
// above 1. A loss l in a bin is split between the bin's ends so that the means of 1 and of e^-l do not
// change: (1 - e^(eps-l))+ is convex in e^-l, also for a sum of losses, so every delta rises and none by more
// than the square of the bins' width.
func (p pair) symmetric(h float64) (law, error) {
	top := int(math.Ceil(p.loss(p.m+beyond) / h))
	if top < 1 || top > maxBins/2 {
		return law{}, fmt.Errorf("a privacy loss of up to %.3g in steps of %.3g: want at most %d", p.loss(p.m+beyond), h,
			maxBins/2)
	}
	out := law{step: h, low: -top, mass: make([]float64, 2*top+1)}
	split := -math.Expm1(-h)
	last := p.at(0)
	for k := 1; k <= top; k++ {
		next := p.at(float64(k) * h)
		inP, inQ, errP, errQ := p.between(last, next)
		last = next
		// The share of the upper end, all errors on its side.
		e := math.Exp(float64(k-1) * h)
		up := (inP - inQ*e + errP + errQ*e) / split
		up = math.Min(math.Max(up, 0), inP+errP)
		down := math.Max(0, inP+errP-up)
		out.mass[top+k] += up
		out.mass[top+k-1] += down
		out.mass[top-k] += up * math.Exp(-float64(k)*h)
		out.mass[top-k+1] += down * math.Exp(-float64(k-1)*h)
	}
	tailP, _, errP, _ := p.between(last, math.Inf(1))
	out.infinite = tailP + errP
	sum := out.infinite
	for _, v := range out.mass {
		sum += v
	}
	out.mass[top] += math.Max(0, 1-sum)
	return out, nil
}

// scarce is a mass that a bound from below does without.
const scarce = 1e-12

// laws returns the laws of the losses of (P, Q) and of (Q, P), from below. The bin of an x is a statistic, so
// no divergence of the pair is below the bins'; a bin's own loss is near its middle, and the largest
// shortfall from the middle is taken off all. Bins of little mass, and those whose ratio is not known well,
// are left out.
func (p pair) laws(h float64) (forth, back law, err error) {
	bottom := math.Max(p.loss(-beyond), math.Log1p(-p.q))
	low, high := int(math.Floor(bottom/h+0.5)), int(math.Ceil(p.loss(p.m+beyond)/h))
	if high-low > maxBins {
		return law{}, law{}, fmt.Errorf("privacy losses from %.3g to %.3g in steps of %.3g: want at most %d", bottom,
			p.loss(p.m+beyond), h, maxBins)
	}
	forth = law{step: h, low: low, mass: make([]float64, high-low+1)}
	back = law{step: h, low: -high, mass: make([]float64, high-low+1)}
	last := math.Inf(-1)
	for k := low; k <= high; k++ {
		next := p.at((float64(k) + 0.5) * h)
		inP, inQ, errP, errQ := p.between(last, next)
		last = next
		l, unsure, middle := math.Log(inP/inQ), 1.01*(errP/inP+errQ/inQ), float64(k)*h
		if !(unsure < h/4) {
			continue
		}
		if inP > scarce {
			forth.mass[k-low] = inP - errP
			forth.short = math.Max(forth.short, middle-l+unsure)
		}
		if inQ > scarce {
			back.mass[high-k] = inQ - errQ
			back.short = math.Max(back.short, l-middle+unsure)
		}
	}
	return forth, back, nil
}

func (s Sampled) pair() pair {
	return pair{float64(s.Batch) / float64(s.Records), s.shift()}
}

// upper returns the law of the losses of all rounds, from above.
func (s Sampled) upper() (law, error) {
	p := s.pair()
	one, err := p.symmetric(p.step())
	if err != nil {
		return law{}, err
	}
	return one.sum(s.Rounds)
}

// laws returns the laws of the losses of all rounds: from above, and as a function of epsilon from below.
func (s Sampled) laws() (upper law, lower func(eps float64) float64, err error) {
	if upper, err = s.upper(); err != nil {
		return law{}, nil, err
	}
	p := s.pair()
	// what is taken off adds up as rounds do, the losses as their root
	finer := math.Min(1, math.Pow(100/float64(s.Rounds), 0.25))
	forth, back, err := p.laws(p.step() * finer)
	if err != nil {
		return law{}, nil, err
	}
	if forth, err = forth.sum(s.Rounds); err != nil {
		return law{}, nil, err
	}
	if back, err = back.sum(s.Rounds); err != nil {
		return law{}, nil, err
	}
	return upper, func(eps float64) float64 { return math.Max(forth.least(eps), back.least(eps)) }, nil
}
