package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// cohort returns the cohort of a step: the next users of a phase or, where users answer several rounds, as
// many of the stint's as are planned, drawn by the seed if those are not all.
func (r *run) cohort(phase int, q method.Query) ([]int32, error) {
	of, step := r.stints[phase], q.Step
	if r.Silos != nil {
		return r.silos(phase, step)
	}
	if !of.interactive {
		n := manifest.Cohort(r.Plan, step)
		if q.Cohort > 0 {
			n = q.Cohort
		}
		first := of.first + r.taken
		r.taken += n
		r.users = max(r.users, first+n)
		return r.order[first : first+n], nil
	}
	r.users = max(r.users, of.first+of.users)
	return r.drawn(r.order[of.first:of.first+of.users], r.Plan.Phases[phase].Cohort, step), nil
}

// drawn returns n of those who answer several rounds, drawn by the seed and the step; all if there are no
// more.
func (r *run) drawn(all []int32, n, step uint64) []int32 {
	if n >= uint64(len(all)) {
		return all
	}
	all = slices.Clone(all)
	rand.New(Entropy(r.Seed, "available", step)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

// planned returns the number of reports that a step of silos is planned for.
func planned(plan *wire.Plan, phase int, step uint64) uint64 {
	if manifest.Costliest(plan, phase).Interactive() {
		return plan.Phases[phase].Cohort
	}
	return manifest.Cohort(plan, step)
}

// silos returns the cohort of a step of silos: as many as the step is planned for. In many passes they are
// drawn by the seed for each round; in one pass it takes the next block of each of as many silos that have
// one left.
func (r *run) silos(phase int, step uint64) ([]int32, error) {
	n, least := planned(r.Plan, phase, step), r.Plan.Phases[phase].Minimum
	var out []int32
	if r.stints[phase].interactive {
		out = r.drawn(r.order, n, step)
		r.users = uint64(len(r.order))
	} else {
		var later []int32
		come := map[int]bool{}
		for _, i := range r.left {
			if of := r.Silos[i]; uint64(len(out)) == n || come[of] {
				later = append(later, i)
			} else {
				out, come[of] = append(out, i), true
			}
		}
		r.left = later
		r.users += uint64(len(out))
	}
	if uint64(len(out)) < max(1, least) {
		return nil, fmt.Errorf("%d silos have a report for it: %d are planned, and want at least %d; "+
			"lower silo.units to what silos have, without the rows that are held out for testing", len(out), n, least)
	}
	return out, nil
}

// A stint is the phases that the same users answer.
type stint struct {
	first, users uint64 // in the order of taking part
	interactive  bool   // each takes part in more than one round
}

// stintsOf returns the stint of each phase of the plan.
func stintsOf(plan *wire.Plan) []stint {
	out := make([]stint, len(plan.Phases))
	var users uint64
	for i, f := range plan.Phases {
		if f.Again && i > 0 {
			out[i] = out[i-1]
			continue
		}
		out[i] = stint{first: users, users: f.Users, interactive: manifest.Costliest(plan, i).Interactive()}
		users += f.Users
	}
	return out
}
