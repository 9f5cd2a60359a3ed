package compare

import (
	"context"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// Config describes a comparison.
type Config struct {
	// Load reads the task with overrides.
	Load  func(sets []string) (*task.Spec, error)
	Rows  rehearse.Source
	Seeds int // runs of each line, at least 2
	First uint64
	// Progress, if not nil, is called for every run that is done.
	Progress func(done, runs int)
	// Planned, if not nil, is called for every planned way to run the task.
	Planned func(done, ways int)
}

// A Comparison is the lines that a task can have, planned.
type comparison struct {
	Config
	base    *task.Spec
	measure rehearse.Measure
	lines   []*line
	leftOut []string
	curated []Curated
	// constants holds the score of the best constant, by seed.
	constants []float64
}

// Limits of what is simulated. The rows of a seed are at most mostRows, of mostValues values.
const (
	mostRows   = 100_000
	mostValues = 2e7
)

// New plans the lines. It returns an error if the task is refused, or goes on for as long as users come.
func New(c Config) (*comparison, error) {
	if c.Seeds < 2 {
		return nil, fmt.Errorf("seeds: %d, want at least 2: without a spread nothing can be called better", c.Seeds)
	}
	base, err := c.Load(nil)
	if err != nil {
		return nil, err
	}
	if base.Schedule.Continuous != "" {
		return nil, errors.New("schedule.continuous: every line of the table ends, and this task does not")
	}
	out := &comparison{Config: c, base: base, measure: rehearse.MeasureOf(base.Model.Loss)}
	out.lines, out.leftOut = c.plan(base)
	if len(out.lines) == 0 {
		return nil, fmt.Errorf("no line can be planned: %s", out.leftOut[len(out.leftOut)-1])
	}
	out.curated, err = onePlace(base)
	return out, err
}

// Lines returns the number of lines.
func (c *comparison) Lines() int { return len(c.lines) }

// Run simulates every line once a seed, and recommends one. It stops early with the context's error.
func (c *comparison) Run(ctx context.Context) (Table, error) {
	items := c.items()
	n := min(c.base.Schedule.Users, mostRows/items, max(1, int(mostValues)/(items*c.lines[0].job.Problem.Dim)))
	for k := range c.Seeds {
		sample, err := c.Rows.Draw(c.First+uint64(k), max(n, 1), items)
		if err != nil {
			return Table{}, err
		}
		p := model.Predictor{Features: c.lines[0].job.Features, Loss: c.lines[0].job.Loss}
		c.constants = append(c.constants, c.measure.OfConstant(p.Baseline(sample.Rows(), sample.Test)))
		if k == 0 {
			if c.scale(sample.Units); len(c.lines) == 0 {
				return Table{}, fmt.Errorf("no line can be simulated: %s", c.leftOut[len(c.leftOut)-1])
			}
		}
		if err := c.seed(ctx, k, sample); err != nil {
			return Table{}, err
		}
	}
	return c.table(), nil
}

// items returns the rows of a unit.
func (c *comparison) items() int {
	if c.base.Privacy.ByUser() {
		return c.base.User.Items
	}
	return 1
}

// seed runs every line on a sample.
func (c *comparison) seed(ctx context.Context, k int, s rehearse.Sample) error {
	for i, one := range c.lines {
		if err := c.simulate(ctx, one, k, s); err != nil {
			return fmt.Errorf("%s: %w", one.name(), err)
		}
		if c.Progress != nil {
			c.Progress(k*len(c.lines)+i+1, c.Seeds*len(c.lines))
		}
	}
	return nil
}

// simulate runs one line on a sample.
func (c *comparison) simulate(ctx context.Context, one *line, k int, s rehearse.Sample) error {
	if one.events {
		s.Units, s.Silos = rowsOf(s.Units), nil
	}
	config, rows := one.simulated(s, c.First+uint64(k))
	result, err := sim.Run(ctx, config)
	if err != nil {
		return err
	}
	p := model.Predictor{Features: one.job.Features, Loss: one.job.Loss, Theta: result.Model}
	e, err := p.EvaluateExamples(s.Test)
	if err != nil {
		return err
	}
	value, constant := c.measure.Of(e), c.constants[k]
	one.Rows = rows
	one.values = append(one.values, value)
	one.points = append(one.points, c.points(value, constant))
	one.above = append(one.above, c.points(value, constant)-c.points(constant, constant))
	return nil
}

// points converts a score to points, which are hundredths: of accuracy, or of the error of the best constant,
// by which a model's error is smaller.
func (c *comparison) points(value, constant float64) float64 {
	switch {
	case !c.measure.Falls:
		return 100 * value
	case constant == 0: // no error to fall short of
		return 0
	}
	return 100 * (1 - value/constant)
}

// rowsOf returns the rows of units, each a unit of its own.
func rowsOf(units [][]convex.Example) (out [][]convex.Example) {
	for _, unit := range units {
		for i := range unit {
			out = append(out, unit[i:i+1])
		}
	}
	return out
}
