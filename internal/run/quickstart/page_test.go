package quickstart

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/stream"
)

// TestQuickstartPage: the quickstart's page follows the run, stays up after its end, and closes with the run's context.
func TestQuickstartPage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at, reports, ended := runtest.Loopback(t), make(chan Report, 1), make(chan error, 1)
	go func() {
		_, err := Run(ctx, Config{Job: runtest.Job(t, runtest.Small(t)), Dir: t.TempDir(), Logger: runtest.Discard(),
			HTTP: at,
			Done: func(r Report) error { reports <- r; return nil }})
		ended <- err
	}()
	select {
	case r := <-reports:
		if r.Accepted != 600 {
			t.Errorf("%d users were accepted", r.Accepted)
		}
	case err := <-ended:
		t.Fatalf("Quickstart ended before its page: %v", err)
	}
	last := runtest.Follow(t, at)
	page := runtest.Fetch(t, at, "/")
	for _, want := range []string{"The task has ended.", "of 3 planned", "of 600 planned", "3 steps, 600 users",
		"Released after round 3", "<th scope=\"row\">x0</th>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for path, want := range map[string]string{"/metrics": `panlearn_stage_reports_total{outcome="accepted",task="quickstart"}`,
		"/status": `"accepted": 600`, "/v1/status": `"ended": true`, "/model.json": `"task": "quickstart"`,
		"/model.onnx": "privacy", "/model.npz": "metadata.json", "/charts/latency.csv": "\n3,600,", "/healthz": "ok",
		"/readyz": "ok"} {
		if got := runtest.Fetch(t, at, path); !strings.Contains(got, want) {
			t.Errorf("%s does not have %q", path, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Quickstart: %v", err)
	}
	if parts, _ := last(); !strings.Contains(parts["verdict"], "The task has ended.") {
		t.Errorf("the last verdict: %q", parts["verdict"])
	}
}

// TestQuickstartPageInterrupted: an open page shows that its run was stopped.
func TestQuickstartPageInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at, ended := runtest.Loopback(t), make(chan error, 1)
	first := make(chan func() (map[string]string, int), 1)
	go func() {
		_, err := Run(ctx, Config{Job: runtest.Job(t, runtest.Small(t)), Dir: t.TempDir(), Logger: runtest.Discard(),
			HTTP: at,
			Watch: runtest.Stage(func(r stream.Round) {
				if r == 2 {
					first <- runtest.Follow(t, at)
					cancel()
				}
			})})
		ended <- err
	}()
	last := <-first
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Quickstart: %v", err)
	}
	if parts, _ := last(); !strings.Contains(parts["verdict"], "The learner was stopped.") {
		t.Errorf("the last verdict: %q", parts["verdict"])
	}
}
