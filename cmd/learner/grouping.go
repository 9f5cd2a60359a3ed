package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
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

// blocks holds all blocks of one run; silos[i] is the silo of all[i].
type blocks struct {
	all   []block.Block
	silos []int
}

// group makes the blocks of the rows to train on: of silos, as --split says, of people, or of silos whose units are
// people.
func (s *simulation) group(progress io.Writer, data string) error {
	spec := s.job.Spec
	if s.order.inOrder {
		return cli.Usagef("--in-order: not with silos and people, whose order the seed says")
	}
	var people, named []string
	var err error
	if spec.ByUser() {
		if people, err = s.names(data, ""); err != nil {
			return err
		}
	}
	if spec.Silo == nil {
		all, counts := block.ByUser(s.train, people, spec.User.Items)
		s.grouped = &grouping{Units: len(all), Reports: len(all), Surplus: counts.Surplus, Nameless: counts.Nameless}
		s.units = all
		fmt.Fprintf(progress, "%s of the %d rows to train on; %s\n", s.count(len(all)), len(s.train), s.grouped.rows())
		if need := manifest.Users(s.job.Plan) + manifest.Spare(s.job.Plan); uint64(len(all)) < need &&
			!manifest.Endless(s.job.Plan) {
			return cli.Usagef("--data %s: its rows are of %d users, the plan wants %d: --set schedule.users=%d", data, len(all),
				need, len(all))
		}
		return nil
	}
	if sim.SplitNames(s.split) {
		if named, err = s.names(data, s.split); err != nil {
			return err
		}
	}
	silos, err := sim.Silos(s.split, spec.Silo.Count, s.train, named)
	if err != nil {
		return cli.Usagef("--%w", err)
	}
	s.grouped = &grouping{}
	for _, name := range named {
		if name == "" {
			s.grouped.Nameless++
		}
	}
	if people == nil {
		rows := make([][]convex.Example, len(silos))
		for i, at := range silos {
			rows[i] = pick(s.train, at)
		}
		return enter(s, progress, rows, block.Of)
	}
	units, known := make([][][]convex.Example, len(silos)), map[string]int{}
	for i, at := range silos {
		ids := pick(people, at)
		of, counts := block.ByUser(pick(s.train, at), ids, spec.User.Items)
		for _, one := range of {
			units[i] = append(units[i], one.Rows)
		}
		s.grouped.Surplus, s.grouped.Nameless = s.grouped.Surplus+counts.Surplus, s.grouped.Nameless+counts.Nameless
		for _, id := range ids {
			if before, met := known[id]; id != "" && (!met || before >= 0 && before != i) {
				if known[id] = i; met {
					s.grouped.Shared, known[id] = s.grouped.Shared+1, -1
				}
			}
		}
	}
	return enter(s, progress, units, block.Join)
}

// mostNamed bounds the silos without a part in the task that are named one by one.
const mostNamed = 5

