package run

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/panlearn/panlearn/internal/dashboard"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// A listener waits for a line of the log: how a test learns where the embedded broker is.
type listener struct{ url chan string }

func (l listener) Enabled(context.Context, slog.Level) bool { return true }
func (l listener) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l listener) WithGroup(string) slog.Handler            { return l }
func (l listener) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "embedded broker listens" {
		r.Attrs(func(a slog.Attr) bool {
			l.url <- a.Value.String()
			return false
		})
	}
	return nil
}

// events is a file of synthetic events for a job.
func events(t *testing.T, job Job, n int) string {
	t.Helper()
	population, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: job.Features.Dim(), Loss: job.Spec.Model.Loss, TruthNorm: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "events.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := WriteEvents(f, population, n); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRoles runs learner, stage and publisher as their commands do, over a loopback listener: the task ends, all users
// are counted, the embedded broker waits for its peers, and the folder then refuses another declaration.
func TestRoles(t *testing.T) {
	job := jobOf(t, small(t))
	dir, data := t.TempDir(), events(t, job, 600)
	http1, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	heard := listener{url: make(chan string, 1)}
	watch, http2 := new(counting), loopback(t)
	stages, err := dashboard.NewStages(job.Spec.Name, []string{"http://" + http2.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	config := LearnerConfig{Spec: job.Spec, StateDir: dir, Embedded: true, Listen: "127.0.0.1:0", Identity: identity(t),
		HTTP: http1, Stages: stages, ExitWhenDone: true, Watch: watch, Logger: slog.New(heard)}
	learner, mixer := make(chan error, 1), make(chan error, 1)
	go func() { learner <- RunLearner(t.Context(), config) }()
	var broker natsjs.ConnectConfig
	select {
	case broker.URL = <-heard.url:
	case err := <-learner:
		t.Fatal(err)
	}
	ready, err := http.Get("http://" + http1.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(ready.Body)
	ready.Body.Close()
	if err != nil || !strings.Contains(string(metrics), `task="quickstart"`) {
		t.Errorf("metrics: %v, %d bytes", err, len(metrics))
	}
	if page := fetch(t, http1, "/"); !strings.Contains(page, "The task has not begun: the learner waits for the shuffle stage&#39;s key.") {
		t.Errorf("the page before the stage: %s", page)
	}
	shown := follow(t, http1)
	name := stream.Task(job.Spec.Name)
	go func() {
		mixer <- RunStage(t.Context(), StageConfig{Task: name, HTTP: http2, Broker: broker, Identity: identity(t), Logger: discard()})
	}()
	sent, err := Publish(t.Context(), PublishConfig{Task: name, Data: data, Source: data, StateDir: t.TempDir(), Bundle: 1,
		Broker: broker, Logger: discard()})
	if err != nil || sent.Events != 600 || sent.Counted != 600 {
		t.Errorf("Publish: %+v, %v", sent, err)
	}
	if err := <-mixer; err != nil {
		t.Errorf("RunStage: %v", err)
	}
	if err := <-learner; err != nil {
		t.Errorf("RunLearner: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
	if parts, n := shown(); n < 2 || !strings.Contains(parts["verdict"], "The task has ended.") || !strings.Contains(parts["tiles"], ">600<") {
		t.Errorf("the page after %d events: %q", n, parts["verdict"])
	}
	if n := watch.applied.Load(); n != job.Plan.Rounds() {
		t.Errorf("%d rounds were observed, want %d", n, job.Plan.Rounds())
	}
	var status Status
	doc, err := Ask(t.Context(), Where{StateDir: dir}, AskStatus)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc, &status); err != nil || !status.Ended || status.Users != 600 {
		t.Errorf("status: %s, %v", doc, err)
	}
	config.HTTP, config.Listen, config.Logger = nil, "", discard()
	if err := RunLearner(t.Context(), config); err != nil { // nobody is connected, so it lingers for nobody
		t.Errorf("a task that has ended: %v", err)
	}
	config.Spec = small(t, "privacy.epsilon=2")
	if err := RunLearner(t.Context(), config); err == nil || !strings.Contains(err.Error(), "another declaration (privacy.epsilon: file says 2, task has 1)") {
		t.Errorf("another declaration: %v", err)
	}
}

type counting struct{ applied atomic.Uint64 }

func (c *counting) Resumed(service.Progress) {}
func (c *counting) Announced(_, _ uint64)    {}
func (c *counting) Applied(service.Applied)  { c.applied.Add(1) }

// TestRunLearnerStops while it waits for the stage, and leaves the folder to the next.
func TestRunLearnerStops(t *testing.T) {
	config := LearnerConfig{Spec: small(t), StateDir: t.TempDir(), Embedded: true, Identity: identity(t), Logger: discard()}
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		config.Logger = slog.New(waiting{stop})
		if err := RunLearner(ctx, config); err == nil || ctx.Err() == nil {
			t.Errorf("RunLearner: %v, want the end of its context", err)
		}
		stop()
	}
}

// waiting ends the context when the learner waits for the stage.
type waiting struct{ stop func() }

func (w waiting) Enabled(context.Context, slog.Level) bool { return true }
func (w waiting) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w waiting) WithGroup(string) slog.Handler            { return w }
func (w waiting) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "waiting for the shuffle stage") {
		w.stop()
	}
	return nil
}

// TestPublishRefusesFirst: a file that is not what the task declares is refused before anybody is asked for anything.
func TestPublishRefusesFirst(t *testing.T) {
	dir := t.TempDir()
	csv := parsed(t, strings.Replace(labelled, "columns: [age, kind, income]", "header: true", 1))
	bad := filepath.Join(dir, "bad.csv")
	if err := os.WriteFile(bad, []byte("age,weight\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := natsjs.ConnectConfig{URL: "nats://127.0.0.1:1"} // connecting would be the error
	for what, test := range map[string]struct {
		spec *task.Spec
		data string
		as   task.Format
		want string
	}{
		"a missing column":  {csv, bad, "", "kind"},
		"a missing file":    {small(t), filepath.Join(dir, "missing"), "", "missing"},
		"an unknown format": {small(t), bad, "feather", "--format"},
		"another format":    {small(t), bad, task.Parquet, "not a Parquet file"},
	} {
		state := filepath.Join(dir, "state")
		_, err := Publish(t.Context(), PublishConfig{Task: "words", Spec: test.spec, Data: test.data, Format: test.as, StateDir: state,
			Broker: nowhere, Policy: client.Policy{}, Logger: discard()})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v, want %q", what, err, test.want)
		}
		if _, err := os.Stat(state); err == nil {
			t.Errorf("%s: a store was made", what)
		}
	}
}
