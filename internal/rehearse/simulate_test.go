package rehearse

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

// A practical plan finds the scale of a feature by itself, and what is scored is its model in the coordinates of the
// declaration.
func TestSimulateMoments(t *testing.T) {
	s := unevenly(t, planning.BaselineCentral, baselineConverged)
	job := s.job
	report, err := s.Run(t.Context(), io.Discard, 1, 2)
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
	result, err := sim.Run(t.Context(), sim.Config{Plan: job.Plan, Loss: job.Loss, Score: job.Score(), Examples: s.Train,
		Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var loss float64
	for _, x := range s.Train {
		z := result.Model[3] // the intercept
		for k, j := range x.Index {
			if j < 3 {
				z += x.Value[k] * result.Model[j]
			}
		}
		loss += math.Log1p(math.Exp(-x.Label * z))
	}
	if loss /= float64(len(s.Train)); math.Abs(loss-report.Runs[0].TrainLoss) > 1e-9 {
		t.Errorf("train loss %v, by hand %v", report.Runs[0].TrainLoss, loss)
	}
	if _, err := Sweep(t.Context(), job, SweepConfig{Users: []uint{300}, Repeats: 2, Seed: 1,
		Methods: []string{"pagd"}}); err == nil || !strings.Contains(err.Error(), "schedule.plan=proved") {
		t.Errorf("a sweep over bounds that there are not: %v", err)
	}
}

// unevenly returns a simulation of events of two numbers, of which one has an eighth of the other's range and as much
// to say.
func unevenly(t *testing.T, others ...string) *Rehearsal {
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
	s, err := Load(Config{Job: job, Watch: true, Baselines: others}, Data{Path: file, Holdout: 4}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func last(curve []spot) spot { return curve[len(curve)-1] }
