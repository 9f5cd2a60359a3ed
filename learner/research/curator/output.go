package curator

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// An output is a release of a minimiser over so many people: the baseline B0. Replacing a person moves the
// minimiser by at most 2L/(nu n), whatever the person's rows are, and the solver's answer by 2 xi more.
type output struct {
	*solver
	lambda  float64 // weight of (lambda/2)||. - c||^2
	people  int
	lattice lattice
	delta   float64 // that was evaluated
}

func (o *output) ratio() float64 {
	return (o.moves(o.people) + 2*o.xi) / (2 * o.ball()) * (1 + 0x1p-40)
}

func (o *output) cost() (std, delta float64) { return o.lattice.std(o.ball()), o.delta }

// newOutput calibrates one release within the budget of p.
func newOutput(p Public, lambda float64, people int) (*output, error) {
	s, err := newSolver(p, lambda+p.Ridge, people)
	if err != nil {
		return nil, err
	}
	o := &output{solver: s, lambda: lambda, people: people}
	o.lattice, o.delta, err = cheapest(p.Dim, o.ball(), o.ratio(), p.Budget)
	return o, err
}

// release releases the minimiser over these people around c.
func (o *output) release(ctx context.Context, t *table, c []float64, people []int, entropy rand.Source) ([]float64,
	bool, error) {
	middle := o.public.middle(o.lambda, c)
	x, err := o.minimiser(ctx, t, middle, people, nil)
	if err != nil {
		return nil, false, err
	}
	return x, true, o.publish(x, middle, o.lattice, entropy)
}

// publish overwrites a minimiser of the objective around middle with its release on the lattice.
func (s *solver) publish(x, middle []float64, l lattice, entropy rand.Source) error {
	from := make([]float64, len(x))
	s.public.Set.Project(from, middle)
	return publish(s.public.Set, x, from, s.ball(), l, entropy)
}

// publish overwrites a point of a ball around from, which is public, with its release on the lattice, projected on
// the set.
func publish(set convex.Set, x, from []float64, ball float64, l lattice, entropy rand.Source) error {
	for j, c := range from {
		x[j] -= c
	}
	if err := l.release(x, ball, entropy); err != nil {
		return err
	}
	for j, c := range from {
		x[j] += c
	}
	set.Project(x, x)
	return nil
}

// noisePerMove returns an estimate of the ratio of the noise on the lattice to the distance that it hides: the Gaussian
// mechanism's ratio, increased for rounding.
func noisePerMove(b accounting.Budget) float64 { return 1.025 * perShift(b) }

// outputRisk bounds the expected excess risk of one release on new rows of the people's distribution
// (docs/proofs/curator.md, Baselines):
//
//	lambda D^2/2 + 4 L^2/(nu n m) + (L + mu R)(sqrt(d) std + xi)
func outputRisk(p Public, lambda, distance float64, people int, std, xi float64) float64 {
	nu := lambda + p.Ridge
	return lambda*distance*distance/2 + generalisation(p, nu, people) + p.steepest()*(math.Sqrt(float64(p.Dim))*std+xi)
}

// generalisation bounds the excess risk, on new rows of one distribution, of the minimiser over this many
// people's rows.
func generalisation(p Public, nu float64, people int) float64 {
	return 4 * p.Lipschitz * p.Lipschitz / (nu * float64(people) * float64(p.Items))
}

// steepest bounds the slope of the objective in the set.
func (p Public) steepest() float64 { return p.Lipschitz + p.Ridge*p.Set.Radius() }

// planOutput returns a plan of B0 in one release, with the weight of the smallest bound.
func planOutput(p Public) (*Plan, error) {
	perMove := noisePerMove(p.Budget)
	lambda := argmin(p.lightest(), p.heaviest(), func(lambda float64) float64 {
		s, err := newSolver(p, lambda+p.Ridge, p.People)
		if err != nil {
			return math.Inf(1)
		}
		std := perMove * (s.moves(p.People) + 2*s.xi)
		return outputRisk(p, lambda, p.Set.Radius(), p.People, std, s.xi)
	})
	o, err := newOutput(p, lambda, p.People)
	if err != nil {
		return nil, err
	}
	std, _ := o.cost()
	return inTurns("output", p, halves(p.People, 1), []turn{o}, outputRisk(p, lambda, p.Set.Radius(), p.People, std, o.xi),
		fmt.Sprintf("lambda %.4g, %d steps to within %.3g of the minimiser, which a person moves by %.4g", lambda, o.steps,
			o.xi, o.moves(p.People)),
		fmt.Sprintf("noise %.4g: %d trials on %d levels", std, o.lattice.trials, o.lattice.levels)), nil
}

// lightest returns the smallest weight that is tried. With a smaller one, minimisers over rows may be as far from
// minimisers over new rows as from any other point. The solver's steps grow with the root of the ratio of the losses'
// smoothness to the weight.
func (p Public) lightest() float64 {
	return p.Lipschitz / p.Set.Radius() / (4 * math.Sqrt(float64(p.People)*float64(p.Items)))
}

// heaviest returns the largest weight that is looked at: with it, minimisers are a millionth of the set's
// radius from where they are drawn to.
func (p Public) heaviest() float64 { return p.Lipschitz / p.Set.Radius() * 1e6 }
