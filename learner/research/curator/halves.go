package curator

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
)

// halves returns the people of so many phases: the first half of all, half of the others, and so on; the last
// phase has all who are left. Nobody is in two. They are [from, to) of the order in which people are given.
func halves(people, phases int) [][2]int {
	out := make([][2]int, phases)
	from := 0
	for i := range out {
		to := people
		if i < phases-1 {
			to = people - people>>(i+1)
		}
		out[i] = [2]int{from, to}
		from = to
	}
	return out
}

// numbers returns the integers of [from, to).
func numbers(part [2]int) []int {
	out := make([]int, part[1]-part[0])
	for i := range out {
		out[i] = part[0] + i
	}
	return out
}

// mostHalves returns the largest number of phases that this many people allow; at least 1.
func mostHalves(people int) int { return max(1, paperPhases(people)) }

// A course describes phases on disjoint people: their number, the weight or step of the first, and the factor
// by which it changes from one phase to the next.
type course struct {
	phases int
	first  float64
	growth float64
}

// at returns the weight or step of phase i, from 0.
func (c course) at(i int) float64 { return c.first * math.Pow(c.growth, float64(i)) }

// bestCourse returns the course of the smallest risk, and that risk: of fewest to most phases, with a first
// weight or step in [low, high] and one of these changes from phase to phase.
func bestCourse(fewest, most int, low, high float64, growths []float64, risk func(course) float64) (best course,
	least float64) {
	least = math.Inf(1)
	for t := fewest; t <= most; t++ {
		for _, g := range growths {
			c := course{phases: t, growth: g}
			c.first = argmin(low, high, func(first float64) float64 { return risk(course{t, first, g}) })
			if v := risk(c); v < least {
				best, least = c, v
			}
			if t == 1 {
				break // the change is never used
			}
		}
		if best.phases > 0 && best.phases < t-2 {
			break
		}
	}
	return best, least
}

// A turn is a phase that releases a point, given the last released one, or halts: then its point must not be used.
type turn interface {
	release(ctx context.Context, t *table, from []float64, people []int, entropy rand.Source) (x []float64, released bool,
		err error)
	// cost returns the standard deviation of the noise on one coordinate of the release, and the delta that was evaluated
	// at the budget's epsilon.
	cost() (std, delta float64)
	inexact() float64 // bounds the solver's error, before the noise
}

// inTurns returns a plan of turns, each on a part of the people. Parts share nobody, so every turn has the
// whole budget, and all together cost as much as the dearest of them: that is Spent (docs/proofs/curator.md,
// Phases).
func inTurns(name string, p Public, parts [][2]int, turns []turn, bound float64, notes ...string) *Plan {
	plan := &Plan{Method: name, Public: p, Phases: len(turns), Bound: bound, Notes: notes}
	plan.Spent.Epsilon = p.Budget.Epsilon
	for _, t := range turns {
		std, delta := t.cost()
		plan.NoiseStd, plan.Spent.Delta = std, max(plan.Spent.Delta, delta)
	}
	plan.run = func(ctx context.Context, loss convex.Loss, people []Person, entropy rand.Source) (Result, error) {
		t, err := newTable(p, loss, people)
		if err != nil {
			return Result{}, err
		}
		return follow(p.start(), len(turns), func(i int, from []float64) ([]float64, bool, error) {
			return turns[i].release(ctx, t, from, numbers(parts[i]), entropy)
		})
	}
	return plan
}

// follow takes turns from a point on. After a halt the other turns are taken all the same, from the last released
// point, and nothing of them is used.
func follow(x []float64, turns int, release func(i int, from []float64) ([]float64, bool, error)) (Result, error) {
	r := Result{Model: x}
	for i := range turns {
		next, released, err := release(i, r.Model)
		if err != nil {
			return Result{}, err
		}
		if r.Halted = r.Halted || !released; !r.Halted {
			r.Model, r.Phase = next, i+1
		}
	}
	return r, nil
}

// phasesRisk bounds the expected excess risk after all phases of a course. Phase i ends within fit(i) +
// distance^2 drift(i) of any point, where distance is from the phase's start to the point, and releases with
// noise std(i) in each coordinate (docs/proofs/curator.md, Phases).
func phasesRisk(p Public, phases int, fit, drift, std func(i int) float64) float64 {
	r := p.Set.Radius()
	// of the distance between the start and the comparator: the optimum, then the last phase's point before its noise
	risk, square := 0.0, r*r
	for i := range phases {
		risk += fit(i) + drift(i)*square
		square = min(p.diameter()*p.diameter(), float64(p.Dim)*std(i)*std(i))
	}
	return risk + p.steepest()*math.Sqrt(float64(p.Dim))*std(phases-1)
}

// outputGrowths are changes of the weight from one phase to the next: what half of the people, and a release far
// nearer to the optimum, ask for.
var outputGrowths = []float64{2, 3, 4, 6, 8, 16, 32}

// planOutputPhases returns a plan of B0 in phases on disjoint people, each around the last released point,
// with the number of phases and the weights of the smallest bound.
func planOutputPhases(p Public) (*Plan, error) {
	perMove := noisePerMove(p.Budget)
	risk := func(c course, std func(i int, s *solver, people int) float64) float64 {
		parts := halves(p.People, c.phases)
		solvers := make([]*solver, c.phases)
		for i := range parts {
			s, err := newSolver(p, c.at(i)+p.Ridge, parts[i][1]-parts[i][0])
			if err != nil {
				return math.Inf(1)
			}
			solvers[i] = s
		}
		return phasesRisk(p, c.phases, func(i int) float64 {
			return generalisation(p, c.at(i)+p.Ridge, parts[i][1]-parts[i][0]) + p.steepest()*solvers[i].xi
		},
			func(i int) float64 { return c.at(i) / 2 },
			func(i int) float64 { return std(i, solvers[i], parts[i][1]-parts[i][0]) })
	}
	c, _ := bestCourse(1, mostHalves(p.People), p.lightest(), p.heaviest(), outputGrowths, func(c course) float64 {
		return risk(c, func(_ int, s *solver, people int) float64 { return perMove * (s.moves(people) + 2*s.xi) })
	})
	if c.phases == 0 {
		if _, err := newSolver(p, p.Lipschitz/p.Set.Radius(), p.People); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("output-phases: no course of phases of %d people has a finite bound", p.People)
	}
	parts, turns := halves(p.People, c.phases), make([]turn, c.phases)
	for i := range turns {
		o, err := newOutput(p, c.at(i), parts[i][1]-parts[i][0])
		if err != nil {
			return nil, err
		}
		turns[i] = o
	}
	bound := risk(c, func(i int, _ *solver, _ int) float64 { std, _ := turns[i].cost(); return std })
	return inTurns("output-phases", p, parts, turns, bound,
		fmt.Sprintf("%s of disjoint people, lambda %.4g times %.3g from phase to phase", inPhases(c.phases), c.first,
			c.growth)), nil
}

// inPhases returns the number of phases in words.
func inPhases(phases int) string {
	if phases == 1 {
		return "1 phase"
	}
	return fmt.Sprintf("%d phases", phases)
}
