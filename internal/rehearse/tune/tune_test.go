package tune

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/manifest"
)

const quickstart = "../../../deploy/tasks/quickstart.yaml"

// madeUpRows returns a comparison on rows of the quickstart's declaration.
func madeUpRows(t *testing.T, sets ...string) Config {
	t.Helper()
	load := func(more []string) (*task.Spec, error) {
		return task.Load(quickstart, append(slices.Clone(sets), more...))
	}
	spec, err := load(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.NewSchema(spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Load: load, Rows: Schema{s}, Seeds: 4, First: 1, Most: 1 << 20}
}

// only returns a comparison that tries these settings and no others.
func only(t *testing.T, c Config, settings ...setting) *comparison {
	t.Helper()
	all, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	all.candidates, all.dropped = all.candidates[:1], nil
	for _, s := range settings {
		if err := all.add(s); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestBestIsTheBetterSetting(t *testing.T) {
	rows := madeUpRows(t, "schedule.users=3000", "privacy.epsilon=0.05")
	rows.Seeds = 10
	c := only(t, rows, one("privacy.epsilon", 0.04), one("privacy.epsilon", 8))
	report, err := c.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if report.Best.String() != "privacy.epsilon=8" || !report.Candidates[2].Better || report.Candidates[1].Better ||
		report.Candidates[0].Gain != 0 {
		t.Errorf("epsilon 8 is not what was taken for 0.05: %+v", report)
	}
}

// Two keys that are better alone are tried together.
func TestTogether(t *testing.T) {
	c := only(t, madeUpRows(t, "schedule.users=3000", "privacy.epsilon=0.05", "privacy.delta=1e-12"),
		one("privacy.epsilon", 1), one("privacy.delta", 1e-3),
		one("privacy.epsilon", 4))
	for i, v := range [][]float64{{.5, .5, .5, .5}, {.6, .61, .6, .6}, {.55, .55, .56, .55}, {.7, .71, .7, .7}} {
		c.candidates[i].values = v
	}
	c.together()
	if got := c.candidates[len(c.candidates)-1].setting.String(); got != "privacy.delta=0.001 privacy.epsilon=4" {
		t.Errorf("together: %s", got)
	}
	if c.together(); len(c.candidates) != 5 {
		t.Errorf("%d candidates: the union was added twice", len(c.candidates))
	}
}

// Where no setting is better, one is called so in at most one comparison of twenty: of 4,000 comparisons of seven
// settings at most 260, which happens by chance with probability below 1e-5 if the level is kept.
func TestLevelOfBetter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	wrong := 0
	for range 4000 {
		called := false
		base := make([]float64, 8)
		for i := range base {
			base[i] = r.NormFloat64()
		}
		for range 7 {
			values := slices.Clone(base)
			for i := range values {
				values[i] += 0.3 * r.NormFloat64()
			}
			called = called || better(rehearse.MeasureOf("logistic").Gains(values, base), 7, 0)
		}
		if called {
			wrong++
		}
	}
	if wrong > 260 {
		t.Errorf("%d of 4000 comparisons of equals found a better one, want at most 260", wrong)
	}
	for _, c := range []struct {
		gains []float64
		want  bool
	}{{[]float64{1, 1.1, 0.9, 1}, true}, {[]float64{-1, -1.1, -0.9, -1}, false}, {[]float64{0, 0, 0, 0},
		false}, {[]float64{1, -0.5, 2, 0}, false}} {
		if got := better(c.gains, 3, rehearse.Overlap); got != c.want {
			t.Errorf("better(%v) = %v", c.gains, got)
		}
	}
	if g := rehearse.MeasureOf("squared").Gains([]float64{1}, []float64{3}); g[0] != 2 {
		t.Errorf("an error of 1 in place of 3 gains %v, want 2", g[0])
	}
}

func TestSettingsMeanSomething(t *testing.T) {
	load := func(path string) func([]string) (*task.Spec, error) {
		return func(sets []string) (*task.Spec, error) { return task.Load("../../../deploy/tasks/"+path, sets) }
	}
	for path, want := range map[string]map[string]bool{
		"adult.yaml": {"features.crosses": true, "norm_bound": true, "schedule.rounds.max": true,
			"features.columns.2": true, "features.fourier": true, "schedule.interactive": true, "model.ridge": true},
		"quickstart.yaml": {"features.crosses": false, "norm_bound": true, "model.clip_norm": true,
			"schedule.rounds.max": true, "schedule.first_cohort": true},
	} {
		spec, err := load(path)(nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sim.NewSchema(spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		data := Public{Load: func(spec *task.Spec) (rehearse.Public, error) {
			features, err := spec.Compile()
			if err != nil {
				return rehearse.Public{}, err
			}
			rows, err := s.Rows(features, 500, 1)
			return rehearse.Public{Rows: rows}, err
		}}
		c, err := New(Config{Load: load(path), Rows: data, Seeds: 2, Most: 1 << 20})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for key, wanted := range want {
			found := slices.ContainsFunc(c.candidates, func(one *candidate) bool { _, has := one.setting[key]; return has })
			if found != wanted {
				t.Errorf("%s: %s is tried: %v, want %v (dropped: %v)", path, key, found, wanted, c.dropped)
			}
		}
	}
}

// Settings of silos and of people are not compared as if every row reported for itself.
func TestBlocksAreRefused(t *testing.T) {
	for name, change := range map[string]func(*task.Spec){
		"silos":  func(s *task.Spec) { s.Silo = &task.Silo{Count: 10, Units: 300} },
		"people": func(s *task.Spec) { s.Privacy.Unit, s.User = task.UnitUser, &task.User{Column: "who", Items: 4} },
	} {
		rows := madeUpRows(t, "schedule.users=3000")
		load := rows.Load
		rows.Load = func(sets []string) (*task.Spec, error) {
			spec, err := load(sets)
			if err == nil {
				change(spec)
			}
			return spec, err
		}
		if _, err := New(rows); err == nil || !strings.Contains(err.Error(), "not yet for silos and people") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	config := madeUpRows(t, "schedule.users=2000")
	config.Progress = func(Progress) { cancel() }
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the first run was cancelled: %v", err)
	}
	if len(c.candidates[0].values) != 1 {
		t.Errorf("%d runs after the cancellation", len(c.candidates[0].values)-1)
	}
}

// A sample represents its cohort: fewer users are simulated, and the noise stays the task's.
func TestSampleHasTheNoiseOfTheTask(t *testing.T) {
	config := madeUpRows(t, "schedule.users=20000")
	spec, err := config.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	if whole := simulated(job, 20000); whole.NoiseStd != nil || manifest.Users(whole.Plan) != 19800 {
		t.Errorf("%d of 19800 users are simulated", manifest.Users(whole.Plan))
	}
	sample := simulated(job, 3000)
	if n := manifest.Users(sample.Plan); n > 3000 || n < 2500 {
		t.Errorf("%d users are simulated, want about 2,857 of 3,000", n)
	}
	for i, f := range sample.Plan.Phases {
		want := f.Mechanism.ClipNorm * job.Forecasts[i].Privacy.TotalStd()
		if got := sample.NoiseStd(i, f.Cohort); math.Abs(got-want) > 1e-12*want {
			t.Errorf("phase %d: noise %v, want %v", i+1, got, want)
		}
	}
	config.Most, config.Seeds = 3000, 2
	report, err := only(t, config).Run(context.Background())
	if err != nil || report.Users != 19800 || report.Candidates[0].Mean < 0.5 {
		t.Errorf("%+v, %v", report, err)
	}
}

// Of a task without an end fewer users are simulated, in the cohorts that it has: a round of m users has the noise
// of the task's round of m.
func TestSampleOfAStream(t *testing.T) {
	config := madeUpRows(t, "schedule.users=20000", "schedule.continuous=adaptive")
	spec, err := config.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	f := manifest.Gradients(job.Plan)
	want := f.Mechanism.ClipNorm * job.First().Privacy.TotalStd() * float64(f.Cohort) / 500
	sample := simulated(job, 3000)
	if n := manifest.Users(sample.Plan); n != 3000 {
		t.Errorf("%d users are simulated, want 3000", n)
	}
	if sample.NoiseStd != nil && sample.NoiseStd(1, 500) < 0.99*want {
		t.Errorf("noise %v of a round of 500, want %v", sample.NoiseStd(1, 500), want)
	}
	config.Most, config.Seeds = 3000, 2
	report, err := only(t, config).Run(context.Background())
	if err != nil || report.Users != 20000 || report.Candidates[0].Rounds < 4 {
		t.Errorf("%+v, %v: want the rounds of 3,000 users", report, err)
	}
}
