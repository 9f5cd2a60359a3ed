package accounting

import "math"

// lossSteps is the number of steps of the grid of privacy losses in one epsilon, and lossReach the last step; losses
// beyond it count as infinite.
const (
	lossSteps = 48
	lossReach = 5 * lossSteps / 4
)

// ComposedDelta bounds from above the hockey-stick divergence at e^eps of releases one after the other, each of which
// may depend on earlier releases. A profile bounds the divergence of one release at every eps >= 0, given any earlier
// releases, for both orders of every pair of neighbours (docs/proofs/curator.md, Releases one after the other).
func ComposedDelta(eps float64, profiles ...func(eps float64) float64) float64 {
	if !(eps > 0) || math.IsInf(eps, 1) {
		return 1
	}
	all := losses{mass: []float64{1}} // of nothing
	for _, profile := range profiles {
		all = all.then(dominating(eps/lossSteps, profile))
	}
	return all.delta(eps, eps/lossSteps)
}

// losses is the law of the privacy loss log P/Q under P of a pair of laws: mass[j] at j - least steps, and infinite
// where Q has nothing.
type losses struct {
	least    int
	mass     []float64
	infinite float64
}

// dominating returns the losses of a pair of laws whose divergence is no smaller than the profile at any eps: linear
// in e^eps between the corners of the lower convex hull of the profile's points at whole steps. A divergence is convex
// in e^eps, so it is below a line between two points that are not below it.
func dominating(step float64, profile func(eps float64) float64) losses {
	const n = 2*lossReach + 2
	// e^eps and what bounds the divergence there: at 0, where it is 1, and at -lossReach, ..., lossReach steps
	x, y := make([]float64, n), make([]float64, n)
	y[0] = 1
	for j := lossReach; j >= 0; j-- {
		eps := float64(j) * step
		v := profile(math.Max(0, eps-1e-14*(1+eps))) // so that it is one at x, which is rounded
		if !(v >= 0 && v < 1) {
			v = 1
		}
		x[lossReach+1+j], y[lossReach+1+j] = math.Exp(eps), v
		if j > 0 { // the delta of the other order
			x[lossReach+1-j], y[lossReach+1-j] = math.Exp(-eps), (math.Exp(-eps)*v-math.Expm1(-eps))*(1+1e-12)+1e-15
		}
	}
	var corners []int
	slope := func(i, j int) float64 { return (y[j] - y[i]) / (x[j] - x[i]) }
	for i := range x {
		for k := len(corners); k > 1 && slope(corners[k-2], corners[k-1]) >= slope(corners[k-1], i); k-- {
			corners = corners[:k-1]
		}
		corners = append(corners, i)
	}
	// Where Q has q at x_j, and P q x_j, the divergence is the infinite mass and the sum of q (x_j - x)+. From the
	// last corner down, q is as much as brings it up to the next.
	out := losses{least: lossReach, mass: make([]float64, n-1), infinite: y[n-1] * (1 + 1e-11)}
	height, slopes := y[n-1], 0.0
	for k := len(corners) - 1; k > 0; k-- {
		i, j := corners[k-1], corners[k]
		width := x[j] - x[i]
		q := math.Max(0, (y[i]-height)/width-slopes)
		slopes += q
		height += slopes * width
		out.mass[j-1] = q * x[j] * (1 + 1e-11)
	}
	return out
}

// then returns the losses of both, one after the other.
func (l losses) then(m losses) losses {
	out := losses{least: l.least + m.least, mass: make([]float64, len(l.mass)+len(m.mass)-1),
		infinite: l.infinite*m.all() + (l.all()-l.infinite)*m.infinite}
	for i, p := range l.mass {
		if p > 0 {
			for j, q := range m.mass {
				out.mass[i+j] += float64(p * q)
			}
		}
	}
	return out
}

// all returns the mass of P: 1, or a little more.
func (l losses) all() float64 {
	sum := l.infinite
	for _, p := range l.mass {
		sum += p
	}
	return sum
}

// delta returns P's mass of losses above eps, less e^eps times Q's.
func (l losses) delta(eps, step float64) float64 {
	sum := l.infinite
	for i, p := range l.mass {
		if over := float64(i-l.least)*step - eps + 1e-13*(1+eps); over > 0 {
			sum += p * -math.Expm1(-over)
		}
	}
	if !(sum >= 0) {
		return 1
	}
	return math.Min(1, sum*(1+1e-11))
}
