// Package python tests the example in Python against a gateway of this repository.
package python

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/rundevice"
	"github.com/panlearn/panlearn/internal/test/live"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// TestPython runs the module's own tests.
func TestPython(t *testing.T) {
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
