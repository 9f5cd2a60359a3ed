package runlearner

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/panlearn/panlearn/internal/dashboard"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/rundevice"
	"github.com/panlearn/panlearn/internal/run/runstage"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/service"
	mixing "github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/manifest"
)

// TestRoles runs learner, stage and publisher as their commands do, over a loopback listener: the task ends, all users
// are counted, the embedded broker waits for its peers, and the folder then refuses another declaration.
func TestRoles(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t))
	dir, data := t.TempDir(), runtest.Events(t, job, 600)
	http1, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log, url := runtest.BrokerURL()
	applied, http2 := new(atomic.Uint64), runtest.Loopback(t)
	stages, err := dashboard.NewStages([]string{"http://" + http2.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Config: service.Config{Identity: runtest.Identity(t), Observer: service.Observer{Applied: func(service.Applied) { applied.Add(1) }}, Logger: log},
		Spec: job.Spec, StateDir: dir, Embedded: true, Listen: "127.0.0.1:0", HTTP: http1, Stages: stages, ExitWhenDone: true}
	learner, mixer := make(chan error, 1), make(chan error, 1)
	go func() { learner <- Run(t.Context(), config) }()
	var broker run.Broker
	select {
	case broker.URL = <-url:
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
	if page := runtest.Fetch(t, http1, "/"); !strings.Contains(page,
		"The task has not begun: the learner waits for the shuffle stage&#39;s key.") {
		t.Errorf("the page before the stage: %s", page)
	}
	shown := runtest.Follow(t, http1)
	name := stream.Task(job.Spec.Name)
	go func() {
		mixer <- runstage.Run(t.Context(), runstage.Config{Config: mixing.Config{Task: name, Identity: runtest.Identity(t),
			Logger: runtest.Discard()}, HTTP: http2, Broker: broker})
	}()
	sent, err := rundevice.Publish(t.Context(), rundevice.Config{Settings: device.Settings{Task: name, Source: data, Bundle: 1,
		Logger: runtest.Discard()},
		Data: data, StateDir: t.TempDir(), Broker: broker})
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
	if parts, n := shown(); n < 2 || !strings.Contains(parts["verdict"], "The task has ended.") ||
		!strings.Contains(parts["tiles"], ">600<") {
		t.Errorf("the page after %d events: %q", n, parts["verdict"])
	}
	if n := applied.Load(); n != manifest.Planned(job.Plan) {
		t.Errorf("%d rounds were observed, want %d", n, manifest.Planned(job.Plan))
	}
	var status statedir.Status
	doc, err := statedir.Ask(t.Context(), statedir.Where{StateDir: dir}, statedir.AskStatus)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc, &status); err != nil || !status.Ended || status.Users != 600 {
		t.Errorf("status: %s, %v", doc, err)
	}
	config.HTTP, config.Listen, config.Logger = nil, "", runtest.Discard()
	if err := Run(t.Context(), config); err != nil { // nobody is connected, so it lingers for nobody
		t.Errorf("a task that has ended: %v", err)
	}
	config.Spec = runtest.Small(t, "privacy.epsilon=2")
	if err := Run(t.Context(), config); err == nil ||
		!strings.Contains(err.Error(), "another declaration (privacy.epsilon: file says 2, task has 1)") {
		t.Errorf("another declaration: %v", err)
	}
}

// TestStops while it waits for the stage, and leaves the folder to the next.
func TestStops(t *testing.T) {
	config := Config{Config: service.Config{Identity: runtest.Identity(t)}, Spec: runtest.Small(t), StateDir: t.TempDir(),
		Embedded: true}
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		config.Logger = runtest.OnLine("waiting for the shuffle stage", func(slog.Record) { stop() })
		if err := Run(ctx, config); err == nil || ctx.Err() == nil {
			t.Errorf("RunLearner: %v, want the end of its context", err)
		}
		stop()
	}
}
