package accounting

import (
	"fmt"
	"math"
	"sort"
)

// rungs is the length of the ladder tau_k = 10^(-2-k/4), down to 1e-45.
const rungs = 173

// profile is everything that Theorem A needs to know about Bin(N, p): at most 173
// levels. It is independent of g, d, epsilon, delta and the rounds. Immutable.
type profile struct {
	levels []level
}

// rung returns the level for ladder index k: the last one built at or before k,
// since a rung whose window equals its predecessor's is stored once.
func (p *profile) rung(k int) (level, bool) {
	i := sort.Search(len(p.levels), func(i int) bool { return p.levels[i].rung > k })
	if i == 0 {
		return level{}, false
	}
	return p.levels[i-1], true
}

func checkNoise(trials uint64, p float64) (int64, error) {
	k, err := gridP(p)
	if err != nil {
		return 0, err
	}
	if trials < 1 || trials >= MaxTrials {
		return 0, fmt.Errorf("trials %d: want 1 to %d", trials, MaxTrials-1)
	}
	return k, nil
}

// newProfile builds the levels of a law that the caller has validated: the first of those that more rungs give.
func newProfile(of depth) *profile {
	t := newTable(of.law)
	windows := t.windows(of.rungs)
	if len(windows) == 0 {
		return &profile{}
	}
	deepest := windows[len(windows)-1]
	from, to := deepest.lo, deepest.hi
	z := make([]float64, to-from+1)
	phi := make([]float64, len(z))
	for i := range z {
		if f, s := t.below[from+i], t.above[from+i]; f <= 0.5 {
			z[i] = -tailQuantile(f)
		} else {
			z[i] = tailQuantile(min(s, 0.5))
		}
		phi[i] = density(z[i])
	}
	// Cell i of the slices lies between z[i-1] and z[i].
	centre := 1
	for i := 2; i < len(z); i++ {
		if math.Abs(z[i]+z[i-1]) < math.Abs(z[centre]+z[centre-1]) {
			centre = i
		}
	}
	var left, right running
	walk := func(r *running, i int, monotone func(a, b float64) float64) {
		q := t.q[from+i-1]
		r.add(q/phi[i], q/phi[i-1], z[i]-z[i-1], monotone)
	}
	p := &profile{}
	l, r := centre, centre // next cell of each walk
	for _, w := range windows {
		lo, hi := w.lo-from, w.hi-from
		if lo+1 > centre || hi < centre {
			continue
		}
		for ; r <= hi; r++ {
			walk(&right, r, math.Max)
		}
		for ; l >= lo+1; l-- {
			walk(&left, l, math.Min)
		}
		p.levels = append(p.levels, level{
			rung:    w.rung,
			lo:      uint64(t.first + int64(w.lo)),
			hi:      uint64(t.first + int64(w.hi)),
			tau:     (t.below[w.lo] + t.above[w.hi]) * (1 + 1e-9),
			scalars: join(left, right),
		})
	}
	return p
}

// scalars are the numbers of docs/proofs/theorem-a.md, section 2, for one window
// of the binomial table. They do not depend on g, d, epsilon or rounds.
type scalars struct {
	// M1 and Theta1 serve form A1 (step 6): the slope of the quantile of the
	// distribution function in the position is at most M1 + (1-2f) t/2.
	M1, Theta1 float64
	// Mu1, Theta2 and K serve form A2 (step 7), which follows the chord.
	Mu1, Theta2, K float64
}

// mu returns the Gaussian parameter that dominates one round for grid size g
// and dimension d (Theorem A, step 8): the smaller of the two forms.
func (s scalars) mu(g, d int) float64 {
	root := math.Sqrt(float64(d))
	a1 := ballSupremum(s.M1, s.Theta1/2, float64(g), root)
	a2 := ballSupremum(s.Mu1, s.Theta2/2, float64(g), root) + s.K*root
	return math.Min(a1, a2)
}

// muShift returns the Gaussian parameter that dominates one round for positions that are at most shift apart, wherever
// they are (docs/proofs/theorem-a.md, section 3, the shift theorem): the smaller of the two forms.
func (s scalars) muShift(shift float64, d int) float64 {
	root := math.Sqrt(float64(d))
	w := min(shift, root/4) // of the variances of the two roundings
	return min(s.M1*shift+s.Theta1/2*w, s.Mu1*shift+s.Theta2/2*w+s.K*root)
}

// ballSupremum returns R(x, y) = sup over 0 <= t <= g of
// x sqrt(g^2 - t^2) + y min(t, sqrt(d)/4): the parallelogram law bounds the
// difference and the sum of two positions together (Theorem A, step 8).
func ballSupremum(x, y, g, rootD float64) float64 {
	norm := math.Hypot(x, y)
	if g*y/norm <= rootD/4 {
		return g * norm
	}
	// Here g > sqrt(d)/4, since y <= norm.
	return x*math.Sqrt((g-rootD/4)*(g+rootD/4)) + y*rootD/4
}

// level is one rung of a profile: a window lo < hi of the table, the mass outside
// it, and the scalars inside it.
type level struct {
	// rung is the index k of the ladder tau_k = 10^(-2-k/4).
	rung int
	// lo and hi delimit the window; its cells are lo+1 .. hi.
	lo, hi uint64
	// tau bounds Pr[B < lo] + Pr[B >= hi] from above.
	tau float64
	scalars
}

// running holds the scalars of the cells between the central one and the last
// one added. The nondecreasing sequence t of Theorem A starts at the centre and is
// the running maximum of th = D0 - D1 to the right, the running minimum to the
// left, so one walk each way serves every window.
type running struct {
	t, m1, theta1, mu1, theta2, k0, k1 float64
	started                            bool
}

// add takes the next cell outwards: d0 = q/phi(z_i), d1 = q/phi(z_{i-1}),
// a = z_i - z_{i-1}.
func (r *running) add(d0, d1, a float64, monotone func(a, b float64) float64) {
	th := d0 - d1
	if r.started {
		th = monotone(r.t, th)
	}
	r.started, r.t = true, th
	r.m1 = max(r.m1, d0-th/2, d1+th/2)
	r.theta1 = max(r.theta1, math.Abs(th))
	r.mu1 = max(r.mu1, a)
	r.theta2 = max(r.theta2, math.Abs(th), 2*math.Abs(d0-a), 2*math.Abs(a-d1))
	r.k0 = max(r.k0, d0-a-th/2)
	r.k1 = max(r.k1, th/2+d1-a)
}

// join returns the scalars of the window that two walks span, with the margins
// of docs/proofs/theorem-a.md, section 7: they cover relative errors of 5e-13 in the
// table and of erfc in the quantiles.
func join(l, r running) scalars {
	up := func(v float64) float64 { return v*(1+1e-9) + 2e-12 }
	return scalars{
		M1:     up(max(l.m1, r.m1)),
		Theta1: up(max(l.theta1, r.theta1)),
		Mu1:    up(max(l.mu1, r.mu1)),
		Theta2: up(max(l.theta2, r.theta2)),
		K:      up((max(l.k0, r.k0) + max(l.k1, r.k1)) / 4),
	}
}
