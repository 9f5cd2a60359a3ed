package convex

// A Loss is a function l(theta; e), convex in theta for every example e whose label passes CheckLabel. Implementations
// are values without state, safe for concurrent use. These methods are all that a task's own loss has to have.
type Loss interface {
	// Name is the loss's name in task files, see LossNames.
	Name() string
	// Parameters is the length of theta for a feature vector of the given dimension: the same number for a loss of one
	// linear score, k times it for one score a class.
	Parameters(features int) int
	// Value returns l(theta; e).
	Value(theta []float64, e Example) float64
	// Gradient overwrites dst, of the length of theta, with the gradient at theta, or with a subgradient where the loss is
	// not differentiable. dst must not share memory with theta.
	Gradient(dst, theta []float64, e Example)
	// Lipschitz is the supremum of the subgradients' norms over all theta and labels, for features of norm at most x; +Inf
	// where there is none.
	Lipschitz(x float64) float64
	// Smoothness is the Lipschitz constant of the gradient over all theta and labels, for features of norm at most x;
	// +Inf where there is none, which includes every loss that is not differentiable.
	Smoothness(x float64) float64
	// CheckLabel refuses a label outside the domain of the loss. The error says what would be accepted.
	CheckLabel(y float64) error
}

// A Proximal loss is one whose prox operator is known, so that it has a Moreau envelope, see NewEnvelope.
type Proximal interface {
	Loss
	// Prox overwrites dst, of the length of theta, with argmin_u l(u; e) + (b/2) ||u - theta||^2 for a finite b > 0.
	// dst must not share memory with theta.
	Prox(dst, theta []float64, e Example, b float64)
}
