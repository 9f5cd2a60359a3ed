package rehearse

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// Data names rows that one may look at.
type Data struct {
	Path    string
	Test    string      // rows to score on; empty: none but those held out
	Format  task.Format // of both; empty: the task's
	Holdout uint        // one unit of so many is one of the test, see block.Holdout; 0: none
}

// features returns the feature map of a declaration for rows of the format that the data are in.
func (d Data) features(spec *task.Spec) (*task.FeatureMap, error) {
	if d.Format != "" {
		var err error
		if spec, err = spec.ReadAs(d.Format); err != nil {
			return nil, fmt.Errorf("--format: %w", err)
		}
	}
	return spec.Compile()
}

// Rows are the rows of a task that one may look at.
type Rows struct {
	Train    []convex.Example // to learn from
	Test     []convex.Example // to score on; nil: none
	Features *task.FeatureMap // of the declaration
	Loss     convex.Loss

	spec     *task.Spec
	mapped   *task.FeatureMap // Features, for the format of the data
	data     Data
	held     []bool           // the rows of the data that are of the test
	labelled []convex.Example // rows of Train that fit the declaration
}

// Read maps the rows to learn from and the rows to score on. It needs no plan, and prints rows that do not fit to
// progress.
func Read(spec *task.Spec, data Data, progress io.Writer) (*Rows, error) {
	r := &Rows{spec: spec, data: data}
	var err error
	if r.Features, err = spec.Compile(); err != nil {
		return nil, err
	}
	if r.Loss, err = spec.Loss(); err != nil {
		return nil, err
	}
	if r.mapped, err = data.features(spec); err != nil {
		return nil, err
	}
	all, invalid, err := run.LoadExamples(r.mapped, data.Path, run.NameRows(progress, "zero vector"))
	if err != nil {
		return nil, err
	}
	if len(invalid) > 0 {
		fmt.Fprintf(progress, "%d of %d rows of %s do not fit the declaration; they report the zero vector\n", len(invalid),
			len(all), data.Path)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("--data %s: no rows", data.Path)
	}
	if err := r.hold(len(all)); err != nil {
		return nil, err
	}
	r.share(all, invalid)
	if err := r.predictor(nil).ValidateLabels(r.labelled, true); err != nil {
		return nil, fmt.Errorf("--data %s: %w", data.Path, err)
	}
	if data.Test != "" {
		if r.Test, invalid, err = run.LoadExamples(r.mapped, data.Test, run.NameRows(progress, "left out")); err != nil {
			return nil, err
		}
		if len(invalid) > 0 {
			fmt.Fprintf(progress, "%d of %d rows of %s do not fit the declaration; they are left out\n", len(invalid),
				len(r.Test), data.Test)
			r.Test = fitting(r.Test, invalid)
		}
	}
	if r.Test != nil {
		if err := r.predictor(nil).ValidateLabels(r.Test, false); err != nil {
			return nil, fmt.Errorf("the test data: %w", err)
		}
	}
	return r, nil
}

// hold decides which of the data's rows are held out.
func (r *Rows) hold(rows int) error {
	if r.data.Holdout == 0 {
		return nil
	}
	people := make([]string, rows)
	if r.spec.Privacy.ByUser() {
		var err error
		if people, err = r.Users(); err != nil {
			return err
		}
		if len(people) != rows {
			return fmt.Errorf("the data have changed: %d rows, there were %d", len(people), rows)
		}
	}
	holdout := block.Holdout{Every: r.data.Holdout, Task: r.spec.Name, People: r.spec.Privacy.ByUser()}
	held, out := make([]bool, rows), 0
	for i := range held {
		if held[i] = holdout.Has(i, people[i]); held[i] {
			out++
		}
	}
	if out == 0 || out == rows {
		return fmt.Errorf("--holdout %d: holds out %d of the %d rows of %s: want some to learn from and some to test on, "+
			"by another K or more data", r.data.Holdout, out, rows, r.data.Path)
	}
	r.held = held
	return nil
}

// share gives each row its role. Those to test on that do not fit are left out: they would count as examples with a
// label.
func (r *Rows) share(rows []convex.Example, invalid []int) {
	if r.held == nil && len(invalid) == 0 {
		r.Train, r.labelled = rows, rows
		return
	}
	for i, row := range rows {
		_, unfit := slices.BinarySearch(invalid, i)
		switch held := r.held != nil && r.held[i]; {
		case !held:
			if r.Train = append(r.Train, row); !unfit {
				r.labelled = append(r.labelled, row)
			}
		case !unfit:
			r.Test = append(r.Test, row)
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

// People groups the rows to learn from by the user they belong to, for a task that protects users.
func (r *Rows) People() ([]block.Block, grouping, error) {
	users, err := r.Users()
	if err != nil {
		return nil, grouping{}, err
	}
	all, counts := block.ByUser(r.Train, users, r.spec.User.Items)
	return all, grouping{Units: len(all), Reports: len(all), Surplus: counts.Surplus, Nameless: counts.Nameless}, nil
}

// Users returns the user each row to learn from belongs to.
func (r *Rows) Users() ([]string, error) {
	return names(r.data.Path, r.mapped, r.spec.User.Column, true, r.held)
}

// splitNames returns the name by which a split puts each row to learn from into a silo: its label as written in the
// file, or the value of the column that the split names.
func (r *Rows) splitNames(split string) ([]string, error) {
	return splitNames(r.data.Path, r.mapped, split, r.held)
}

func splitNames(path string, features *task.FeatureMap, split string, held []bool) ([]string, error) {
	column, named := strings.CutPrefix(split, sim.SplitColumn)
	if !named {
		return names(path, features, "", false, held)
	}
	out, err := names(path, features, column, true, held)
	var nameless *namelessError
	if errors.As(err, &nameless) {
		err = fmt.Errorf("--split %s: %w", split, err)
	}
	return out, err
}

// A namelessError refuses to look for a column in rows of a format that has none.
type namelessError struct{ format task.Format }

func (e *namelessError) Error() string { return fmt.Sprintf("%s has no named columns", e.format) }

// names returns the value of a column for each row that is not held out; with named false its label.
func names(path string, features *task.FeatureMap, column string, named bool, held []bool) (out []string, err error) {
	if format := features.Schema().Events.Format; named && format.Vectors() {
		return nil, &namelessError{format}
	}
	rows, err := source.OpenNamed(path, features, column)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	i := 0
	for row, err := range rows.All() {
		var unfit *task.RowError
		if err != nil && !errors.As(err, &unfit) {
			return nil, err
		}
		if i++; i <= len(held) && held[i-1] {
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
