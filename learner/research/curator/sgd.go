package curator

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// A pass is one step a person of projected gradient descent, in the order of the people, and the release of the
// mean of the points that the steps start from: the baseline B1. A step of size eta brings no two points further
// apart, so that replacing a person moves each point, and their mean, by at most 2 eta L.
type pass struct {
	public  Public
	eta     float64
	people  int
	lattice lattice
	delta   float64
	apart   float64 // 2 eta L, and what rounding adds to two runs
}

// longestStep returns the largest step that brings no two points further apart.
func (p Public) longestStep() float64 { return 2 / (p.smoothness() + 2*p.Ridge) * (1 - 0x1p-30) }

// newPass refuses steps that are too long; its lattice is to be calibrated.
func newPass(p Public, eta float64, people int) (*pass, error) {
	if err := p.smoothable(); err != nil {
		return nil, err
	}
	if !(eta > 0 && eta <= p.longestStep()) {
		return nil, fmt.Errorf("pass: step %v: want above 0, and at most %v", eta, p.longestStep())
	}
	n, d, l, r := float64(people), float64(p.Dim), p.lipschitz(), p.Set.Radius()
	// of one step, in units of 2^-53: its gradient, then the step and its projection; of the mean of the points
	gradient := (addends+mostRows/addends+8)*l + slopeErrors*l + p.smoothness()*(min(d, addends)+d/addends+8)*r +
		8*p.Ridge*r
	step := (d/2+16)*r + 4*(r+eta*(l+p.Ridge*r))
	mean := (addends + n/addends + 16) * r
	s := &pass{public: p, eta: eta, people: people}
	s.apart = (2*eta*l + 4*(n*(eta*gradient+step)+mean)*0x1p-53) * (1 + 0x1p-40)
	return s, nil
}

func (s *pass) ball() float64 {
	return min(s.eta*(s.public.lipschitz()+s.public.Ridge*s.public.Set.Radius())*float64(s.people),
		s.public.diameter()) * (1 + 0x1p-40)
}

func (s *pass) ratio() float64 { return s.apart / (2 * s.ball()) * (1 + 0x1p-40) }

func (s *pass) cost() (std, delta float64) { return s.lattice.std(s.ball()), s.delta }

func (s *pass) inexact() float64 { return 0 }

func (s *pass) calibrate() (err error) {
	s.lattice, s.delta, err = cheapest(s.public.Dim, s.ball(), s.ratio(), s.public.Budget)
	return err
}

func (s *pass) release(ctx context.Context, t *table, from []float64, people []int, entropy rand.Source) ([]float64,
	bool, error) {
	x, err := s.mean(ctx, t, from, people)
	if err != nil {
		return nil, false, err
	}
	return x, true, publish(s.public.Set, x, from, s.ball(), s.lattice, entropy)
}

// mean returns the mean of the points x_0 = from, ..., before each person's step.
func (s *pass) mean(ctx context.Context, t *table, from []float64, people []int) ([]float64, error) {
	d := len(from)
	x, g, part, sum := make([]float64, d), make([]float64, d), make([]float64, d), make([]float64, d)
	copy(x, from)
	for k, i := range people {
		if k%addends == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		addTo(part, x)
		if k%addends == addends-1 || k == len(people)-1 {
			addTo(sum, part)
			clear(part)
		}
		t.gradient(g, x, i)
		for j, v := range x {
			x[j] = v - float64(s.eta*(g[j]+float64(s.public.Ridge*v)))
		}
		s.public.Set.Project(x, x)
	}
	for j := range sum {
		sum[j] /= float64(len(people))
	}
	return sum, nil
}

// passGrowths are changes of the step from one phase to the next.
var passGrowths = []float64{1. / 2, 1. / 3, 1. / 4, 1. / 6, 1. / 8, 1. / 16, 1. / 32}

// passRisk bounds the excess risk of one pass's mean point over a point that is distance away: fit + distance^2 drift, eta
// (L + mu R)^2/2 and 1/(2 eta n) (docs/proofs/curator.md, Baselines).
func (p Public) passRisk(eta float64, people int) (fit, drift float64) {
	return eta * p.steepest() * p.steepest() / 2, 1 / (2 * eta * float64(people))
}

// planOutputSGD returns a plan of B1 in phases on disjoint people, with the number of phases and the steps of
// the smallest bound:
//
//	distance^2/(2 eta n) + eta (L + mu R)^2/2
//
// for one phase's mean point.
func planOutputSGD(p Public) (*Plan, error) {
	perMove := noisePerMove(p.Budget)
	risk := func(c course, std func(i, people int) float64) float64 {
		parts := halves(p.People, c.phases)
		size := func(i int) int { return parts[i][1] - parts[i][0] }
		return phasesRisk(p, c.phases, func(i int) float64 { fit, _ := p.passRisk(c.at(i), size(i)); return fit },
			func(i int) float64 { _, drift := p.passRisk(c.at(i), size(i)); return drift },
			func(i int) float64 { return std(i, size(i)) })
	}
	longest := p.longestStep()
	low := min(longest, p.Set.Radius()/p.Lipschitz) * 1e-7
	c, _ := bestCourse(1, mostHalves(p.People), low, longest, passGrowths, func(c course) float64 {
		return risk(c, func(i, people int) float64 { return perMove * 2 * c.at(i) * p.Lipschitz })
	})
	if c.phases == 0 {
		return nil, fmt.Errorf("output-sgd: no course of phases of %d people has a finite bound", p.People)
	}
	parts, turns := halves(p.People, c.phases), make([]turn, c.phases)
	for i := range turns {
		s, err := newPass(p, min(c.at(i), longest), parts[i][1]-parts[i][0])
		if err == nil {
			err = s.calibrate()
		}
		if err != nil {
			return nil, err
		}
		turns[i] = s
	}
	bound := risk(c, func(i, _ int) float64 { std, _ := turns[i].cost(); return std })
	return inTurns("output-sgd", p, parts, turns, bound,
		fmt.Sprintf("%s of disjoint people, one step a person, of %.4g times %.3g from phase to phase", inPhases(c.phases),
			c.first, c.growth)), nil
}
