package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// Costs of a simulation, in what one value of a row costs: some nanoseconds.
const (
	rowCost = 100 // of a look at a row, beside its values
	budget  = 5e9 // of all runs: a fraction of a minute
	// mostUnits is the most units that the smallest run of a line may take: cohorts and blocks of one are not made
	// smaller.
	mostUnits = 2 * mostRows
)

// scale sets how many units each line takes, so that all runs cost no more than the budget: lines that look
// at all rows often take fewer.
func (c *comparison) scale(units [][]convex.Example) {
	rows := slices.Concat(units...)
	var values float64
	for _, row := range rows {
		values += float64(len(row.Value))
	}
	each := make([]float64, len(c.lines)) // cost of a unit of a line
	full := make([]float64, len(c.lines))
	for i, l := range c.lines {
		looks := looksOf(l.job.Plan)
		n := float64(len(units))
		if l.events {
			n = float64(len(rows))
		}
		full[i] = looks * (rowCost*float64(len(rows)) + values*float64(l.job.Loss.Parameters(1)))
		each[i] = full[i] / n
	}
	most := level(full, budget/float64(c.Seeds))
	for i, l := range c.lines {
		l.scale(uint64(min(full[i], most) / each[i]))
	}
	var long reasons
	c.lines = slices.DeleteFunc(c.lines, func(l *line) bool {
		if l.units() <= mostUnits {
			return false
		}
		long.put(l.Algorithm, fmt.Sprintf("rounds of so few rows that a run would take more than %d of them", mostUnits))
		return true
	})
	c.leftOut = append(c.leftOut, long.all()...)
}

// looksOf returns how often a row is looked at: in every round of its holder, once for every inner
// step.
func looksOf(plan *wire.Plan) (looks float64) {
	for _, f := range plan.Phases {
		each := float64(max(1, f.GetProx().GetSteps()))
		if f.RoundsPerUser > 1 || f.Again {
			looks += float64(f.Rounds) * each
		} else {
			looks = max(looks, each) // of other users, or other rows
		}
	}
	return looks
}

// level returns the most that each may cost so that all together cost the sum; +Inf where they cost less.
func level(costs []float64, sum float64) float64 {
	costs = slices.Sorted(slices.Values(costs))
	for i, cost := range costs {
		left := float64(len(costs) - i)
		if cost*left > sum {
			return sum / left
		}
		sum -= cost
	}
	return math.Inf(1)
}

// scale changes the line's plan to one that at most so many units answer. Where the task has more, every
// cohort is represented by fewer reports, or every report of an organisation by one about fewer units. The
// estimate then has Gaussian noise instead of the randomizer's, with the standard deviation of the release of
// the plan's own cohorts: privacy's noise is the noise for all units, and the sampling error, which is
// larger, comes from the units that take part.
func (l *line) scale(most uint64) {
	most = max(most, l.job.Plan.Silos, 1)
	l.share = (l.job.Problem.Users + most - 1) / most
	for _, f := range l.job.Plan.Phases {
		if l.job.Plan.Silos > 0 { // a block has a unit, and blocks of rounds add up to no more than a silo
			l.share = min(l.share, max(1, f.Mechanism.Units))
		}
	}
	if l.job.Plan.Silos > 0 {
		for _, f := range l.job.Plan.Phases {
			l.share = min(l.share, max(1, f.Mechanism.Units))
		}
	}
	for i, f := range l.job.Plan.Phases {
		privacy := l.job.Forecasts[i].Privacy
		if l.share > 1 && l.job.Plan.Silos > 0 {
			f.Mechanism.Units = max(1, f.Mechanism.Units/l.share)
		} else if l.share > 1 {
			all := f.Cohort == f.Users
			f.Cohort = max(1, f.Cohort/l.share)
			if f.Users = max(f.Cohort, f.Users/l.share); f.RoundsPerUser == 1 {
				f.Users = f.Cohort * f.Rounds
			} else if all {
				f.Users = f.Cohort
			}
		}
		l.std = append(l.std, f.Mechanism.ClipNorm*privacy.TotalStd()*float64(f.Cohort))
	}
}

// simulated returns the run of a line on units, and how many rows it takes.
func (l *line) simulated(s rehearse.Sample, seed uint64) (sim.Config, int) {
	units, plan := s.Units, l.job.Plan
	out := sim.Config{Plan: plan, Loss: l.job.Loss, Score: l.job.Score(), Seed: seed,
		NoiseStd: func(phase int, users uint64) float64 { return l.std[phase] / float64(users) }}
	silos, each, n := int(plan.Silos), int(max(1, l.job.Problem.Silos.Units/l.share)), int(manifest.Users(plan))
	if silos > 0 {
		n = silos * each
	}
	units = rehearse.Repeated(units, n) // cohorts of one report, and silos of one unit, are not made smaller
	if silos > 0 {
		of := slices.Collect(slices.Chunk(units[:n], each))
		if len(s.Silos) == silos {
			for i, own := range s.Silos {
				of[i] = rehearse.Repeated(own, each)[:each]
			}
		}
		about := int(max(1, manifest.Gradients(plan).Mechanism.Units))
		if manifest.Costliest(plan, 0).Interactive() {
			about = 0
		}
		out.Blocks, out.Silos, _ = sim.BlocksOf(of, about, seed, block.Join)
		out.InOrder = true // whose turns the seed gave
		return out, len(slices.Concat(units[:n]...))
	}
	if l.job.Problem.ByUser {
		for _, unit := range units {
			out.Blocks = append(out.Blocks, block.Join(unit))
		}
		return out, len(slices.Concat(units[:n]...))
	}
	out.Examples = slices.Concat(units...)
	return out, n
}

// units returns how many units one run of the line takes, after scale.
func (l *line) units() uint64 {
	if silos := l.job.Plan.Silos; silos > 0 {
		return silos * max(1, l.job.Problem.Silos.Units/l.share)
	}
	return manifest.Users(l.job.Plan)
}
