package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/planning"
)

// TestPlanShowsMoments checks that a practical plan states who reports moments, and their matrix, with what noise; it
// has no bound, and nothing is compared by one.
func TestPlanShowsMoments(t *testing.T) {
	numbers := []string{"label={min: -1, max: 1}", "model.loss=squared"}
	for name, c := range map[string]struct {
		sets  []string
		looks []phase
		lines []string
	}{
		"classes": {nil, []phase{{Users: 500, Dim: 3 + 3 + 1}}, []string{"moments       in round 1, of 500 users: d = 7, "}},
		"numbers": {numbers, []phase{{Users: 500, Dim: 3 + 3 + 2}, {Users: 2000, Dim: 10 + 4 + 1}},
			[]string{"moments       in round 1, of 500 users: d = 8, ", "matrix        in round 2, of 2000 users: d = 15, "}},
		"interactive": {[]string{"schedule.interactive=true"}, []phase{{Users: 500, Dim: 7}},
			[]string{"a user answers up to 12 rounds"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := surveyed(t, append(c.sets, "schedule.plan=practical")...).report
			if len(r.Moments) != len(c.looks) || r.PredictedExcessRisk != nil || r.TrivialRisk != nil ||
				len(r.Alternatives) != 0 || len(r.Guarantees) != 5 {
				t.Fatalf("%+v", r)
			}
			for i, m := range r.Moments {
				if !m.Moments || m.Users != c.looks[i].Users || m.Dim != c.looks[i].Dim || m.Rounds == nil || *m.Rounds != 1 ||
					m.RoundsPerUser != 1 || !(m.NoiseStd > 0) {
					t.Errorf("look %d: %+v, want %+v", i+1, m, c.looks[i])
				}
			}
			var text strings.Builder
			if err := r.print(&text); err != nil {
				t.Fatal(err)
			}
			for _, want := range append(c.lines, "no bound: a practical plan") {
				if !strings.Contains(text.String(), want) {
					t.Errorf("no %q in:\n%s", want, text.String())
				}
			}
		})
	}
	if plain := surveyed(t).report; plain.Moments != nil {
		t.Errorf("no moments: %+v", plain.Moments)
	}
}

// A practical plan finds the scale of a feature by itself, and what is scored is its model in the coordinates of the
// declaration.
func TestSimulateMoments(t *testing.T) {
	s := unevenly(t, planning.BaselineCentral, baselineConverged)
	job := s.job
	report, err := s.run(t.Context(), io.Discard, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	// Without the scales the second feature hardly counts, and a quarter of the events is on the other side.
	if a := *report.Mean.TestAccuracy; a < 0.85 || a != last(report.Curve).Mean {
		t.Errorf("accuracy %v, at the end of the curve %v", a, last(report.Curve).Mean)
	}
	for _, b := range report.Baselines {
		if b.Mean == nil || *b.Mean.TestAccuracy < 0.85 {
			t.Errorf("%s: %+v", b.Name, b)
		}
	}
	result, err := sim.Run(t.Context(), sim.Config{Plan: job.Plan, Loss: job.Loss, Score: job.Score(), Examples: s.train,
		Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var loss float64
	for _, x := range s.train {
		z := result.Model[3] // the intercept
		for k, j := range x.Index {
			if j < 3 {
				z += x.Value[k] * result.Model[j]
			}
		}
		loss += math.Log1p(math.Exp(-x.Label * z))
	}
	if loss /= float64(len(s.train)); math.Abs(loss-report.Runs[0].TrainLoss) > 1e-9 {
		t.Errorf("train loss %v, by hand %v", report.Runs[0].TrainLoss, loss)
	}
	if _, err := sweep(t.Context(), job, sweepConfig{users: []uint{300}, repeats: 2, seed: 1,
		methods: []string{"pagd"}}); err == nil || !strings.Contains(err.Error(), "schedule.plan=proved") {
		t.Errorf("a sweep over bounds that there are not: %v", err)
	}
}

// unevenly returns a simulation of events of two numbers, of which one has an eighth of the other's range and as much
// to say.
func unevenly(t *testing.T, others ...string) simulation {
	t.Helper()
	var rows strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		x := [2]float64{2*r.Float64() - 1, (2*r.Float64() - 1) / 8}
		y := map[bool]string{true: "1", false: "-1"}[x[0]+8*x[1] > 0]
		fmt.Fprintf(&rows, "%s 1:%v 2:%v\n", y, x[0], x[1])
	}
	file := filepath.Join(t.TempDir(), "events.libsvm")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	job := jobOf(t, "schedule.plan=practical", "schedule.users=3000", "model={loss: logistic}", "privacy.epsilon=8")
	s := simulation{job: job, holdout: 4, watch: true, others: others}
	if err := s.load(io.Discard, file, ""); err != nil {
		t.Fatal(err)
	}
	return s
}

func last(curve []spot) spot { return curve[len(curve)-1] }
