// Package acsa is accelerated stochastic approximation (Ghadimi and Lan 2012, with the Euclidean prox): it minimises a
// strongly convex, smooth function over a set from gradients, or unbiased estimates of them, at the points that Query
// returns in turn. Its result is a function of these gradients.
package acsa

import "github.com/panlearn/panlearn/learner/convex"

// A Descent is one run.
//
// With variance V^2 of a gradient and phi at least the smoothness Ls of the function, which is mu-strongly convex,
// N steps from x bring the gap in expectation to at most 2 phi ||x - x*||^2/(N(N+1)) + 8 V^2/(mu(N+1)) (their
// Proposition 9).
type descent struct {
	mu, phi float64
	set     convex.Set
	t       int // steps since the last start

	x, aggregate, middle []float64
}

// New starts at a point of the set; a nil set is the whole space.
func New(mu, phi float64, set convex.Set, start []float64) *descent {
	a := &descent{mu: mu, phi: phi, set: set, aggregate: append([]float64(nil), start...)}
	a.x, a.middle = make([]float64, len(start)), make([]float64, len(start))
	a.Restart()
	return a
}

// Restart begins a stage at the aggregate.
func (a *descent) Restart() {
	copy(a.x, a.aggregate)
	a.t = 0
}

// shares returns alpha and gamma of the next step.
func (a *descent) shares() (alpha, gamma float64) {
	t := float64(a.t + 1)
	return 2 / (t + 1), 4 * a.phi / (t * (t + 1))
}

// Query returns the point of the set at which the next step needs a gradient. The result is valid until that step.
func (a *descent) Query() []float64 {
	alpha, gamma := a.shares()
	last, point := queryWeights(alpha, gamma, a.mu)
	for j := range a.middle {
		a.middle[j] = float64(last*a.aggregate[j]) + float64(point*a.x[j])
	}
	if a.set != nil {
		a.set.Project(a.middle, a.middle) // a convex combination, up to rounding
	}
	return a.middle
}

// queryWeights returns the weights of the aggregate and of the point in the query; they sum to 1.
func queryWeights(alpha, gamma, mu float64) (aggregate, point float64) {
	whole := gamma + (1-alpha*alpha)*mu
	return (1 - alpha) * (mu + gamma) / whole, alpha * ((1-alpha)*mu + gamma) / whole
}

// Step takes the gradient at the last query.
func (a *descent) Step(gradient []float64) {
	alpha, gamma := a.shares()
	keep := (1-alpha)*a.mu + gamma
	for j, g := range gradient {
		a.x[j] = (float64(alpha*a.mu*a.middle[j]) + float64(keep*a.x[j]) - float64(alpha*g)) / (a.mu + gamma)
	}
	if a.set != nil {
		a.set.Project(a.x, a.x)
	}
	for j, x := range a.x {
		a.aggregate[j] = float64(alpha*x) + float64((1-alpha)*a.aggregate[j])
	}
	a.t++
}

// Aggregate returns the solution found so far: a point of the set up to rounding. The slice is valid until
// the next step.
func (a *descent) Aggregate() []float64 { return a.aggregate }
