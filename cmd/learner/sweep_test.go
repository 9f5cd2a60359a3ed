package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/manifest"
)

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
	report, err := sweep(t.Context(), job, sweepConfig{users: []uint{300, 900}, repeats: 2, seed: 1, picture: picture})
	if err != nil {
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
	if err := report.print(&text); err != nil {
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
	small := sweepConfig{users: []uint{300}, repeats: 2, seed: 1}
	if _, err := sweep(t.Context(), jobOf(t, "schedule.continuous=epochs"), small); err == nil ||
		!strings.Contains(err.Error(), "continuous") {
		t.Errorf("a continuous task: error %v, want one that names it", err)
	}
	small.methods = []string{"pagd"}
	if report, err = sweep(t.Context(), job, small); err != nil || len(report.Slopes) != 1 ||
		report.Points[0].Risks[0].Method != "pagd" {
		t.Errorf("one algorithm: %+v, error %v", report.Slopes, err)
	}
	text.Reset()
	if err := report.print(&text); err != nil || !strings.Contains(text.String(), "slope      none: it takes two") {
		t.Errorf("the slope of one point: %v\n%s", err, text.String())
	}
	small.methods = []string{"pagd", "pgd"}
	if _, err := sweep(t.Context(), job, small); err == nil ||
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
		s := simulation{job: job}
		if err := s.load(io.Discard, file, ""); err != nil {
			t.Fatal(err)
		}
		report, err := s.run(t.Context(), io.Discard, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if report.Rounds != 11 || manifest.Planned(job.Plan) >= 11 {
			t.Errorf("%s: %d rounds of %d over 1000 rows, planned %d; want 11", c.continuous, report.Rounds, report.Cohort,
				manifest.Planned(job.Plan))
		}
	}
}
