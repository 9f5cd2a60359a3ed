package curator

import (
	"fmt"
	"math"
)

// fewestGroups returns Least of group-sgd: one phase, in which everybody is a group.
func fewestGroups(p Public) int { return leastGroups(p.Budget, p.failure()) }

// mostPhases bounds the number of phases that a search tries.
const mostPhases = 6

// schedules yields the sizes of phases that a search tries, up to so many phases, each of at least so many people:
// all alike, or each half of the one before.
func schedules(n, most, least int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		for l := 1; l <= most; l++ {
			for q := range min(l, 2) {
				if sizes := split(n, float64(q), l); sizes[l-1] >= least && !yield(sizes) {
					return
				}
			}
		}
	}
}

// searchGroups takes the number of groups, the phases and the step sizes with the smallest bound, with Gaussian
// noise as a guide.
func searchGroups(p Public) (*groupPlan, error) {
	var best *groupPlan
	least := math.Inf(1)
	fewest := fewestGroups(p)
	for c := fewest; c <= p.People; c += 2 * (c/8 + 1) {
		known := map[int]constants{} // by the number of phases
		for sizes := range schedules(p.People, mostPhases, c) {
			l := len(sizes)
			if _, ok := known[l]; !ok {
				known[l], _ = bestGroups(c, p.Budget, p.failure()/float64(l))
			}
			if math.IsInf(known[l].sigma, 1) {
				continue
			}
			for _, growth := range []float64{0, 0.25, 0.5, 1, 1.5, 2, 3} {
				if g := stepped(p, known[l], sizes, growth); g.bound() < least {
					best, least = g, g.bound()
				}
			}
		}
	}
	if best == nil {
		return nil, fmt.Errorf("no groups of %d people have a finite bound", p.People)
	}
	return best, nil
}

// stepped returns the plan with the first step size of the smallest bound, where phases' step sizes fall by
// 2^-growth. All terms of the bound but the first grow with it, in proportion.
func stepped(p Public, c constants, sizes []int, growth float64) *groupPlan {
	unit := concentrated(c.groups, len(sizes), p.failure()) * p.spread() * p.Lipschitz
	at := func(eta float64) *groupPlan {
		g := &groupPlan{public: p, constants: c, phases: make([]groupPhase, len(sizes))}
		for i, n := range sizes {
			size := n / c.groups
			ph := groupPhase{people: n, size: size, steps: size * p.Items, eta: eta * math.Exp2(-growth*float64(i))}
			ph.tau = unit * ph.eta * math.Sqrt(float64(ph.steps))
			ph.sigma = c.sigma * ph.tau
			g.phases[i] = ph
		}
		return g
	}
	one := at(1)
	first := p.Set.Radius() * p.Set.Radius() / (2 * float64(one.phases[0].steps))
	rest := 0.0
	for _, t := range one.terms(math.Inf(1))[1:] {
		rest += t
	}
	return at(min(math.Sqrt(first/rest), 2/(p.Smoothness+p.Ridge)))
}

// terms returns the terms of the bound on the risk of the filtered means, by phase, and of the last noise
// (docs/proofs/curator.md, groups):
//
//	R^2/(2 eta_1 T_1), then for every phase eta_i G^2/2 and, after the first, d sigma_(i-1)^2/(2 eta_i T_i), and G sqrt(d) sigma_l
//
// with G = L + mu R. No release is further than most from where it should be.
func (g *groupPlan) terms(most float64) []float64 {
	r, steep, d := g.public.Set.Radius(), g.public.steepest(), float64(g.public.Dim)
	off := r * r // the square of the distance to where the last phase went
	var out []float64
	for _, ph := range g.phases {
		out = append(out, off/(2*ph.eta*float64(ph.steps)), ph.eta*steep*steep/2)
		off = min(d*ph.sigma*ph.sigma, most*most)
	}
	return append(out, steep*math.Sqrt(off))
}

// bound bounds the expected excess risk, for rows that are independent draws: the terms, and the whole range
// of the risk where a test halts or groups are further apart than planned for, each with the probability
// failure at most.
func (g *groupPlan) bound() float64 {
	diameter := g.public.diameter()
	sum := 2 * g.public.failure() * g.public.steepest() * diameter
	for _, t := range g.terms(diameter) {
		sum += t
	}
	return sum
}
