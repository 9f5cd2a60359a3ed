package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// cohort is that of a step: the next users of a phase, or where they answer several rounds as many of the stint's as there are to come,
// drawn by the seed where those are not all.
func (r *run) cohort(phase int, step uint64) []int32 {
	of := r.stints[phase]
	if !of.interactive {
		n := manifest.Cohort(r.Plan, step)
		first := of.first + r.taken
		r.taken += n
		r.users = max(r.users, first+n)
		return r.order[first : first+n]
	}
	r.users = max(r.users, of.first+of.users)
	all, n := r.order[of.first:of.first+of.users], r.Plan.Phases[phase].Cohort
	if n == of.users {
		return all
	}
	all = slices.Clone(all)
	rand.New(Entropy(r.Seed, "available", step)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

// A stint is the phases that the same users answer.
type stint struct {
	first, users uint64 // in the order of taking part
	interactive  bool   // each answers more than one round
}

// stintsOf are those of the plan, by phase.
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
