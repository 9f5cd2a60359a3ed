package rehearse

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/manifest"
)

const honestTask = `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: 3, min: -1, max: 1}}
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6, honest_fraction: "0.8"}
schedule: {users: 5000, plan: proved}
`

// rowsOf returns the rows of a job, all of them to learn from.
func rowsOf(t *testing.T, job run.Job, rows []convex.Example) *Rows {
	t.Helper()
	return &Rows{Train: rows, Features: job.Features, Loss: job.Loss, spec: job.Spec, labelled: rows}
}

func jobOf(t *testing.T, sets ...string) run.Job {
	t.Helper()
	spec, err := task.Parse([]byte(honestTask), sets)
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// A sweep measures every method that applies to the task, and prints, draws and fits all of them.
func TestSweepTakesWhatApplies(t *testing.T) {
	job := jobOf(t, "model.ridge=0.1", "model.clip_norm=2")
	picture := filepath.Join(t.TempDir(), "risk.svg")
	report, err := Sweep(t.Context(), job, SweepConfig{Users: []uint{300, 900}, Repeats: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Draw(picture); err != nil {
		t.Fatal(err)
	}
	var fitted []string
	for _, s := range report.Slopes {
		fitted = append(fitted, s.Method)
	}
	// Users answer one round each, so no pgd.
	want := []string{"psgd", "pagd", "pagd-envelope", "pagd-restarts", "pagd-envelope-restarts"}
	if !slices.Equal(fitted, want) || len(report.Points) != 2 || len(report.Points[1].Risks) != len(want) {
		t.Errorf("methods %v in %d points, want %v in 2", fitted, len(report.Points), want)
	}
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	drawn, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range want {
		if !strings.Contains(text.String(), m) || !strings.Contains(string(drawn), m) {
			t.Errorf("%s is not in the table or not in the picture:\n%s", m, text.String())
		}
	}
	small := SweepConfig{Users: []uint{300}, Repeats: 2, Seed: 1}
	if _, err := Sweep(t.Context(), jobOf(t, "schedule.continuous=epochs"), small); err == nil ||
		!strings.Contains(err.Error(), "continuous") {
		t.Errorf("a continuous task: error %v, want one that names it", err)
	}
	small.Methods = []string{"pagd"}
	if report, err = Sweep(t.Context(), job, small); err != nil || len(report.Slopes) != 1 ||
		report.Points[0].Risks[0].Method != "pagd" {
		t.Errorf("one algorithm: %+v, error %v", report.Slopes, err)
	}
	text.Reset()
	if err := report.Print(&text); err != nil || !strings.Contains(text.String(), "slope      none: it takes two") {
		t.Errorf("the slope of one point: %v\n%s", err, text.String())
	}
	small.Methods = []string{"pagd", "pgd"}
	if _, err := Sweep(t.Context(), job, small); err == nil ||
		!strings.Contains(err.Error(), "pgd: nobody answers more than one round") {
		t.Errorf("an algorithm that does not apply: error %v, want one that says why", err)
	}
}

// A continuous task runs over the file once, however long it is, in the order of its rows.
func TestSimulateContinuous(t *testing.T) {
	var rows strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&rows, "%+d 1:%v 2:0.5\n", 2*(i%2)-1, float64(2*(i%2)-1)/2)
	}
	file := filepath.Join(t.TempDir(), "events.libsvm")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ continuous, algorithm string }{{"constant", "psgd"}, {"decaying", "psgd"},
		{"epochs", "pagd"}} {
		job := jobOf(t, "schedule.users=600", "schedule.cohort=90", "schedule.continuous="+c.continuous,
			"schedule.algorithm="+c.algorithm)
		s, err := Load(Config{Job: job}, Data{Path: file}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		report, err := s.Run(t.Context(), io.Discard, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if report.Rounds != 11 || manifest.Planned(job.Plan) >= 11 {
			t.Errorf("%s: %d rounds of %d over 1000 rows, planned %d; want 11", c.continuous, report.Rounds, report.Cohort,
				manifest.Planned(job.Plan))
		}
	}
}
