package rehearse

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

const rareTask = `
version: 1
name: rare
events: {format: csv, header: true}
features:
  columns:
    - {column: x0, kind: numeric, min: -4, max: 4}
    - {column: x1, kind: numeric, min: -4, max: 4}
    - {column: x2, kind: numeric, min: -4, max: 4}
    - {column: x3, kind: numeric, min: -4, max: 4}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic, class_weights: [1, 200]}
privacy: {epsilon: %g, delta: 1e-6}
schedule: {users: %d}
`

// rareRows writes rows of which one in 271 is of the positive class, which has other means of two columns.
func rareRows(t *testing.T, seed uint64, n int) string {
	rng := rand.New(rand.NewPCG(seed, 271))
	var text strings.Builder
	text.WriteString("x0,x1,x2,x3,y\n")
	for range n {
		y := 0
		if rng.IntN(271) == 0 {
			y = 1
		}
		fmt.Fprintf(&text, "%.3f,%.3f,%.3f,%.3f,%d\n", rng.NormFloat64()+1.5*float64(y), rng.NormFloat64()-float64(y),
			rng.NormFloat64(), rng.NormFloat64(), y)
	}
	file := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func rareJob(t *testing.T, epsilon float64, users int) (run.Job, error) {
	spec, err := task.Parse([]byte(fmt.Sprintf(rareTask, epsilon, users)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return run.NewJob(spec)
}

// TestWeightsFindRareClasses: where a class is one row in 271 and has a weight of 200, its rows are found as a fit
// without noise and clipping finds them, within ten points, and both classes are distinguished: the mean of what is
// found of each, a half for a constant, is within fifteen.
func TestWeightsFindRareClasses(t *testing.T) {
	const users = 60000
	train, test := rareRows(t, 1, users), rareRows(t, 2, users)
	for _, epsilon := range []float64{1, 4} {
		job, err := rareJob(t, epsilon, users)
		if err != nil {
			t.Fatal(err)
		}
		rows := func(file string) []convex.Example {
			out, invalid, err := run.LoadExamples(job.Features, file, nil)
			if err != nil || len(invalid) > len(out)/100 {
				t.Fatal(err, len(invalid))
			}
			return out
		}
		known, fresh := rows(train), rows(test)
		rates := func(theta []float64) (found, alarms float64) {
			e, err := model.Predictor{Features: job.Features, Loss: job.Loss, Theta: theta}.EvaluateExamples(fresh)
			if err != nil {
				t.Fatal(err)
			}
			return e.Recall, float64(e.Confusion[0][1]) / float64(e.Confusion[0][0]+e.Confusion[0][1])
		}
		best, err := sim.Converge(t.Context(), sim.ConvergeConfig{Loss: job.Loss, Set: convex.Ball{R: convex.MaxScale},
			Dim: job.Problem.Dim, Examples: known})
		if err != nil {
			t.Fatal(err)
		}
		want, wantAlarms := rates(best)
		for seed := range uint64(4) {
			c := sim.Config{Plan: job.Plan, Loss: job.Loss, Score: job.Score(), Examples: known, Seed: seed, Exact: seed == 0}
			result, err := sim.Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			found, alarms := rates(result.Model)
			t.Logf("epsilon %g, seed %d, without noise %v: %.3f found and %.3f alarms; converged %.3f and %.3f", epsilon, seed,
				c.Exact, found, alarms, want, wantAlarms)
			if found < want-0.1 || (found-alarms)/2 < (want-wantAlarms)/2-0.15 {
				t.Errorf("epsilon %g, seed %d: %.3f of the rare class found with %.3f false alarms, want about %.3f and %.3f",
					epsilon, seed, found, alarms, want, wantAlarms)
			}
		}
	}
}

// TestWeightsThatNoiseHides: too few users for a weight are refused, with one that is accepted then; a weight of two,
// as noisy as it may be, is not.
func TestWeightsThatNoiseHides(t *testing.T) {
	_, err := rareJob(t, 0.5, 5000)
	if err == nil || !strings.Contains(err.Error(), "model.class_weights: [1 200]") ||
		!strings.Contains(err.Error(), "want a weight of at most") {
		t.Fatalf("%v, want a refusal of model.class_weights that names a weight", err)
	}
	_, accepted, _ := strings.Cut(err.Error(), "want a weight of at most ")
	accepted, _, _ = strings.Cut(accepted, ",")
	for _, w := range []string{accepted, "2"} {
		spec, err := task.Parse([]byte(strings.Replace(fmt.Sprintf(rareTask, 0.5, 5000), "200", w, 1)), nil)
		if err == nil {
			_, err = run.NewJob(spec)
		}
		if err != nil {
			t.Errorf("weight %s: %v", w, err)
		}
	}
}