// enter makes the silos' units blocks, of those silos that their devices let take part.
func enter[U any](s *simulation, progress io.Writer, silos [][]U, of func(...U) block.Block) error {
	o := s.job.Spec.Silo
	plan, first := s.job.Plan, manifest.Gradients(s.job.Plan)
	units, least, key := unitsOf(plan), o.Units, "silo.units"
	if s.job.Spec.Local() {
		least, key = o.Least, "silo.least"
	}
	if units > 0 {
		least, key = units, "the units of a block"
	}
	var in [][]U
	for i, all := range silos {
		if len(all) >= least {
			in, s.grouped.Units = append(in, all), s.grouped.Units+len(all)
			continue
		}
		if s.grouped.Refused++; s.grouped.Refused <= mostNamed {
			fmt.Fprintf(progress, "silo %d has %s to train on and takes no part: its device wants at least %s, %d\n", i+1,
				s.count(len(all)), key, least)
		}
	}
	if more := s.grouped.Refused - mostNamed; more > 0 {
		fmt.Fprintf(progress, "%d more silos take no part\n", more)
	}
	if uint64(len(in)) < max(1, first.Minimum) {
		return cli.Usagef(
			"--split %s: %d of %d silos have at least %s (%d), and a round wants %d of them: lower silo.units to what silos have, or "+
				"schedule.minimum_cohort", s.split, len(in), len(silos), key, least, max(1, first.Minimum))
	}
	for _, all := range in {
		first := len(s.units)
		for i := range all {
			s.units = append(s.units, of(all[i:i+1]...))
		}
		s.silos = append(s.silos, s.units[first:])
	}
	all, _, left := sim.BlocksOf(in, units, 0, of)
	s.grouped.Silos, s.grouped.Reports, s.grouped.LeftOver = len(in), len(all), left
	fmt.Fprintf(progress, "%s make %s of their %s; %d at the ends of silos fill none%s\n", cli.Count(len(in), "silo"),
		cli.Count(len(all), "block"),
		s.count(s.grouped.Units), left, s.grouped.people())
	s.blocks = func(plan *wire.Plan, seed uint64) blocks {
		all, silos, _ := sim.BlocksOf(in, unitsOf(plan), seed, of)
		return blocks{all, silos}
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

// rows describes the rows that are in no report.
func (g grouping) rows() string {
	return fmt.Sprintf("%d rows are beyond user.items, and %d are nobody's", g.Surplus, g.Nameless)
}

// people describes the rows in no report and the people in several silos, for silos whose units are people.
func (g grouping) people() string {
	var text string
	if g.Surplus+g.Nameless > 0 {
		text = "; " + g.rows()
	}
	if g.Shared > 0 {
		text += fmt.Sprintf("; %d people are in several silos, and protected in each by itself", g.Shared)
	}
	return text
}

// count returns n with the plan's word for a unit, such as "3 people".
func (s *simulation) count(n int) string { return wording.Of(s.job.Plan).Unit().Count(uint64(n)) }

// pick returns the elements at the given indices.
func pick[T any](of []T, at []int) []T {
	out := make([]T, len(at))
	for i, k := range at {
		out[i] = of[k]
	}
	return out
}

// roles decides which of the data's rows are held out.
func (s *simulation) roles(data string, rows int) error {
	if s.holdout == 0 {
		return nil
	}
	spec := s.job.Spec
	people := make([]string, rows)
	if spec.ByUser() {
		var err error
		if people, err = s.names(data, ""); err != nil {
			return err
		}
		if len(people) != rows {
			return fmt.Errorf("the data have changed: %d rows, there were %d", len(people), rows)
		}
	}
	holdout := block.Holdout{Every: s.holdout, Task: spec.Name, People: spec.ByUser()}
	held, out := make([]bool, rows), 0
	for i := range held {
		if held[i] = holdout.Has(i, people[i]); held[i] {
			out++
		}
	}
	if out == 0 || out == rows {
		return cli.Usagef("--holdout %d: holds out %d of the %d rows of %s: want some to learn from and some to test on, "+
			"by another K or more data", s.holdout, out, rows, data)
	}
	s.held = held
	return nil
}

// names returns the name by which each training row is grouped: its label as written in the file, the value of the
// column that split names, or, if split is empty, the user the row belongs to (privacy.unit user).
func (s *simulation) names(data, split string) ([]string, error) {
	features, err := s.features()
	if err != nil {
		return nil, err
	}
	column, named := strings.CutPrefix(split, sim.SplitColumn)
	if split == "" {
		column, named = s.job.Spec.User.Column, true
	}
	if format := features.Schema().Events.Format; named && format.Vectors() {
		return nil, cli.Usagef("--split %s: %s has no named columns", split, format)
	}
	if !named {
		column = ""
	}
	rows, err := source.OpenNamed(data, features, column)
	if err != nil {
		return nil, cli.Usage(err)
	}
	defer rows.Close()
	var out []string
	i := 0
	for row, err := range rows.All() {
		var unfit *task.RowError
		if err != nil && !errors.As(err, &unfit) {
			return nil, err
		}
		if i++; i <= len(s.held) && s.held[i-1] {
			continue // it is one of the test
		}
		if named {
			out = append(out, row.User)
		} else {
			out = append(out, row.Label)
		}
	}
	return out, nil
}
