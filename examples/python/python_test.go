// Package python tests the example in Python against a gateway of this repository.
package python

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/rundevice"
	"github.com/panlearn/panlearn/internal/scorer"
	"github.com/panlearn/panlearn/internal/test/live"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// TestPublishing runs the module's own tests.
func TestPublishing(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT RUN: there is no python3 here")
	}
	const users, token = 600, "token-of-the-test"
	task := live.Start(t, users)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	config := rundevice.Config{StateDir: t.TempDir(),
		Settings: device.Settings{Task: task.Name, Logger: runtest.Discard()},
		Broker:   run.Broker{ConnectConfig: natsjs.ConnectConfig{URL: task.URL}}}
	go func() {
		_, err := rundevice.PublishHTTP(ctx, config, rundevice.HTTPConfig{Listener: listener, Token: token})
		done <- err
	}()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	events := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(events, []byte(strings.Join(task.Events, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := exec.CommandContext(ctx, python, "-B", "-W", "error", "-m", "unittest", "-v", "test_panlearn")
	tests.Env = append(os.Environ(), "PANLEARN_GATEWAY=http://"+listener.Addr().String(), "PANLEARN_TOKEN="+token,
		"PANLEARN_EVENTS="+events)
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// prices and kinds are tasks whose models TestScoring serves.
const prices = `
version: 1
name: prices
events: {format: jsonl}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100, scale: unit}
    - {column: job, kind: categorical, vocabulary: [a, b]}
label: {column: y, positive: ["yes"], negative: ["no"]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`

const kinds = `
version: 1
name: kinds
events: {format: jsonl}
features: {columns: [{column: x, kind: numeric, min: -1, max: 1, scale: raw}]}
label: {column: y, classes: [a, b, c]}
model: {loss: softmax, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`

// TestScoring runs the tests of the modules that score.
func TestScoring(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT RUN: there is no python3 here")
	}
	const token = "token-of-the-test"
	config := scorer.Config{Every: time.Minute, Logger: runtest.Discard()}
	if config.Access, err = httpaccess.Token(token); err != nil {
		t.Fatal(err)
	}
	for text, theta := range map[string][]float64{prices: {2, 0.5, -1, 0}, kinds: {-1, 0, 0, 0, 1, 0}} {
		spec, err := task.Parse([]byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := model.Of(spec, theta)
		if err != nil {
			t.Fatal(err)
		}
		s.Privacy.HonestFraction = accounting.One
		doc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		config.Sources = append(config.Sources, scorer.Source{Name: s.Task,
			Read: func(context.Context) ([]byte, error) { return doc, nil }})
	}
	served, err := scorer.New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(served)
	defer server.Close()
	tests := exec.CommandContext(t.Context(), python, "-B", "-W", "error", "-m", "unittest", "-v", "test_scoring")
	tests.Env = append(os.Environ(), "PANLEARN_SCORER="+server.URL, "PANLEARN_TOKEN="+token)
	out, err := tests.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "NOT RUN") {
		fmt.Println("NOT RUN: data frames of pandas: there is no pandas here")
	}
}
