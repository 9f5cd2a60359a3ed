package rehearse

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/task"
)

const numberTask = `
version: 1
name: numbers
events: {format: libsvm}
features: {vector: {dimension: 2, min: -1, max: 1}}
label: {min: -1, max: 1}
model: {loss: squared, radius: 2}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600, algorithm: psgd}
`

// Curves show the loss's measure, and end at the score of the run.
func TestCurveShowsTheMeasureOfTheLoss(t *testing.T) {
	var rows strings.Builder
	for i := range 600 {
		x := float64(i%7-3) / 3
		fmt.Fprintf(&rows, "%v 1:%v 2:0.5\n", x/2+float64(i%3-1)/5, x)
	}
	dir := t.TempDir()
	file, picture := filepath.Join(dir, "events.libsvm"), filepath.Join(dir, "curve.svg")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sets         []string
		field, label string
	}{
		{nil, "test_error", "root mean square"},
		{[]string{"model.loss=absolute"}, "test_mean_absolute_error", "mean absolute"},
		{[]string{"model.loss=quantile", "model.level=0.8"}, "test_quantile_loss", "quantile loss"},
	} {
		spec, err := task.Parse([]byte(numberTask), c.sets)
		if err != nil {
			t.Fatal(err)
		}
		job, err := run.NewJob(spec)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Load(Config{Job: job, Watch: true, Baselines: []string{baselineConverged}}, Data{Path: file, Test: file},
			io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		report, err := s.Run(t.Context(), io.Discard, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(report.Mean)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]float64
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		if end := last(report.Curve).Mean; report.Measure != c.field || end != fields[c.field] || end == 0 {
			t.Errorf("%s: the curve of %s ends at %v, the run at %v", c.field, report.Measure, end, fields[c.field])
		}
		if err := report.Draw(picture); err != nil {
			t.Fatal(err)
		}
		drawn, err := os.ReadFile(picture)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(drawn), c.label) {
			t.Errorf("%s: the picture does not say %q", c.field, c.label)
		}
	}
}
