// Package runtest helps tests of the packages that wire everything together: small tasks, a learner that runs them
// without users, and readers of what it serves.
package runtest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/deploy"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/seal"
)

// Spec returns a task file of the repository, with some keys overridden.
func Spec(t testing.TB, name string, sets ...string) *task.Spec {
	t.Helper()
	file, err := deploy.Tasks.ReadFile("tasks/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := task.Parse(file, sets)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// Small returns a task whose planning and running take little: 600 users in three rounds, and seven to spare.
func Small(t testing.TB, sets ...string) *task.Spec {
	t.Helper()
	return Spec(t, "quickstart", append([]string{"schedule.users=607", "schedule.rounds.max=2"}, sets...)...)
}

// Words is a task with words that JSON writers like to escape, Numbers the same with a number to predict, and
// Classes with three classes.
const Words = `
version: 1
name: words
events: {format: csv, columns: [age, kind, income]}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: kind, kind: categorical, vocabulary: ["a<b", "c&d"], unknown: drop}
label: {column: income, positive: [">50K"], negative: ["<=50K"]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600, rounds: {max: 2}}
`

var (
	Numbers = strings.NewReplacer(`positive: [">50K"], negative: ["<=50K"]`, `min: 0, max: 1000`, "logistic",
		"squared").Replace(Words)
	Classes = strings.NewReplacer(`positive: [">50K"], negative: ["<=50K"]`, `classes: ["<=50K", "about", ">50K"]`,
		"logistic", "softmax").Replace(Words)
)

// Parsed returns the task of a file's text.
func Parsed(t testing.TB, file string) *task.Spec {
	t.Helper()
	spec, err := task.Parse([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// Job plans a task.
func Job(t testing.TB, spec *task.Spec) run.Job {
	t.Helper()
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// Events returns a file of n synthetic events for a job.
func Events(t testing.TB, job run.Job, n int) string {
	t.Helper()
	population, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: job.Features.Dim(), Loss: job.Spec.Model.Loss,
		TruthNorm: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "events.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := sim.WriteEvents(f, population.First(n)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Identity returns a new identity.
func Identity(t testing.TB) *seal.Identity {
	t.Helper()
	id, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Discard returns a log that nobody reads.
func Discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// OnLine returns a log that calls f for lines that begin with a text.
func OnLine(begin string, f func(slog.Record)) *slog.Logger { return slog.New(listener{begin, f}) }

// BrokerURL returns a log of a learner with an embedded broker, and where that listens, once it does.
func BrokerURL() (*slog.Logger, <-chan string) {
	url := make(chan string, 1)
	return OnLine("embedded broker listens", func(r slog.Record) {
		r.Attrs(func(a slog.Attr) bool {
			url <- a.Value.String()
			return false
		})
	}), url
}

type listener struct {
	begin string
	tell  func(slog.Record)
}

func (l listener) Enabled(context.Context, slog.Level) bool { return true }
func (l listener) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l listener) WithGroup(string) slog.Handler            { return l }
func (l listener) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, l.begin) {
		l.tell(r)
	}
	return nil
}
