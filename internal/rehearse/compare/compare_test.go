package compare

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/manifest"
)

const plain = `
version: 1
name: churn
events: {format: csv, columns: [id, a, b, churned]}
features: {columns: [{column: a, kind: numeric, min: -1, max: 1}, {column: b, kind: numeric, min: -1, max: 1}]}
label: {column: churned, positive: ["1"], negative: ["0"]}
model: {loss: logistic}
`

// kinds are tasks of every kind of unit and reporter, of few rows and a large epsilon.
var kinds = map[string]string{
	"events":    "privacy: {epsilon: 4, delta: 1e-6, honest_fraction: 0.9}\nschedule: {users: 1000, first_cohort: 100, rounds: {max: 3}}",
	"people":    "privacy: {epsilon: 4, delta: 1e-6, unit: user}\nuser: {column: id, items: 3}\nschedule: {users: 400, rounds: {max: 3}}",
	"records":   "privacy: {epsilon: 4, delta: 1e-6, trust: local}\nsilo: {count: 4, units: 300, least: 250}\nschedule: {rounds: {max: 3}}",
	"one table": "privacy: {epsilon: 4, delta: 1e-6, trust: local}\nsilo: {count: 1, units: 1000}\nschedule: {rounds: {max: 3}}",
	"patients":  "privacy: {epsilon: 4, delta: 1e-6, unit: user}\nuser: {column: id, items: 2}\nsilo: {count: 4, units: 150}\nschedule: {rounds: {max: 3}}",
}

func configOf(t *testing.T, name string, sets ...string) Config {
	t.Helper()
	load := func(more []string) (*task.Spec, error) {
		return task.Parse([]byte(plain+kinds[name]), slices.Concat(sets, more))
	}
	spec, err := load(nil)
	if err != nil {
		t.Fatal(err)
	}
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Load: load, Rows: rehearse.MadeUp{Spec: spec, Features: features}, Seeds: 2, First: 1}
}

// Every kind of task has its lines, each is what the task is with its overrides, and at most one is recommended,
// which keeps the unit.
func TestTable(t *testing.T) {
	for name, want := range map[string]struct {
		lines   []string // trust, passes and unit of practical plans
		leftOut []string
	}{
		"events": {[]string{"local one event", "local many event", "split one event", "split many event",
			"shuffle+pan one event", "pan one event",
			"shuffle one event", "shuffle many event",
			"one place one event", "one place many event"}, []string{"a section silo", "privacy.unit user",
			"model.radius is not given", "many passes under pan"}},
		"people": {[]string{"local one user", "local many user", "split one user", "split many user",
			"shuffle+pan one user", "pan one user", "shuffle one user",
			"shuffle one event",
			"shuffle many user", "shuffle many event", "one place one user", "one place many user"}, []string{"a section silo",
			"model.radius"}},
		"records": {[]string{"local one event", "local many event", "split one event", "split many event",
			"shuffle+pan one event", "pan one event",
			"shuffle one event", "shuffle many event",
			"one place one event", "one place many event"}, []string{"privacy.unit user", "model.radius"}},
		"one table": {[]string{"one place one event", "one place many event"}, []string{"privacy.unit user"}},
		"patients": {[]string{"local one user", "local many user", "split one user", "split many user",
			"shuffle+pan one user", "pan one user", "shuffle one user",
			"shuffle one event",
			"shuffle many user", "shuffle many event", "one place one user", "one place many user"}, []string{"model.radius"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := configOf(t, name)
			c, err := New(config)
			if err != nil {
				t.Fatal(err)
			}
			table, err := c.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			marked := 0
			for _, l := range table.Lines {
				got = append(got, fmt.Sprintf("%s %s %s", l.Trust, l.Passes, l.Unit))
				if l.Recommended {
					marked++
				}
				if l.Recommended && (l.Trust == "split" || !l.Keeps || l.Vacuous) || l.Proved != nil || l.Keeps == (l.Set == nil) || !(l.NoiseStd > 0) ||
					l.Bytes < l.ReportBytes {
					t.Errorf("a line %+v", l)
				}
				if !(l.Predicted > 0.2 && l.Predicted < 1) || l.Rows < 900 {
					t.Errorf("%s %s: predicted %v on %d rows", l.Trust, l.Passes, l.Predicted, l.Rows)
				}
				if l.Set == nil {
					continue
				}
				spec, err := config.Load(l.Set)
				if err != nil {
					t.Fatalf("%s: %v", l.Set, err)
				}
				if spec.Schedule.Interactive != (l.Passes == "many") {
					t.Errorf("%s: want %s", l.Set, l.Passes)
				}
				if !l.Recommended && (l.Trust != place || l.Passes == "one") {
					continue // planning takes long
				}
				job, err := run.NewJob(spec)
				if err != nil {
					t.Fatalf("%s: %v", l.Set, err)
				}
				if n := manifest.Planned(job.Plan); n != l.Rounds {
					t.Errorf("%s: %d rounds, the line has %+v", l.Set, n, l)
				}
			}
			if !slices.Equal(got, want.lines) {
				t.Errorf("lines %q, want %q (%q)", got, want.lines, table.LeftOut)
			}
			if marked > 1 || marked == 0 != strings.HasPrefix(table.Reason, "nothing") {
				t.Errorf("%d lines are recommended, because %q", marked, table.Reason)
			}
			for _, said := range want.leftOut {
				if !strings.Contains(strings.Join(table.LeftOut, "\n"), said) {
					t.Errorf("left out %q, want %q", table.LeftOut, said)
				}
			}
			for _, l := range c.lines {
				checkNoise(t, l)
			}
			if len(table.OnePlace) < 3 || table.People == 0 {
				t.Errorf("%d methods of one process for %d units", len(table.OnePlace), table.People)
			}
			var out strings.Builder
			if err := table.Print(&out); err != nil || !strings.Contains(strings.Join(strings.Fields(out.String()), " "),
				"recommended "+table.Reason) || strings.Count(out.String(), "\n* ") != marked {
				t.Errorf("%v:\n%s", err, out.String())
			}
			checkWidth(t, out.String())
		})
	}
}

