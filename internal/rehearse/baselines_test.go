package rehearse

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

const wardsTask = `
version: 1
name: wards
events: {format: csv, header: true}
features: {columns: [{column: a, kind: numeric, min: -1, max: 1}, {column: b, kind: numeric, min: -1, max: 1}]}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 5, clip_norm: 2}
privacy: {epsilon: 8, delta: 1e-6}
schedule: {users: 60, plan: proved, rounds: {max: 20}}
`

// trained counts the people, of 60, whom --holdout 7 leaves to train on. Their names decide.
const trained = 58

// wards returns a file with the rows of 60 people in 6 wards, of 20 rows each; the first person of the second ward is
// in the first one, too.
func wards(t *testing.T) string {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("a,b,y,who,ward\n")
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 1200 {
		x, person := [2]float64{2*r.Float64() - 1, 2*r.Float64() - 1}, i%60
		y := map[bool]int{true: 1}[x[0]+x[1] > 0]
		ward := person / 10
		if person == 10 && i > 600 {
			ward = 0
		}
		fmt.Fprintf(&rows, "%v,%v,%d,p%d,ward %d\n", x[0], x[1], y, person, ward)
	}
	file := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// wardsJob returns the job of the wards as events; with byUser it protects people, and with units above 0 it is of
// silos of at least so many people or rows.
func wardsJob(t *testing.T, trust accounting.Trust, byUser bool, units int, sets ...string) run.Job {
	t.Helper()
	spec, err := task.Parse([]byte(wardsTask), sets)
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	if byUser {
		spec.Privacy.Unit, spec.User = task.UnitUser, &task.User{Column: "who", Items: 12}
		job.Problem.ByUser, job.Problem.Radius, job.Problem.Users = true, spec.UserRadius(), trained
	}
	if units > 0 {
		return ofSilos(t, job, trust, task.Silo{Count: 6, Units: units})
	}
	if job.Proposal, err = planning.MakePlan(job.Problem); err != nil {
		t.Fatal(err)
	}
	return job
}

// TestBaselinesOfBlocks checks that the same units spend the same budget in other ways, by the plan of each: silos
// under another trust, all in one place, and every silo alone. A baseline that does not apply gives the reason.
func TestBaselinesOfBlocks(t *testing.T) {
	file := wards(t)
	many := []string{"schedule.interactive=true", "schedule.algorithm=pgd"}
	const own, none = "the trust is the task's own", "the task has no silos"
	for name, c := range map[string]struct {
		job     run.Job
		split   string
		want    grouping
		reasons map[string]string
	}{
		"silos, local": {wardsJob(t, accounting.Local, false, 140, many...), "column:ward", grouping{Silos: 6, Units: 1029,
			Reports: 6},
			map[string]string{"local": own}},
		"silos, shuffle, one pass": {wardsJob(t, accounting.Shuffle, false, 140, "schedule.algorithm=psgd"), "blocks",
			grouping{Silos: 6, Units: 1029},
			map[string]string{"shuffle": own}},
		"people in silos": {wardsJob(t, accounting.Local, true, 8, many...), "column:ward",
			grouping{Silos: 6, Units: trained + 1,
				Reports: 6, Shared: 1},
			map[string]string{"local": own}},
		"people": {wardsJob(t, accounting.Shuffle, true, 0, "schedule.algorithm=psgd"), "blocks", grouping{Units: trained,
			Reports: trained},
			map[string]string{"shuffle": own, "alone": none}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Load(Config{Job: c.job, Split: c.split, Baselines: allBaselines}, Data{Path: file, Holdout: 7}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if k := s.counts; c.want.Reports == 0 {
				c.want.Reports, c.want.LeftOver = k.Reports, k.LeftOver
			}
			if s.job.Spec.Privacy.ByUser() {
				c.want.Surplus = (20 - 12) * trained // rows of each beyond the 12 that are trained on
				if c.want.Silos > 0 {                // who is in two wards has two units of fewer rows
					c.want.Surplus = s.counts.Surplus
				}
			}
			if got := *s.counts; got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			report, err := s.Run(t.Context(), io.Discard, 1, 2)
			if err != nil {
				t.Fatal(err)
			}
			accuracy := map[string]float64{"": *report.Mean.TestAccuracy}
			for _, b := range report.Baselines {
				want := c.reasons[b.Name]
				if (b.Mean == nil) != (want != "") || !strings.Contains(b.Reason, want) {
					t.Errorf("%s: %+v, want reason %q", b.Name, b, want)
				}
				if b.Mean == nil {
					continue
				}
				accuracy[b.Name] = *b.Mean.TestAccuracy
				noisy := b.Name != baselineExact && b.Name != baselineConverged
				if (b.NoiseStd > 0) != noisy || b.Mechanism == "" || math.IsNaN(b.Mean.TrainLoss) {
					t.Errorf("%s: %+v", b.Name, b)
				}
			}
			t.Log(accuracy)
			if accuracy[baselineConverged] < 0.95 || accuracy[planning.BaselineMultiPass] < accuracy[baselineConverged]-0.15 {
				t.Errorf("accuracy %v", accuracy)
			}
			if s.silos != nil && accuracy[planning.BaselineMultiPass] < accuracy[baselineAlone]-0.02 {
				t.Errorf("a silo alone is better than all in one place: %v", accuracy)
			}
		})
	}
}

// The texts about rows in an order: the seed mixes users' rows; a silo takes its own in turn, or all at once. What
// epsilon protects is said in words.
func TestSimulateSaysWhatItDoesAndProtects(t *testing.T) {
	rows, err := os.ReadFile(wards(t))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(rows)), "\n")
	slices.SortStableFunc(lines[1:], func(a, b string) int {
		return strings.Compare(strings.Split(a, ",")[2],
			strings.Split(b, ",")[2])
	})
	file := filepath.Join(t.TempDir(), "sorted.csv")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		job              run.Job
		warned, protects string
	}{
		"one pass": {wardsJob(t, accounting.Local, false, 140, "schedule.algorithm=psgd"),
			"In one pass a silo reports about its rows in their order", "one record of one silo in one round"},
		"many passes": {wardsJob(t, accounting.Local, false, 140, "schedule.interactive=true", "schedule.algorithm=pgd"), "",
			"one record of one silo in all rounds"},
		"people": {wardsJob(t, accounting.Shuffle, true, 0, "schedule.algorithm=psgd"), "Here the seed mixes them",
			"all events of one user"},
	} {
		var said, printed strings.Builder
		s, err := Load(Config{Job: c.job, Split: "column:ward"}, Data{Path: file, Holdout: 7}, &said)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := s.counts.Nameless; s.silos != nil && n != 1 { // the last line has no end, so that its ward may be longer
			t.Errorf("%s: %d rows of nobody", name, n)
		}
		if ordered := strings.Contains(said.String(), "come in an order"); ordered != (c.warned != "") ||
			!strings.Contains(said.String(), c.warned) {
			t.Errorf("%s: %s", name, said.String())
		}
		report, err := s.Run(t.Context(), io.Discard, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := report.Print(&printed); err != nil || !strings.Contains(printed.String(), "protects      "+c.protects) {
			t.Errorf("%s: %s, %v", name, printed.String(), err)
		}
	}
}

// A sweep plans for users of one event each, and the documents of a simulation keep their fields.
func TestSimulationsOfBlocksHaveTheirFields(t *testing.T) {
	silos, people := wardsJob(t, accounting.Local, false, 140, "schedule.algorithm=psgd"),
		wardsJob(t, accounting.Shuffle, true, 0,
			"schedule.algorithm=psgd")
	for _, job := range []run.Job{silos, people} {
		if _, err := Sweep(t.Context(), job, SweepConfig{Users: []uint{300}, Repeats: 2, Seed: 1}); err == nil ||
			!strings.Contains(err.Error(), "not of silos or people") {
			t.Errorf("a sweep: %v", err)
		}
	}
	s, err := Load(Config{Job: silos, Split: "blocks"}, Data{Path: wards(t), Holdout: 7}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	report, err := s.Run(t.Context(), io.Discard, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(
		"task algorithm rounds cohort epsilon delta trust unit protects units_per_report silos interactive grouping runs mean baseline non_private") {
		if _, there := fields[name]; !there {
			t.Errorf("no %s in %s", name, body)
		}
	}
}
