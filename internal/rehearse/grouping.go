package rehearse

import (
	"fmt"
	"io"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A grouping counts the blocks, units and left-over rows of the training data if a report is about more than one row.
// It holds for all runs, which differ in who comes when.
type grouping struct {
	Silos    int `json:"silos,omitempty"`         // that take part
	Refused  int `json:"refused_silos,omitempty"` // that have too few units
	Units    int `json:"units"`                   // rows, or people, of those who take part
	Reports  int `json:"reports"`                 // that there are to draw; one a block
	LeftOver int `json:"left_over"`               // units at the ends of silos that fill no block
	Surplus  int `json:"surplus"`                 // rows beyond user.items
	Nameless int `json:"nameless"`                // rows of nobody, or of no silo, which cannot be read
	Shared   int `json:"shared,omitempty"`        // people who are in several silos
}

// Groups holds the units and blocks of a task with reports about more than one row.
type Groups struct {
	counts *grouping
	units  []block.Block   // people, or the units of the silos that take part, each by itself
	silos  [][]block.Block // the units of each silo; nil: the task has none
	blocks func(plan *wire.Plan, seed uint64) (all []block.Block, silos []int)
}

// Blocks returns the blocks that the silos make for one run of a plan, and the silo of each.
func (g Groups) Blocks(plan *wire.Plan, seed uint64) (all []block.Block, silos []int) {
	return g.blocks(plan, seed)
}

// Group makes the units of the rows to learn from: people, or the units of silos that split makes of the rows, which
// are rows or people. It says how many there are, and refuses rows that make too few for the plan.
func Group(job run.Job, rows *Rows, split string, progress io.Writer) (g Groups, err error) {
	spec := job.Spec
	if spec.Silo == nil {
		units, counts, err := rows.People()
		if err != nil {
			return g, err
		}
		g.counts, g.units = &counts, units
		fmt.Fprintf(progress, "%s of the %d rows to train on; %s\n", count(job, len(units)), len(rows.Train), counts.Left())
		if need := manifest.Users(job.Plan) + manifest.Spare(job.Plan); uint64(len(units)) < need &&
			!manifest.Endless(job.Plan) {
			return g, fmt.Errorf("--data %s: its rows are of %d users, the plan needs %d: --set schedule.users=%d",
				rows.data.Path, len(units), need, len(units))
		}
		return g, nil
	}
	var people, named []string
	if spec.Privacy.ByUser() {
		if people, err = rows.Users(); err != nil {
			return g, err
		}
	}
	if sim.SplitNames(split) {
		if named, err = rows.splitNames(split); err != nil {
			return g, err
		}
	}
	silos, err := sim.Silos(split, spec.Silo.Count, rows.Train, named)
	if err != nil {
		return g, fmt.Errorf("--%w", err)
	}
	g.counts = &grouping{}
	for _, name := range named {
		if name == "" {
			g.counts.Nameless++
		}
	}
	if people == nil {
		of := make([][]convex.Example, len(silos))
		for i, at := range silos {
			of[i] = pick(rows.Train, at)
		}
		err = enter(&g, job, split, progress, of, block.Of)
		return g, err
	}
	units, known := make([][][]convex.Example, len(silos)), map[string]int{}
	for i, at := range silos {
		ids := pick(people, at)
		of, counts := block.ByUser(pick(rows.Train, at), ids, spec.User.Items)
		for _, one := range of {
			units[i] = append(units[i], one.Rows)
		}
		g.counts.Surplus, g.counts.Nameless = g.counts.Surplus+counts.Surplus, g.counts.Nameless+counts.Nameless
		for _, id := range ids {
			if before, met := known[id]; id != "" && (!met || before >= 0 && before != i) {
				if known[id] = i; met {
					g.counts.Shared, known[id] = g.counts.Shared+1, -1
				}
			}
		}
	}
	err = enter(&g, job, split, progress, units, block.Join)
	return g, err
}

// mostNamed bounds the silos without a part in the task that are named one by one.
const mostNamed = 5

// enter makes the silos' units blocks, of those silos that their devices let take part.
func enter[U any](g *Groups, job run.Job, split string, progress io.Writer, silos [][]U,
	of func(...U) block.Block) error {
	o, plan, first := job.Spec.Silo, job.Plan, manifest.Gradients(job.Plan)
	units, least, key := unitsOf(plan), o.Units, "silo.units"
	if job.Spec.Privacy.Trust == accounting.Local {
		least, key = o.Least, "silo.least"
	}
	if units > 0 {
		least, key = units, "the units of a block"
	}
	var in [][]U
	for i, all := range silos {
		if len(all) >= least {
			in, g.counts.Units = append(in, all), g.counts.Units+len(all)
			continue
		}
		if g.counts.Refused++; g.counts.Refused <= mostNamed {
			fmt.Fprintf(progress, "silo %d has %s to train on and takes no part: its device wants at least %s, %d\n", i+1,
				count(job, len(all)), key, least)
		}
	}
	if more := g.counts.Refused - mostNamed; more > 0 {
		fmt.Fprintf(progress, "%d more silos take no part\n", more)
	}
	if uint64(len(in)) < max(1, first.Minimum) {
		return fmt.Errorf(
			"--split %s: %d of %d silos have at least %s (%d), and a round wants %d of them: lower silo.units to what silos have, or "+
				"schedule.minimum_cohort", split, len(in), len(silos), key, least, max(1, first.Minimum))
	}
	for _, all := range in {
		first := len(g.units)
		for i := range all {
			g.units = append(g.units, of(all[i:i+1]...))
		}
		g.silos = append(g.silos, g.units[first:])
	}
	all, _, left := sim.BlocksOf(in, units, 0, of)
	g.counts.Silos, g.counts.Reports, g.counts.LeftOver = len(in), len(all), left
	fmt.Fprintf(progress, "%s make %s of their %s; %d at the ends of silos fill none%s\n",
		cli.Count(len(in), "silo"), cli.Count(len(all), "block"), count(job, g.counts.Units), left, g.counts.people())
	g.blocks = func(plan *wire.Plan, seed uint64) (all []block.Block, silos []int) {
		all, silos, _ = sim.BlocksOf(in, unitsOf(plan), seed, of)
		return all, silos
	}
	return nil
}

// unitsOf returns the number of units in each block of a plan of silos; 0 means all that a silo has.
func unitsOf(plan *wire.Plan) int {
	if manifest.Costliest(plan, 0).Interactive() {
		return 0
	}
	return int(max(1, manifest.Gradients(plan).Mechanism.Units))
}

// Left describes the rows that are in no report.
func (g grouping) Left() string {
	return fmt.Sprintf("%d rows are beyond user.items, and %d are nobody's", g.Surplus, g.Nameless)
}

// people describes the rows in no report and the people in several silos, for silos that protect people.
func (g grouping) people() string {
	var text string
	if g.Surplus+g.Nameless > 0 {
		text = "; " + g.Left()
	}
	if g.Shared > 0 {
		text += fmt.Sprintf("; %d people are in several silos, and protected in each by itself", g.Shared)
	}
	return text
}

// count returns n with the plan's word for a unit, such as "3 people".
func count(job run.Job, n int) string { return wording.Of(job.Plan).Unit().Count(uint64(n)) }

// pick returns the elements at the given indices.
func pick[T any](of []T, at []int) []T {
	out := make([]T, len(at))
	for i, k := range at {
		out[i] = of[k]
	}
	return out
}
