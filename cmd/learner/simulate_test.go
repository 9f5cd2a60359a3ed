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

var withMoments = []string{"features.precondition={users: 200, damping: 0.05}", "norm_bound=1"}

// The plan says who estimates the moments, with what noise, beside every algorithm.
func TestPlanShowsMoments(t *testing.T) {
	r := surveyed(t, withMoments...).report
	if m := r.Moments; m == nil || !m.Moments || m.Users != 200 || m.Rounds != 1 || m.Dim != 3 || !(m.NoiseStd > 0) || r.Dim != 4 || r.Cohort == 200 {
		t.Errorf("moments %+v before cohorts of %d in %d dimensions", r.Moments, r.Cohort, r.Dim)
	}
	for _, a := range r.Alternatives {
		if a.Applies && (!a.Phases[0].Moments || a.Phases[1].Moments || a.Privacy.Dim != 6) {
			t.Errorf("%s: %+v", a.Algorithm, a.Phases)
		}
	}
	var text strings.Builder
	if err := r.print(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "moments       in the first round, of 200 users: d = 3") || strings.Count(text.String(), "\n  moments ") < 2 {
		t.Error(text.String())
	}
	if plain := surveyed(t).report; plain.Moments != nil {
		t.Errorf("no moments: %+v", plain.Moments)
	}
}

// A simulated model is scored in the coordinates that it lives in: so it is as good as one on features that were scaled by hand.
func TestSimulateMoments(t *testing.T) {
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
	job := jobOf(t, append(withMoments, "schedule.users=3000", "schedule.rounds.max=20", "model.radius=10", "privacy.epsilon=8")...)
	s := simulation{job: job, holdout: 4, watch: true, others: []string{planning.BaselineCentral, baselineConverged}}
	if err := s.load(io.Discard, file, ""); err != nil {
		t.Fatal(err)
	}
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
	result, err := sim.Run(t.Context(), sim.Config{Plan: job.Plan, Loss: job.Loss, Score: job.Score(), Examples: s.train, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var loss float64
	for _, x := range s.train {
		z, norm := result.Model[3]*1, 1.0 // the intercept
		for k, j := range x.Index {
			if j < 3 {
				v := x.Value[k] * result.Scales[j]
				z += v * result.Model[j]
				norm += v * v
			}
		}
		loss += math.Log1p(math.Exp(-x.Label * z / max(1, math.Sqrt(norm))))
	}
	if loss /= float64(len(s.train)); math.Abs(loss-report.Runs[0].TrainLoss) > 1e-9 {
		t.Errorf("train loss %v, by hand %v", report.Runs[0].TrainLoss, loss)
	}
	if _, err := sweep(t.Context(), job, sweepConfig{users: []uint{300}, repeats: 2, seed: 1, methods: []string{"pagd"}}); err != nil {
		t.Errorf("a sweep: %v", err)
	}
}

func last(curve []spot) spot { return curve[len(curve)-1] }
