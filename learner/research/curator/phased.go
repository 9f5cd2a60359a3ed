package curator

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A perturbation is SCOutputPert of Ghazi et al. 2023: the release, within a budget, of the minimiser over so many
// people of the objective with (lambda/2)||. - c||^2, c the last released point. byGradscore and byDeletion are the
// two.
type perturbation func(p Public, b accounting.Budget, lambda float64, people int) (perturbed,
	error)

type perturbed interface {
	turn
	after() *scored
}

func byGradscore(p Public, b accounting.Budget, lambda float64, people int) (perturbed,
	error) {
	return bestGradscore(p, b, lambda, people)
}

// A phasing is one of the paper's four phased methods: on disjoint people, each phase with the whole budget, or on
// all people, with a share of it; and for strongly convex objectives, whose first phase has no weight but the
// objective's own (docs/proofs/curator.md, Phases).
type phasing struct {
	name     string
	disjoint bool
	strong   bool
}

var (
	phasedERM = phasing{"phased-erm", false, false}
	phasedSCO = phasing{"phased-sco", true, false}
	strongERM = phasing{"strongly-convex-erm", false, true}
	strongSCO = phasing{"strongly-convex-sco", true, true}
)

// mostShares bounds the number of phases on all people that are tried: each has a share of the budget.
const mostShares = 6

// scoredGrowths are changes of the weight from one phase to the next: those of Ghazi et al. 2023 and of Lowy, Liu
// and Asi 2024, who let it grow faster.
var scoredGrowths = []float64{2, 4, 8, 16, 64, 256}

// weight returns lambda of phase i of a course.
func (m phasing) weight(c course, i int) float64 {
	switch {
	case !m.strong:
		return c.at(i)
	case i == 0:
		return 0
	}
	return c.at(i - 1)
}

// share returns phase i's share of the budget, of so many phases, before they are lowered together: of phases
// on all people epsilons and deltas add up.
func (m phasing) share(phases, i int) float64 {
	switch {
	case m.disjoint || phases == 1:
		return 1
	case !m.strong:
		return 1 / float64(phases)
	case i == 0:
		return 1. / 2
	}
	return 1 / (2 * float64(phases-1))
}

// lowered guesses how much lower the noise of phases may be that are charged together.
func (m phasing) lowered(phases int) float64 {
	sum := 0.0
	for i := range phases {
		sum += m.share(phases, i) * m.share(phases, i)
	}
	return math.Pow(min(sum, 1), 0.45)
}

func (m phasing) budget(b accounting.Budget, phases, i int) accounting.Budget {
	share := m.share(phases, i) * (1 - 0x1p-40) // so that sums do not round above the budget
	return accounting.Budget{Epsilon: b.Epsilon * share, Delta: b.Delta * share}
}

// parts returns the people of each phase.
func (m phasing) parts(people, phases int) [][2]int {
	if m.disjoint {
		return halves(people, phases)
	}
	out := make([][2]int, phases)
	for i := range out {
		out[i] = [2]int{0, people}
	}
	return out
}

// least returns the fewest people for which the deletions of two phases exist; a single phase is gradscore.
func (m phasing) least(p Public) (n int) {
	for i := range 2 {
		l, _ := calibratedLaw(m.budget(p.Budget, 2, i))
		n = max(n, leastDeletions(l))
	}
	if m.disjoint {
		n = leastPhasedSCO(n)
	}
	return n
}

// risk bounds the expected excess risk, on the people's rows or on new ones, given the noise of each phase.
func (m phasing) risk(p Public, c course, std func(i int) float64, xi func(i int) float64) float64 {
	parts := m.parts(p.People, c.phases)
	return phasesRisk(p, c.phases, func(i int) float64 {
		fit := p.steepest() * xi(i)
		if m.disjoint {
			fit += generalisation(p, m.weight(c, i)+p.Ridge, parts[i][1]-parts[i][0])
		}
		return fit
	},
		func(i int) float64 { return m.weight(c, i) / 2 }, std) + p.failure()*p.steepest()*p.diameter()
}

// course returns the course of the smallest planned risk; one of no phases, where none is within reach.
func (m phasing) course(p Public) course {
	most := mostShares
	if m.disjoint {
		most = mostHalves(p.People)
	}
	type planned struct {
		law
		noise float64
	}
	laws := map[accounting.Budget]planned{}
	of := func(b accounting.Budget) planned {
		if _, ok := laws[b]; !ok {
			l, noise := calibratedLaw(b)
			laws[b] = planned{l, noise}
		}
		return laws[b]
	}
	best, _ := bestCourse(2, most, p.lightest(), p.heaviest(), scoredGrowths, func(c course) float64 {
		parts, q := m.parts(p.People, c.phases), p
		q.Failure = p.failure() / float64(c.phases)
		stds := make([]float64, c.phases)
		for i := range stds {
			l := of(m.budget(p.Budget, c.phases, i))
			people := parts[i][1] - parts[i][0]
			if people < leastDeletions(l.law) {
				return math.Inf(1)
			}
			if stds[i] = m.lowered(c.phases) * plannedNoise(q, m.weight(c, i), people, l.law, l.noise); math.IsInf(stds[i], 1) {
				return math.Inf(1)
			}
		}
		return m.risk(p, c, func(i int) float64 { return stds[i] }, func(int) float64 { return 0 })
	})
	return best
}

// plan returns a plan of the method over gradscore.
func (m phasing) plan(p Public) (*Plan, error) {
	if m.strong && p.Ridge == 0 {
		return nil, fmt.Errorf("%s: model.ridge 0: want one above 0, for a strongly convex objective", m.name)
	}
	if least := m.least(p); p.People < least {
		return nil, &TooFewError{m.name, p.People, least}
	}
	c := m.course(p)
	if c.phases == 0 {
		return nil, fmt.Errorf("%s: no course of phases for smoothness %v and %d people", m.name, p.Smoothness, p.People)
	}
	return m.planOf(p, c, byGradscore)
}

// planOf calibrates the phases of a course.
func (m phasing) planOf(p Public, c course, perturb perturbation) (*Plan, error) {
	parts, turns, q := m.parts(p.People, c.phases), make([]turn, c.phases), p
	q.Failure = p.failure() / float64(c.phases)
	releases := make([]*scored, c.phases)
	for i := range turns {
		t, err := perturb(q, m.budget(p.Budget, c.phases, i), m.weight(c, i), parts[i][1]-parts[i][0])
		if err != nil {
			return nil, fmt.Errorf("%s: phase %d: %w", m.name, i+1, err)
		}
		turns[i], releases[i] = t, t.after()
	}
	spent := 0.0
	if !m.disjoint {
		spent = together(p.Budget, releases)
	}
	bound := m.risk(p, c, func(i int) float64 { std, _ := turns[i].cost(); return std },
		func(i int) float64 { return turns[i].inexact() })
	plan := inTurns(m.name, p, parts, turns, bound, m.note(c))
	if plan.OnRecords = !m.disjoint; plan.OnRecords {
		plan.Spent.Delta = spent
	}
	return plan, nil
}

func (m phasing) note(c course) string {
	composed := "of all people, charged together"
	if m.disjoint {
		composed = "of disjoint people, each with the whole budget"
	}
	return fmt.Sprintf("%s %s; lambda %.4g times %.3g from phase to phase", inPhases(c.phases), composed, c.first,
		c.growth)
}
