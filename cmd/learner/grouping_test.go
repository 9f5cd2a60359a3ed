package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Silos are made of the rows that are not held out, by the names that the file has for them, and a run learns from blocks of all of a silo's rows,
// or of the next ones. The plan is that of as many users as reports, and what one is about is written into it by hand.
func TestSimulateSilos(t *testing.T) {
	var rows strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		x := [2]float64{2*r.Float64() - 1, 2*r.Float64() - 1}
		y := map[bool]string{true: "1", false: "-1"}[x[0]+x[1] > 0]
		fmt.Fprintf(&rows, "%s 1:%v 2:%v\n", y, x[0], x[1])
	}
	file := filepath.Join(t.TempDir(), "events.libsvm")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	common := []string{"schedule.plan=proved", "privacy.epsilon=8", "model={loss: logistic, radius: 5, clip_norm: 2}"}
	for name, c := range map[string]struct {
		sets          []string
		split         string
		count, units  int
		blocks, least int // blocks of a run, and units of the smallest
		accuracy      float64
		refusal       string
	}{
		"many passes": {[]string{"schedule.users=20", "schedule.interactive=true", "schedule.algorithm=pgd"}, "sorted-label", 20, 75, 20, 75, 0.9, ""},
		"one pass":    {[]string{"schedule.users=60", "schedule.algorithm=psgd"}, "blocks", 20, 75, 60, 25, 0.9, ""},
		// Two reports are rounded to few levels.
		"labels":     {[]string{"schedule.users=2", "schedule.interactive=true", "schedule.algorithm=pgd"}, "label", 2, 700, 2, 700, 0.7, ""},
		"too many":   {[]string{"schedule.users=20"}, "label", 20, 75, 0, 0, 0, "the rows make 2 silos: want silo.count 20"},
		"too small":  {[]string{"schedule.users=20"}, "blocks", 20, 76, 0, 0, 0, "silo 1 has 75 of the rows to train on, want at least silo.units (76)"},
		"no columns": {[]string{"schedule.users=20"}, "column:ward", 20, 75, 0, 0, 0, "libsvm has no named columns"},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobOf(t, append(c.sets, common...)...)
			job.Spec.Silo = &task.Silo{Count: c.count, Units: c.units}
			for _, f := range job.Plan.Phases {
				k := uint64(max(1, c.least))
				f.Mechanism.Units, f.Mechanism.Trials = k, max(f.Mechanism.Trials/uint32(k*k), 1) // what hides one unit of so many
			}
			s := simulation{job: job, holdout: 4, split: c.split, others: []string{"central"}}
			err := s.load(io.Discard, file, "")
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Fatalf("error %v, want %q", err, c.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			blocks := s.blocks(7)
			if len(blocks) != c.blocks {
				t.Fatalf("%d blocks, want %d", len(blocks), c.blocks)
			}
			for _, b := range blocks {
				if b.Units() < c.least {
					t.Errorf("a block of %d units, want at least %d", b.Units(), c.least)
				}
			}
			report, err := s.run(t.Context(), io.Discard, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			if a := *report.Mean.TestAccuracy; a < c.accuracy || report.Rounds != manifest.Planned(job.Plan) {
				t.Errorf("accuracy %v after %d rounds, want %v after %d", a, report.Rounds, c.accuracy, manifest.Planned(job.Plan))
			}
			if len(report.Baselines) != 1 || !strings.Contains(report.Baselines[0].Reason, "not yet") {
				t.Errorf("baselines of blocks: %+v", report.Baselines)
			}
		})
	}
	c := newSimulate()
	c.SetArgs([]string{"-f", "../../deploy/tasks/quickstart.yaml", "--data", file, "--split", sim.SplitLabel})
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "declares silos") {
		t.Errorf("--split of a task without silos: %v", err)
	}
}
