package accounting

import "math"

// Scalars are the numbers of docs/theorem-a.md, section 2, for one window
// of the binomial table. They do not depend on g, d, epsilon or rounds.
type Scalars struct {
	// M1 and Theta1 serve form A1 (step 6): the slope of the quantile of the
	// distribution function in the position is at most M1 + (1-2f) t/2.
	M1, Theta1 float64
	// Mu1, Theta2 and K serve form A2 (step 7), which follows the chord.
	Mu1, Theta2, K float64
}

// Mu returns the Gaussian parameter that dominates one round for grid size g
// and dimension d (Theorem A, step 8): the smaller of the two forms.
func (s Scalars) Mu(g, d int) float64 {
	root := math.Sqrt(float64(d))
	a1 := ballSupremum(s.M1, s.Theta1/2, float64(g), root)
	a2 := ballSupremum(s.Mu1, s.Theta2/2, float64(g), root) + s.K*root
	return math.Min(a1, a2)
}

// ballSupremum is R(x, y) = sup over 0 <= t <= g of
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

// Level is one rung of a profile: a window lo < hi of the table, the mass outside
// it, and the scalars inside it.
type Level struct {
	// Rung is the index k of the ladder tau_k = 10^(-2-k/4).
	Rung int
	// Lo and Hi delimit the window; its cells are Lo+1 .. Hi.
	Lo, Hi uint64
	// Tau bounds Pr[B < Lo] + Pr[B >= Hi] from above.
	Tau float64
	Scalars
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
// of docs/theorem-a.md, section 7: they cover relative errors of 5e-13 in the
// table and of erfc in the quantiles.
func join(l, r running) Scalars {
	up := func(v float64) float64 { return v*(1+1e-9) + 2e-12 }
	return Scalars{
		M1:     up(max(l.m1, r.m1)),
		Theta1: up(max(l.theta1, r.theta1)),
		Mu1:    up(max(l.mu1, r.mu1)),
		Theta2: up(max(l.theta2, r.theta2)),
		K:      up((max(l.k0, r.k0) + max(l.k1, r.k1)) / 4),
	}
}
