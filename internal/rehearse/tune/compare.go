package tune

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Config describes a comparison.
type Config struct {
	// Load reads the task with overrides.
	Load  func(sets []string) (*task.Spec, error)
	Rows  Rows
	Seeds int // runs of each setting, at least 2
	First uint64
	Most  uint64 // users of a run that are simulated one by one
	// Progress, if not nil, is called for every run that is done.
	Progress func(Progress)
}

// Progress counts the runs of a comparison that are done.
type Progress struct {
	Done, Runs int
}

// A Comparison is settings that can be planned, in the order in which they are tried.
type comparison struct {
	Config
	measure    rehearse.Measure
	users      uint64 // of the task
	candidates []*candidate
	dropped    []dropped
}

type candidate struct {
	setting setting
	job     run.Job
	values  []float64 // by seed
	losses  []float64
	rounds  uint64 // of the last seed
}

// New plans the settings. One that cannot be planned, or changes nothing, is dropped.
func New(c Config) (*comparison, error) {
	if c.Seeds < 2 {
		return nil, fmt.Errorf("seeds: %d, want at least 2: without a spread nothing can be called better", c.Seeds)
	}
	if c.Most < 1 {
		return nil, fmt.Errorf("most users of a run: 0, want at least 1")
	}
	spec, err := c.Load(nil)
	if err != nil {
		return nil, err
	}
	if spec.Silo != nil || spec.Privacy.ByUser() {
		return nil, errors.New("not yet for silos and people: settings are compared on rows that report for themselves; " +
			"learner simulate --set KEY=VALUE --seeds K shows one setting on public data")
	}
	out := &comparison{Config: c}
	if err := out.add(setting{}); err != nil {
		return nil, err
	}
	base := out.candidates[0]
	out.users = manifest.Users(base.job.Plan)
	out.measure = rehearse.MeasureOf(base.job.Spec.Model.Loss)
	settings, err := out.settings(base.job)
	if err != nil {
		return nil, err
	}
	for _, s := range settings {
		if err := out.add(s); err != nil {
			out.dropped = append(out.dropped, dropped{s, err.Error()})
		}
	}
	return out, nil
}

// plan plans a setting.
func (c *comparison) plan(s setting) (run.Job, error) {
	spec, err := c.Load(s.Sets())
	if err != nil {
		return run.Job{}, err
	}
	return run.NewJob(spec)
}

// add plans a setting that is to be tried.
func (c *comparison) add(s setting) error {
	job, err := c.plan(s)
	if err != nil {
		return err
	}
	for _, other := range c.candidates {
		if features(other.job) == features(job) && other.job.Plan.String() == job.Plan.String() {
			return fmt.Errorf("the plan is the same as with the task %s", other.setting)
		}
	}
	c.candidates = append(c.candidates, &candidate{setting: s, job: job})
	return nil
}

// features returns a text that differs for different feature maps.
func features(job run.Job) string {
	return fmt.Sprint(job.Spec.Features.Crosses, job.Features.Dim(), job.Features.Bound())
}

// cost counts the runs of a comparison and their size.
type cost struct {
	Settings, Seeds, Runs int
	Users                 uint64 // of one run
	Simulated             uint64 // users with simulated reports
	Coordinates           int    // of one report, of the widest setting
}

// cost counts, without what the settings that turn out better are tried together.
func (c *comparison) Cost() cost {
	n := c.users
	out := cost{Settings: len(c.candidates), Seeds: c.Seeds, Runs: len(c.candidates) * c.Seeds, Users: n,
		Simulated: min(n, c.Most)}
	for _, one := range c.candidates {
		out.Coordinates = max(out.Coordinates, int(manifest.Gradients(one.job.Plan).Mechanism.Dim))
	}
	return out
}

// Run simulates every setting once a seed. Where several keys were better by themselves it tries them together. It
// stops early with the context's error.
func (c *comparison) Run(ctx context.Context) (Report, error) {
	for i := 0; i < len(c.candidates); i++ {
		if err := c.simulate(ctx, i); err != nil {
			return Report{}, fmt.Errorf("the task %s: %w", c.candidates[i].setting, err)
		}
		if i == len(c.candidates)-1 && i > 0 {
			c.together()
		}
	}
	return c.report(), nil
}

// together adds the union of what was better, the best of each key, as far as it can be planned, once.
func (c *comparison) together() {
	union := setting{}
	for _, one := range c.ranked() {
		if len(one.setting) == 0 || shares(union, one.setting) {
			continue
		}
		with := maps.Clone(union)
		maps.Copy(with, one.setting)
		if _, err := c.plan(with); err == nil { // hats leave no numbers to products, for one
			union = with
		}
	}
	known := slices.ContainsFunc(c.candidates, func(one *candidate) bool { return one.setting.String() == union.String() })
	if len(union) < 2 || known {
		return
	}
	if err := c.add(union); err != nil {
		c.dropped = append(c.dropped, dropped{union, err.Error()})
	}
}

func shares(a, b setting) bool {
	for key := range b {
		if _, both := a[key]; both {
			return true
		}
	}
	return false
}

// simulate runs one setting with all seeds.
func (c *comparison) simulate(ctx context.Context, i int) error {
	one := c.candidates[i]
	mapped, err := c.Rows.Map(one.job.Spec)
	if err != nil {
		return err
	}
	config := simulated(one.job, c.Most)
	n := manifest.Users(config.Plan)
	for k := range c.Seeds {
		seed := c.First + uint64(k)
		sample, err := mapped.Draw(seed, int(n), 1)
		if err != nil {
			return err
		}
		config.Examples, config.Seed = sample.Rows(), seed
		result, err := sim.Run(ctx, config)
		if err != nil {
			return err
		}
		evaluation, err := model.Predictor{Features: one.job.Features, Loss: one.job.Loss,
			Theta: result.Model}.EvaluateExamples(sample.Test)
		if err != nil {
			return err
		}
		one.values = append(one.values, c.measure.Of(evaluation))
		one.losses = append(one.losses, evaluation.Loss)
		one.rounds = result.Rounds
		if c.Progress != nil {
			c.Progress(Progress{Done: i*c.Seeds + k + 1, Runs: len(c.candidates) * c.Seeds})
		}
	}
	return nil
}

// ranked returns the settings that are better than the task as it is, the best first.
func (c *comparison) ranked() []*candidate {
	var out []*candidate
	for _, one := range c.candidates[1:] {
		if c.better(one) {
			out = append(out, one)
		}
	}
	gain := func(one *candidate) float64 {
		return stat.Mean(c.measure.Gains(one.values, c.candidates[0].values), nil)
	}
	slices.SortStableFunc(out, func(a, b *candidate) int {
		switch x, y := gain(a), gain(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return out
}

func (c *comparison) better(one *candidate) bool {
	if len(one.values) != c.Seeds {
		return false
	}
	var overlap float64
	if c.Rows.Data() {
		overlap = rehearse.Overlap
	}
	return better(c.measure.Gains(one.values, c.candidates[0].values), len(c.candidates)-1, overlap)
}
