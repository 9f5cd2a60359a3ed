package rehearse

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/prequential"
	"github.com/panlearn/panlearn/internal/sim"
)

// TestOnlineBesideAStream: a simulation of a task without an end scores learners without privacy on the rows that it
// scores, in its order, tells no divergence of a stream that changed and was followed, and draws all of them without
// test data.
func TestOnlineBesideAStream(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	a, b := randomDirection(r, 4, 3), randomDirection(r, 4, 3)
	for i := range b {
		b[i] = -a[i]
	}
	m := concepts(r, 4, 12_000, concept{truth: a}, concept{from: 6000, truth: b})
	m.epsilon = 4
	job := m.task(t)
	s := Rehearsal{Rows: rowsOf(t, job, m.rows), job: job}
	out, err := s.Run(t.Context(), io.Discard, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	private := out.Mean.Prequential
	if len(out.Online) != 2 {
		t.Fatalf("%d learners beside it, want sgd and window", len(out.Online))
	}
	for _, o := range out.Online {
		p := o.Prequential
		if p.Users != out.Runs[0].Prequential.Users || *p.LogLoss > *private.LogLoss+0.1 ||
			*p.LogLoss < *private.LogLoss-0.1 {
			t.Errorf("%s: %d rows, log loss %.3f; private %d rows, %.3f", o.Name, p.Users, *p.LogLoss,
				out.Runs[0].Prequential.Users, *private.LogLoss)
		}
		for k, y := range out.Runs[0].Prequential.Labels {
			if p.Labels[k] != y {
				t.Fatalf("%s scores another row at %d", o.Name, k)
			}
		}
	}
	if out.Diverges != nil {
		t.Errorf("a stream that was followed is said to diverge: %s", out.Diverges.Text)
	}
	if n := len(private.Curve) + len(out.Runs[0].Prequential.Curve); n != 30 {
		t.Errorf("%d points of curves, want 30 of a run and none of the mean", n)
	}
	file := filepath.Join(t.TempDir(), "stream.svg")
	if err := out.Draw(file); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"private", "not private", "sgd", "window", "accuracy", "log loss"} {
		if !strings.Contains(string(picture), want) {
			t.Errorf("no %q in the picture", want)
		}
	}
	var text strings.Builder
	if err := out.Print(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\nsgd           scored before it learned: ") {
		t.Errorf("printed: %s", &text)
	}
}

// TestShuffledRowsAreScored: where rows are taken out of their order, as ingest publish --shuffle takes them, the rows
// that are scored are those that took part.
func TestShuffledRowsAreScored(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	m := concepts(r, 3, 6000, concept{truth: randomDirection(r, 3, 3)})
	m.epsilon = 8
	job := m.task(t)
	s := Rehearsal{Rows: rowsOf(t, job, m.rows), job: job, order: Order{InOrder: true, Shuffle: 1000}}
	out, err := s.series(t.Context(), trials{"private", io.Discard, 5, 1}, sim.Config{Plan: s.job.Plan})
	if err != nil {
		t.Fatal(err)
	}
	first := int(s.job.Plan.Phases[0].Cohort)
	rows := s.order.of(m.rows, 5)
	for k, y := range out.runs[0].Prequential.Labels {
		if y != rows[first+k].Label {
			t.Fatalf("row %d is scored with the label of another", k)
		}
	}
}

// TestAlarmsOfRuns: the line over all seeds has the mean of their alarms.
func TestAlarmsOfRuns(t *testing.T) {
	loss := 0.5
	run := func(alarms ...uint64) Outcome {
		return Outcome{Prequential: &prequential.Score{Users: 1000, LogLoss: &loss, Accuracy: &loss, Alarms: alarms,
			AlarmCount: float64(len(alarms))}}
	}
	mean := func(x []float64) (sum float64) {
		for _, v := range x {
			sum += v / float64(len(x))
		}
		return sum
	}
	for _, one := range []struct {
		runs []Outcome
		want string
	}{
		{[]Outcome{run(250, 750)}, ", 2 alarms"},
		{[]Outcome{run(250, 750), run(500)}, ", 1.5 alarms"},
		{[]Outcome{run(500), run(600)}, ", 1 alarm"},
	} {
		if got := prequential.Fold(scoresOf(one.runs), mean).String(); !strings.HasSuffix(got, one.want) {
			t.Errorf("%q, want %q at its end", got, one.want)
		}
	}
}
