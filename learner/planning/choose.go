package planning

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/stream/manifest"
)

// enough is the share of the progress from the start to the best plan that a cheaper plan may lack.
const enough = 0.01

// choose returns the plan with the best simulated result, see measure, and sets its Why. It prefers a cheaper plan
// (fewer answers of each user, then fewer rounds) that lacks at most a hundredth of the progress, and in an interactive
// task an interactive plan that lacks at most the noise of the seeds. It never chooses prox, whose answers cost silos
// many passes over their rows. If nothing can be simulated it returns the plan with the smallest bound. If no method
// has a plan, the error joins the errors of all methods.
func (p Problem) choose(all []Alternative) (Proposal, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(a Alternative) bool { return traitsOf(a.Method).Minimizers })
	var plans []Proposal
	var without []error
	var notes []string
	for _, a := range all {
		switch {
		case a.Err != nil:
			without = append(without, a.Err)
		case manifest.Planned(a.Plan) > measureRounds:
			notes = append(notes, fmt.Sprintf("%s, whose %d rounds are too many, was not simulated", a.Method,
				manifest.Planned(a.Plan)))
		default:
			plans = append(plans, a.Proposal)
		}
	}
	switch {
	case len(without) == len(all):
		return Proposal{}, fmt.Errorf("no method has a plan: %w", errors.Join(without...))
	case len(without) == len(all)-1:
		return leastBound(all, "the only method that applies"), nil
	case len(plans) == 0:
		return leastBound(all, "the smallest bound: no plan is short enough to be simulated"), nil
	}
	measured, start, err := p.measure(plans)
	if err != nil {
		return leastBound(all, fmt.Sprintf("the smallest bound: nothing could be simulated, %v", err)), nil
	}
	first := 0
	for i := range plans {
		if measured[i].mean < measured[first].mean {
			first = i
		}
	}
	at := first
	for i, one := range plans {
		lacks, noise := measured[i].mean-measured[first].mean, 0.0
		if p.Interactive && traitsOf(one.Plan.Algorithm).Interactive {
			noise = 2 * measured[i].deviation(measured[first])
		}
		if lacks > max(noise, enough*(start-measured[first].mean)) {
			continue
		}
		if prefers(one, plans[at], p.Interactive) || i < at && !prefers(plans[at], one, p.Interactive) {
			at = i
		}
	}
	best := plans[at]
	best.Why = fmt.Sprintf(
		"auto took %s: with simulated rows of the task's shape its objective was %.4g, mean of %d seeds, from %.4g at the start",
		best.Plan.Algorithm, measured[at].mean, len(measured[at].objectives), start)
	var others []string
	for i, one := range plans {
		if i != at {
			others = append(others, fmt.Sprintf("%s %.4g", one.Plan.Algorithm, measured[i].mean))
		}
	}
	if len(others) > 0 {
		best.Why += "; " + strings.Join(others, ", ")
	}
	if measured[at].mean >= start {
		notes = append(notes, "no method got below the start: more data, a larger epsilon or fewer parameters are needed")
	}
	if p.Interactive && !traitsOf(best.Plan.Algorithm).Interactive && len(plans) > 1 {
		notes = append(notes,
			"nobody answers more than one round although the task is interactive, because what would ask them again did worse or does not apply")
	}
	for _, n := range notes {
		best.Why += "; " + n
	}
	return best, nil
}

// prefers reports whether the first of two equally good plans is better: in an interactive task an interactive plan,
// then fewer answers of a user, then fewer rounds.
func prefers(one, other Proposal, interactive bool) bool {
	again := func(q Proposal) bool { return interactive && traitsOf(q.Plan.Algorithm).Interactive }
	if again(one) != again(other) {
		return again(one)
	}
	if a, b := manifest.RoundsPerUser(one.Plan), manifest.RoundsPerUser(other.Plan); a != b {
		return a < b
	}
	return manifest.Planned(one.Plan) < manifest.Planned(other.Plan)
}

// deviation returns the standard error of the mean difference of two measurements, whose seeds are the same.
func (m measurement) deviation(of measurement) float64 {
	var square float64
	n := float64(len(m.objectives))
	for i, y := range m.objectives {
		d := y - of.objectives[i] - (m.mean - of.mean)
		square += d * d
	}
	return math.Sqrt(square / n / (n - 1))
}

// leastBound returns the plan with the smallest bound. reason explains why plans are not simulated. It prefers bounds
// on the population to bounds on the users at hand, which are smaller because they promise less.
func leastBound(all []Alternative, reason string) (best Proposal) {
	for _, a := range all {
		if a.Err == nil && (best.Plan == nil || best.OnRecords && !a.OnRecords || best.OnRecords == a.OnRecords &&
			a.ExcessRisk < best.ExcessRisk) {
			best = a.Proposal
		}
	}
	best.Why = fmt.Sprintf("auto took %s, %s; its bound is %.4g", best.Plan.Algorithm, reason, best.ExcessRisk)
	for _, a := range all {
		if a.Err == nil && a.Method != best.Plan.Algorithm {
			best.Why += fmt.Sprintf(", %s %.4g", a.Method, a.ExcessRisk)
			if a.OnRecords {
				best.Why += " on the records alone"
			}
		}
	}
	return best
}
