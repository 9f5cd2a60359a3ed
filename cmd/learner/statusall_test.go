package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/run/statedir"
)

// TestStatusOfAllTellsWhy: a task that has no status yet says what it waits for or why it fails, and a file that is no
// task is a row too.
func TestStatusOfAllTellsWhy(t *testing.T) {
	rows := many.Document[many.Row]{Tasks: []many.Row{
		{State: many.Faulty, Line: "want YAML", Wrong: true, File: "tasks/bad.yaml"},
		{Task: "ads", State: many.Running, Line: "It opens its state folder, and plans.", File: "tasks/ads.yaml"},
		{Task: "churn", State: many.Waiting, Line: "state is locked by another owner", Wrong: true, File: "tasks/churn.yaml"},
	}}
	learners := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/tasks" {
			_ = json.NewEncoder(w).Encode(rows)
			return
		}
		http.Error(w, "task churn: state is locked by another owner", http.StatusServiceUnavailable)
	}))
	defer learners.Close()
	list, err := statusOfAll(t.Context(), whereFlags{statedir.Where{URL: learners.URL}})
	if err == nil || err.Error() != "no status of 1 task; not begun yet: 1 task; no task: 1 file" {
		t.Errorf("error %v", err)
	}
	var text strings.Builder
	if err := list.print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"has not begun yet. It opens its state folder, and plans.\n",
		"waiting: state is locked by another owner\n", "no task: want YAML\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "state is empty") || len(list.Tasks) != 2 || len(list.Faulty) != 1 {
		t.Errorf("%d tasks, %d faulty files:\n%s", len(list.Tasks), len(list.Faulty), text.String())
	}
}

// TestReady: the check of a container follows /readyz of its process, says why it fails, and asks for a URL.
func TestReady(t *testing.T) {
	ready := true
	role := httptest.NewServer(obs.Endpoints(obs.NewRegistry(), nil, func() error {
		if ready {
			return nil
		}
		return errors.New("no connection to the broker")
	}, nil))
	defer role.Close()
	var said bytes.Buffer
	ask := func(args ...string) int {
		said.Reset()
		return cli.Main(newRoot(), append([]string{"status", "--ready"}, args...), &said)
	}
	if code := ask("--http", role.URL+"/"); code != 0 {
		t.Errorf("a process that is ready: exit code %d: %s", code, &said)
	}
	ready = false
	if code := ask("--http", role.URL); code != cli.ExitTransient ||
		!strings.Contains(said.String(), "not ready: no connection to the broker") {
		t.Errorf("one that is not: exit code %d: %s", code, &said)
	}
	role.Close()
	if code := ask("--http", role.URL); code != cli.ExitTransient {
		t.Errorf("one that is gone: exit code %d: %s", code, &said)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for _, args := range [][]string{nil, {"--state", t.TempDir()}, {"--http", role.URL, "--all"},
		{"--http", role.URL, "--json"}, {"--http", "localhost:9091"}, {"--http", "127.0.0.1:9091"}, {"--http", other.URL}} {
		if code := ask(args...); code != cli.ExitUsage {
			t.Errorf("%v: exit code %d: %s", args, code, &said)
		}
	}
}
