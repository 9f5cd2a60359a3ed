package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// read maps the rows to train and to test on. It needs no plan.
func (s *simulation) read(progress io.Writer, data, test string) error {
	features, err := s.features()
	if err != nil {
		return err
	}
	all, invalid, err := run.LoadExamples(features, data, nameRows(progress, "zero vector"))
	if err != nil {
		return cli.Usage(err)
	}
	if len(invalid) > 0 {
		fmt.Fprintf(progress, "%d of %d rows of %s do not fit the declaration; they report the zero vector\n", len(invalid),
			len(all), data)
	}
	if len(all) == 0 {
		return cli.Usagef("--data %s: no rows", data)
	}
	if err := s.roles(data, len(all)); err != nil {
		return err
	}
	s.share(all, invalid)
	if err := s.predictor(nil).CheckLabels(s.labelled, true); err != nil {
		return cli.Usagef("--data %s: %w", data, err)
	}
	if test != "" {
		if s.test, invalid, err = run.LoadExamples(features, test, nameRows(progress, "left out")); err != nil {
			return cli.Usage(err)
		}
		if len(invalid) > 0 {
			fmt.Fprintf(progress, "%d of %d rows of %s do not fit the declaration; they are left out\n", len(invalid),
				len(s.test), test)
			s.test = fitting(s.test, invalid)
		}
	}
	if s.test != nil {
		if err := s.predictor(nil).CheckLabels(s.test, false); err != nil {
			return cli.Usagef("the test data: %w", err)
		}
	}
	return nil
}

// features returns the feature map for data of the format that they are in.
func (s *simulation) features() (*task.FeatureMap, error) {
	if s.format == "" {
		return s.job.Features, nil
	}
	return s.featuresOf(s.job.Spec)
}

// featuresOf returns the feature map of a declaration for data of the format that they are in.
func (s *simulation) featuresOf(spec *task.Spec) (*task.FeatureMap, error) {
	if s.format != "" {
		var err error
		if spec, err = spec.ReadAs(s.format); err != nil {
			return nil, cli.Usagef("--format: %w", err)
		}
	}
	return spec.Compile()
}

// share gives each row its role. Those to test on that do not fit are left out: they would count as examples with a
// label.
func (s *simulation) share(rows []convex.Example, invalid []int) {
	if s.holdout == 0 && len(invalid) == 0 {
		s.train, s.labelled = rows, rows
		return
	}
	for i, row := range rows {
		_, unfit := slices.BinarySearch(invalid, i)
		switch held := s.holdout > 0 && s.held[i]; {
		case !held:
			if s.train = append(s.train, row); !unfit {
				s.labelled = append(s.labelled, row)
			}
		case !unfit:
			s.test = append(s.test, row)
		}
	}
}

// fitting returns the rows that fit the declaration.
func fitting(rows []convex.Example, invalid []int) []convex.Example {
	out := make([]convex.Example, 0, len(rows))
	for i, row := range rows {
		if _, unfit := slices.BinarySearch(invalid, i); !unfit {
			out = append(out, row)
		}
	}
	return out
}