// checkWidth checks the width of the printed lines, except for overrides, which are to be copied.
func checkWidth(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width &&
			!strings.Contains(line, "it is the task with --set ") {
			t.Errorf("%d columns, want at most %d: %s", n, width, line)
		}
	}
}

// The widest line that there may be is no wider.
func TestWidth(t *testing.T) {
	proved, rowsOfEach := 0.0123, 53992930
	wide := Line{Trust: "shuffle+pan", about: "20000 records", Passes: "many", Algorithm: "pagd-restarts", Rounds: 12345,
		NoiseStd: 0.0012, Sent: Sent{Bytes: 123456},
		Prediction: Prediction{Predicted: 0.75, PredictedWithin: 0.064, Behind: 12.6, BehindError: 4.9},
		Rows:       1, Bound: Bound{Proved: &proved, OnRecords: true},
		Trusted: "stage mixes, except one look; others add noise"}
	vacuous := wide
	vacuous.Vacuous, vacuous.ProvedVacuous = true, true
	for _, measure := range []string{"accuracy", "error", "mean_absolute_error", "quantile_loss"} {
		var out strings.Builder
		table := Table{Measure: measure, Rows: 200000, Lines: []Line{wide, vacuous}, Reason: strings.Repeat("a reason ", 40),
			LeftOut: []string{strings.Repeat("left out ", 30)}, People: 200000,
			OnePlace: []Curated{{Method: "strongly-convex-erm", Least: 123456, PaperLeast: 123456, Compared: true,
				LessNoiseFrom: &rowsOfEach, Bound: Bound{Proved: &proved, OnRecords: true},
				Better: "output-phases", BetterProved: proved}, {Method: "deletion", Refused: strings.Repeat("refused ", 30)}}}
		if err := table.Print(&out); err != nil {
			t.Fatal(err)
		}
		checkWidth(t, out.String())
	}
}

