package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/stream/manifest"
)

// group makes the blocks of the rows to train on: of silos, as --split says, or of people.
func (s *simulation) group(progress io.Writer, data string) error {
	spec := s.job.Spec
	if s.order.inOrder {
		return cli.Usagef("--in-order: not with silos and people, whose order the seed says")
	}
	if spec.Silo != nil && spec.ByUser() {
		return cli.Usagef("silos whose units are people are not simulated yet: want privacy.unit event, or no silo")
	}
	var names []string
	if spec.ByUser() || sim.SplitNames(s.split) {
		var err error
		if names, err = s.names(data); err != nil {
			return err
		}
	}
	if spec.Silo == nil {
		people, counts := block.ByUser(s.train, names, spec.User.Items)
		fmt.Fprintf(progress, "%d people of the %d rows to train on; %d rows are beyond user.items, and %d are nobody's\n", len(people), len(s.train), counts.Surplus, counts.Nameless)
		s.blocks = func(uint64) []block.Block { return people }
		return nil
	}
	silos, err := sim.Silos(s.split, spec.Silo.Count, s.train, names)
	if err != nil {
		return cli.Usagef("--%w", err)
	}
	for i, rows := range silos {
		if len(rows) < spec.Silo.Units {
			return cli.Usagef("--split %s: silo %d has %d of the rows to train on, want at least silo.units (%d)", s.split, i+1, len(rows), spec.Silo.Units)
		}
	}
	units := 0 // all rows
	if !spec.Schedule.Interactive {
		units = int(max(1, manifest.Gradients(s.job.Plan).Mechanism.Units))
	}
	blocks, left := sim.BlocksOf(silos, units, 0)
	fmt.Fprintf(progress, "%d silos make %d blocks of the %d rows to train on; %d rows at their ends fill none\n", len(silos), len(blocks), len(s.train), left)
	s.blocks = func(seed uint64) []block.Block {
		blocks, _ := sim.BlocksOf(silos, units, seed)
		return blocks
	}
	return nil
}

// names are what splits and people ask for of each row to train on: whom it is of, the value of a column, or the label as the file has it.
func (s *simulation) names(data string) ([]string, error) {
	spec := *s.job.Spec
	features, err := s.features()
	column, named := strings.CutPrefix(s.split, sim.SplitColumn)
	if named && !spec.ByUser() {
		if format := spec.Events.Format; s.format == "" && (format == task.LIBSVM || format == task.IDX) || s.format == task.LIBSVM || s.format == task.IDX {
			return nil, cli.Usagef("--split %s: %s has no named columns", s.split, format)
		}
		spec.User = &task.User{Column: column}
		features, err = s.featuresOf(&spec)
	}
	if err != nil {
		return nil, err
	}
	rows, err := source.OpenFitting(data, features)
	if err != nil {
		return nil, cli.Usage(err)
	}
	defer rows.Close()
	var out []string
	i := uint(0)
	for row, err := range rows.All() {
		var unfit *task.RowError
		if err != nil && !errors.As(err, &unfit) {
			return nil, err
		}
		if i++; s.holdout > 0 && i%s.holdout == 0 {
			continue // it is one of the test
		}
		if spec.User != nil {
			out = append(out, row.User)
		} else {
			out = append(out, row.Label)
		}
	}
	return out, nil
}
