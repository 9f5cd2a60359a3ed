package curator

import (
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A scored release happens if a score is at most the number of deletions that is drawn (docs/proofs/curator.md,
// Deletion: the profile).
type scored struct {
	deletions law
	ratio     func(s, t int) float64 // of the ball's diameter, how far apart neighbours of two scores are
	radius    float64                // of the ball
	lattice   lattice
	delta     float64 // that was evaluated
}

func (r *scored) cost() (std, delta float64) { return r.lattice.std(r.radius), r.delta }

// after returns r itself.
func (r *scored) after() *scored { return r }

// calibrate takes a lattice of few trials at which the release is within the budget.
func (r *scored) calibrate(dim int, b accounting.Budget) (err error) {
	middle := r.deletions.Kappa()
	r.lattice, r.delta, err = smallest(dim, r.radius, min(1, r.ratio(middle, middle)), b.Delta,
		func(l lattice) float64 { return r.profile(l)(b.Epsilon) })
	return err
}

// profile bounds what the release costs on a lattice, at every epsilon.
func (r *scored) profile(l lattice) func(eps float64) float64 {
	at, below := r.deletions.Survival()
	known := map[[2]int]accounting.Curve{}
	return func(eps float64) float64 {
		delta, _, _ := accounting.DeletionProfile(eps, at, below, func(s, t int) accounting.Curve {
			scores := [2]int{s, t}
			c, ok := known[scores]
			if !ok {
				c = l.curve(r.ratio(s, t), 1).Near(eps)
				known[scores] = c
			}
			return c
		})
		return delta
	}
}

// together lowers the trials of releases one after the other, each calibrated for its share of a budget, by one
// factor for all, as far as all of them are within the budget, and returns the delta that was evaluated for them at
// its epsilon (docs/proofs/curator.md, Releases one after the other).
func together(b accounting.Budget, releases []*scored) float64 {
	spent, best := 0.0, make([]lattice, len(releases))
	for i, r := range releases { // epsilons and deltas add up
		spent, best[i] = spent+r.delta, r.lattice
	}
	lowered := func(factor float64) (ls []lattice, delta float64) {
		profiles := make([]func(eps float64) float64, len(releases))
		for i, r := range releases {
			l := r.lattice
			l.trials = 2 * uint64(math.Ceil(float64(l.trials/2)*factor))
			ls, profiles[i] = append(ls, l), r.profile(l)
		}
		return ls, accounting.ComposedDelta(b.Epsilon, profiles...)
	}
	for low, high := 0.25/float64(len(releases)*len(releases)), 1.0; high > 1.01*low; {
		middle := math.Sqrt(low * high)
		if ls, delta := lowered(middle); delta <= b.Delta {
			high, spent, best = middle, delta, ls
		} else {
			low = middle
		}
	}
	for i, r := range releases {
		r.lattice = best[i]
	}
	return spent
}
