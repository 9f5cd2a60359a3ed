package curator

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A groupPhase is one phase of Algorithm 1: people are dealt to groups by turns, each group takes a pass of
// projected stochastic gradient descent from the last release, and the filtered mean of the groups' average
// iterates is released if they are concentrated.
type groupPhase struct {
	people, size, steps int     // n_i; N_i of each group; T_i = N_i m steps of a group
	eta, tau            float64 // step size; the radius that the test's and the filter's are multiples of
	sigma               float64 // std of the noise that is wanted
	lattice             lattice
}

// A groupPlan is Algorithm 1 with its constants: the calibrated ones or the paper's.
type groupPlan struct {
	public    Public
	constants constants
	phases    []groupPhase
}

// ball bounds how far a group's average iterate is from the phase's start: the t-th iterate is t steps of at most
// eta (L + mu R) away, and all are in the set.
func (g *groupPlan) ball(ph groupPhase) float64 {
	return min(ph.eta*g.public.steepest()*float64(ph.steps)/2, g.public.diameter()) * (1 + 0x1p-20)
}

// ratio bounds how far one person moves the filtered mean, in diameters of the ball; it is at most 1.
func (g *groupPlan) ratio(ph groupPhase) float64 {
	ball := g.ball(ph)
	return min(g.constants.filter.scaled(ph.tau).sensitivity(g.constants.groups, ball)/(2*ball)*(1+0x1p-40), 1)
}

// run runs Algorithm 1. Phases have people of their own.
func (g *groupPlan) run(ctx context.Context, loss convex.Loss, people []Person, entropy rand.Source) (Result, error) {
	c := &g.constants
	people, err := admitted(g.public, loss, people)
	if err != nil {
		return Result{}, err
	}
	return follow(g.public.start(), len(g.phases), func(i int, from []float64) ([]float64, bool, error) {
		ph, points, mean := g.phases[i], make([][]float64, c.groups), make([]float64, len(from))
		for j := range points {
			if err := ctx.Err(); err != nil {
				return nil, false, err
			}
			points[j] = g.descend(ph, loss, people[:ph.size*c.groups], j, from)
		}
		people = people[ph.people:]
		passed, err := c.testAndRelease(mean, points, ph.tau, ph.lattice, g.ball(ph), entropy)
		if err != nil {
			return nil, false, err
		}
		addTo(mean, from)
		g.public.Set.Project(mean, mean)
		return mean, passed, nil
	})
}

// testAndRelease overwrites mean with the release of the filtered mean of points, which must not be published where
// their test does not pass.
func (c *constants) testAndRelease(mean []float64, points [][]float64, tau float64, l lattice, ball float64,
	entropy rand.Source) (passed bool, err error) {
	f := c.filter.scaled(tau)
	pairs, near := f.counts(points)
	passed = int64(pairs)+c.test.Noise.Sample(entropy) >= c.test.Threshold
	weights := f.weights(near)
	if c.coins {
		passed = coins(weights, entropy) && passed
	}
	weightedMean(mean, points, weights)
	return passed, l.release(mean, ball, entropy)
}

// descend returns the average iterate of group j, less the start. Each of its people takes m steps along gradients of
// the person's rows in order: of an m-th of the rows at each step if there are more than m rows, else of each row
// several times.
func (g *groupPlan) descend(ph groupPhase, loss convex.Loss, people []Person, j int, start []float64) []float64 {
	p, d := g.public, len(start)
	at, sum, step, part := append([]float64(nil), start...), make([]float64, d), make([]float64, d), make([]float64, d)
	sharp := newBlur(0, d, nil)
	for i := j; i < len(people); i += g.constants.groups {
		rows := people[i]
		for k := range p.Items {
			addTo(sum, at)
			low := k * len(rows) / p.Items
			high := max((k+1)*len(rows)/p.Items, min(low+1, len(rows)))
			sharp.gradient(step, part, loss, rows[low:high], at, p.Lipschitz)
			for l, v := range step {
				at[l] -= float64(ph.eta * (v + float64(p.Ridge*at[l])))
			}
			p.Set.Project(at, at)
		}
	}
	for l, v := range start {
		sum[l] = sum[l]/float64(ph.steps) - v
	}
	convex.Clip(sum, g.ball(ph)) // changes nothing except for rounding
	return sum
}

// planGroups returns a plan of the calibrated Algorithm 1.
func planGroups(p Public) (*Plan, error) {
	if math.IsInf(p.Smoothness, 1) {
		return nil,
			fmt.Errorf(
				"smoothness: none, and steps on losses that are not smooth move apart: group-sgd wants a smooth loss; filtered smooths others")
	}
	if least := fewestGroups(p); p.People < least {
		return nil, &TooFewError{"group-sgd", p.People, least}
	}
	g, err := searchGroups(p)
	if err != nil {
		return nil, err
	}
	c, spent := &g.constants, 0.
	for i := range g.phases {
		ph := &g.phases[i]
		if err := c.filter.scaled(ph.tau).validate(c.groups); err != nil {
			return nil, err
		}
		ratio, delta := g.ratio(*ph), 0.
		if ph.lattice, delta, err = smallest(p.Dim, g.ball(*ph), ratio, p.Budget.Delta, func(l lattice) float64 {
			return c.test.Profile(p.Budget.Epsilon, l.curve(ratio, 1))
		}); err != nil {
			return nil, err
		}
		spent = max(spent, delta)
		ph.sigma = ph.lattice.std(g.ball(*ph))
	}
	last := g.phases[len(g.phases)-1]
	notes := []string{fmt.Sprintf(
		"groups %d, test from %.5g on with U %.5g, Laplace scale %.4g of the score, epsilon %.3g of it for the test",
		c.groups, float64(c.test.Threshold)/float64(c.groups), c.filter.full, 1/(c.test.Noise.Rate()*float64(c.groups)),
		c.test.Epsilon())}
	for i, ph := range g.phases {
		notes = append(notes, fmt.Sprintf("phase %d: people %d, steps %d of %.4g, radii %.4g and %.4g, noise %.4g", i+1,
			ph.size*c.groups, ph.steps, ph.eta,
			ph.tau*c.filter.score, ph.tau*c.filter.near, ph.sigma))
	}
	return &Plan{Method: "group-sgd", Public: p, Spent: accounting.Budget{Epsilon: p.Budget.Epsilon, Delta: spent},
		Phases: len(g.phases), NoiseStd: last.sigma,
		Bound: g.bound(), Notes: append(notes, paperNumbers(p).String()), run: g.run}, nil
}
