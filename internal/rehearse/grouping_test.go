package rehearse

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// ofSilos plans a job again, for silos.
func ofSilos(t *testing.T, job run.Job, trust accounting.Trust, silo task.Silo) run.Job {
	t.Helper()
	n, p := silo.Count, job.Problem
	silo.Reports, silo.Least = n, silo.Units
	honest := "1"
	switch trust {
	case accounting.Local:
		silo.Least = (2*silo.Units + 2) / 3
	case accounting.Shuffle:
		honest = fmt.Sprintf("%d/%d", n-1, n)
	}
	fraction, err := accounting.ParseFraction(honest)
	if err != nil {
		t.Fatal(err)
	}
	job.Spec.Privacy.Trust, job.Spec.Privacy.HonestFraction.Fraction = trust, fraction
	job.Spec.Silo, job.Spec.Schedule.Users = &silo, n*silo.Units
	p.Users, p.Minimum = uint64(n*silo.Units), uint64(n+1)/2
	p.Silos = planning.Silos{Count: uint64(n), Units: uint64(silo.Units), Reports: uint64(n), Least: uint64(silo.Least)}
	p.Trust, p.HonestFraction = trust, fraction
	if job.Proposal, err = planning.MakePlan(p); err != nil {
		t.Fatal(err)
	}
	job.Problem = p
	return job
}

// Silos are made of the rows that are not held out, by the names that the file has for them, and a run learns from
// blocks of all of a silo's rows, or of the next ones. A silo with fewer than its device sends takes no part, and the
// others go on without it.
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
	many := []string{"schedule.plan=proved", "schedule.rounds.max=20", "schedule.interactive=true",
		"schedule.algorithm=pgd"}
	once := []string{"schedule.plan=proved", "schedule.rounds.max=20", "schedule.algorithm=psgd"}
	for name, c := range map[string]struct {
		trust    accounting.Trust
		sets     []string
		split    string
		silo     task.Silo
		want     grouping
		accuracy float64
		refusal  string
	}{
		"many passes, local": {accounting.Local, many, "sorted-label", task.Silo{Count: 20, Units: 75},
			grouping{Silos: 20, Units: 1500, Reports: 20}, 0.9, ""},
		"many passes, smaller": {accounting.Local, many, "blocks", task.Silo{Count: 20, Units: 100},
			grouping{Silos: 20, Units: 1500,
				Reports: 20}, 0.9, ""},
		"many passes, shuffle": {accounting.Shuffle, many, "blocks", task.Silo{Count: 20, Units: 70},
			grouping{Silos: 20, Units: 1500,
				Reports: 20}, 0.9, ""},
		"one pass, pan": {accounting.Pan, once, "blocks", task.Silo{Count: 20, Units: 70}, grouping{Silos: 20, Units: 1500},
			0.9, ""},
		"one pass, local": {accounting.Local, once, "blocks", task.Silo{Count: 20, Units: 75},
			grouping{Silos: 20, Units: 1500},
			0.7, ""},
		"one pass, shuffle": {accounting.Shuffle, once, "blocks", task.Silo{Count: 20, Units: 70},
			grouping{Silos: 20, Units: 1500},
			0.9, ""},
		"one refused": {accounting.Shuffle, many, "label", task.Silo{Count: 2, Units: 750}, grouping{Silos: 1, Refused: 1,
			Units: 769, Reports: 1}, 0.4, ""},
		"too many": {accounting.Local, many, "label", task.Silo{Count: 20, Units: 75}, grouping{}, 0,
			"silos that the rows make: 2, and silo.count is 20"},
		"all refused": {accounting.Shuffle, many, "blocks", task.Silo{Count: 20, Units: 76}, grouping{}, 0,
			"0 of 20 silos have at least silo.units (76), and a round wants 10 of them"},
		"no columns": {accounting.Local, many, "column:ward", task.Silo{Count: 20, Units: 75}, grouping{}, 0,
			"libsvm has no named columns"},
	} {
		t.Run(name, func(t *testing.T) {
			job := ofSilos(t, jobOf(t, append(c.sets, "privacy.epsilon=8",
				"model={loss: logistic, radius: 5, clip_norm: 2}")...), c.trust, c.silo)
			var said strings.Builder
			s, err := Load(Config{Job: job, Split: c.split}, Data{Path: file, Holdout: 4}, &said)
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Fatalf("error %v, want %q", err, c.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if k := int(max(1, job.Plan.Phases[0].Mechanism.Units)); c.want.Reports == 0 {
				c.want.Reports, c.want.LeftOver = 20*(75/k), 20*(75%k)
			}
			if got := *s.counts; got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if strings.Contains(said.String(), "takes no part: its device wants at least silo.units, 750") != (c.want.Refused > 0) {
				t.Errorf("%d refused, said %q", c.want.Refused, said.String())
			}
			report, err := s.Run(t.Context(), io.Discard, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			if a := *report.Mean.TestAccuracy; a < c.accuracy || report.Rounds != manifest.Planned(job.Plan) ||
				report.Trust != c.trust.String() || report.Protects != "event" {
				t.Errorf("accuracy %v after %d rounds, want %v after %d", a, report.Rounds, c.accuracy, manifest.Planned(job.Plan))
			}
		})
	}
}