// Methods with a proof are lines where the model's radius is known, whatever methods there are: each with its bound.
func TestProvedLines(t *testing.T) {
	c, err := New(configOf(t, "records", "model.radius=5", "model.ridge=0.1", "schedule.rounds.max=8"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, l := range c.lines {
		seen[fmt.Sprintf("%s %s %s", l.Trust, l.Passes, l.Algorithm)] = l.Proved != nil
	}
	for _, want := range []string{"local one psgd", "local one pagd", "local many pgd", "local many apgd",
		"one place many apgd", "pan one psgd"} {
		if !seen[want] {
			t.Errorf("no line %s with a bound: %v; left out: %q", want, seen, c.leftOut)
		}
	}
	for _, text := range c.leftOut {
		if strings.Contains(text, "psgd") || strings.Contains(text, "apgd:") {
			t.Errorf("left out: %s", text)
		}
	}
}

// Whatever the number of units of a run, the noise of a mean has the standard deviation of the plan's own
// cohort.
func checkNoise(t *testing.T, l *line) {
	t.Helper()
	before := manifest.Users(l.job.Plan)
	l.std = nil
	l.scale(100)
	if took := manifest.Users(l.job.Plan); l.job.Plan.Silos == 0 && took >= before/2 {
		t.Errorf("%s %s: %d of %d users with at most 100", l.Trust, l.Passes, took, before)
	}
	for i, f := range l.job.Plan.Phases {
		want := f.Mechanism.ClipNorm * l.job.Forecasts[i].Privacy.TotalStd()
		if got := l.std[i] / float64(f.Cohort); math.Abs(got-want) > 1e-12*want {
			t.Errorf("%s %s, phase %d: noise %v, want %v", l.Trust, l.Passes, i, got, want)
		}
	}
}

// Of many silos with few rows each a run takes one row a report, and a row counts as several if there are too few of
// them.
func TestManySilosOfFewRows(t *testing.T) {
	c, err := New(configOf(t, "records", "silo={count: 300, units: 6}", "schedule.rounds.max=3"))
	if err != nil {
		t.Fatal(err)
	}
	sample, err := c.Rows.Draw(1, 250, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.constants = []float64{0.5}
	for _, l := range c.lines {
		l.scale(250)
		if err := c.simulate(t.Context(), l, 0, sample); err != nil {
			t.Errorf("%s %s: %v", l.Trust, l.Passes, err)
		}
		if of := manifest.Gradients(l.job.Plan).Mechanism.Units; l.Trust != place && of > 1 {
			t.Errorf("%s %s: %d rows a report", l.Trust, l.Passes, of)
		}
	}
}

// A line that may cost hardly anything is simulated all the same, though blocks of a few rows cannot be divided as
// often.
func TestSmallBlocksAreSimulated(t *testing.T) {
	c, err := New(configOf(t, "records", "model.radius=5", "schedule.rounds.max=8"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Rows.Draw(1, 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.constants = []float64{0.5}
	small := false
	for _, l := range c.lines {
		if said := l.proved(); l.OnRecords != (l.Algorithm == "apgd") || // which has no other bound without a ridge
			(said == "says nothing") != l.ProvedVacuous || !l.ProvedVacuous && strings.Contains(said, "on rows") != l.OnRecords {
			t.Errorf("%s: the bound is %s", l.name(), l.proved())
		}
		small = small || l.Silos > 1 && l.Units < 100
		if l.scale(8); l.Silos == 0 {
			continue
		}
		if err := c.simulate(context.Background(), l, 0, s); err != nil {
			t.Errorf("%s: %v", l.name(), err)
		}
	}
	if !small {
		t.Error("no line is of small blocks")
	}
}

// What cannot be simulated in a short time is said not to be.
func TestWhatWouldTakeLongIsLeftOut(t *testing.T) {
	c, err := New(configOf(t, "events"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Rows.Draw(1, 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.lines[0].job.Plan.Phases { // of one user a round
		f.Rounds, f.Cohort, f.Users = 300_000, 1, 300_000
	}
	c.lines[0].Algorithm, c.lines = "long", c.lines[:2]
	c.scale(s.Units)
	if last := c.leftOut[len(c.leftOut)-1]; len(c.lines) != 1 || c.lines[0].Algorithm == "long" ||
		!strings.HasPrefix(last, "long: rounds of so few rows") {
		t.Errorf("%d lines, left out %q", len(c.lines), last)
	}
}

// Points rise with the model: hundredths of what is right, or of the constant's error that is left out.
func TestPoints(t *testing.T) {
	rises, falls := comparison{}, comparison{measure: rehearse.Measure{Falls: true}}
	if a, b := rises.points(0.8, 0.7), falls.points(3, 4); a != 80 || b != 25 {
		t.Errorf("%v and %v points, want 80 and 25", a, b)
	}
}

// A task without end has no table.
func TestEndlessIsRefused(t *testing.T) {
	if _, err := New(configOf(t, "events", "schedule.continuous=adaptive", "schedule.rounds.max=0")); err == nil ||
		!strings.Contains(err.Error(), "schedule.continuous") {
		t.Error(err)
	}
}

// Data are held out by unit, and rows that do not fit are not scored on.
func TestPublicIsHeldOutByUnit(t *testing.T) {
	p := rehearse.Public{Unfit: []int{3, 7}}
	for i := range 40 {
		p.Rows = append(p.Rows, row(float64(i)))
		if i%2 == 0 {
			p.Units = append(p.Units, []int{i, i + 1})
		}
	}
	tested := map[float64]bool{}
	for seed := range uint64(40) {
		s, err := p.Draw(seed, 20, 2)
		if err != nil || len(s.Units) != 20 {
			t.Fatal(err, len(s.Units))
		}
		learned := map[float64]bool{}
		for _, u := range s.Units {
			if len(u) != 2 || u[1].Value[0] != u[0].Value[0]+1 {
				t.Fatalf("a unit %v", u)
			}
			learned[u[0].Value[0]], learned[u[1].Value[0]] = true, true
		}
		for _, r := range s.Test {
			if v := r.Value[0]; learned[v] || v == 3 || v == 7 {
				t.Fatalf("row %v is scored on", v)
			} else {
				tested[v] = true
			}
		}
	}
	if len(tested) != 38 {
		t.Errorf("%d rows are ever scored on, want 38", len(tested))
	}
	if _, err := (rehearse.Public{Rows: p.Rows, Units: p.Units[:2]}).Draw(1, 2, 2); err == nil {
		t.Error("two units are split")
	}
}

// Silos of split data are made of their own units alone, of which some are held out, and a line of as many silos
// takes them; one place takes all.
func TestSilosKeepTheirUnits(t *testing.T) {
	config := configOf(t, "records", "silo.units=20", "silo.least=0", "schedule.rounds.max=0")
	p := rehearse.Public{Silos: make([][]int, 4)}
	for i := range 120 {
		p.Rows, p.Units, p.Silos[i%4] = append(p.Rows, row(float64(i))), append(p.Units, []int{i}), append(p.Silos[i%4], i)
	}
	config.Rows = p
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Draw(1, 80, 1)
	if err != nil {
		t.Fatal(err)
	}
	learned := 0
	for i, silo := range s.Silos {
		for _, unit := range silo {
			if learned++; int(unit[0].Value[0])%4 != i {
				t.Errorf("silo %d has unit %v", i, unit[0].Value)
			}
		}
	}
	if learned+len(s.Test) != 120 {
		t.Errorf("%d units are learned from and %d scored on, of 120", learned, len(s.Test))
	}
	for _, l := range c.lines {
		if l.Passes == "one" {
			continue
		}
		l.scale(80)
		config, rows := l.simulated(s, 1)
		if rows != 80 || len(config.Blocks) != int(l.job.Plan.Silos) {
			t.Fatalf("%s: %d rows in %d blocks", l.Trust, rows, len(config.Blocks))
		}
		for i, b := range config.Blocks {
			residues := map[int]bool{}
			for _, r := range b.Rows {
				residues[int(r.Value[0])%4] = true
			}
			if len(config.Blocks) == 4 && !(len(residues) == 1 && residues[i]) || len(config.Blocks) == 1 && len(residues) != 4 {
				t.Errorf("%s: block %d is of silos %v", l.Trust, i, residues)
			}
		}
	}
	p.Silos[3] = p.Silos[3][:0]
	if _, err := p.Draw(1, 80, 1); err == nil {
		t.Error("a silo without rows")
	}
}

func row(x float64) convex.Example { return convex.Example{Value: []float64{x}, Label: 1} }
