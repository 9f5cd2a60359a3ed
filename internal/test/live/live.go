// Package live runs a small task for tests of applications: a learner with a broker of its own on loopback, and a stage.
package live

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/internal/run/runstage"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// A Task runs until its test ends, and so does its broker.
type Task struct {
	Name   stream.Task
	URL    string   // of its broker
	Events []string // of as many users as it was planned for, in JSON
}

// Start starts a task of so many users and returns when its broker listens.
func Start(t testing.TB, users int) Task {
	t.Helper()
	job := runtest.Job(t, runtest.Small(t))
	text, err := os.ReadFile(runtest.Events(t, job, users))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	heard, url := runtest.BrokerURL()
	config := runlearner.Config{Config: service.Config{Identity: runtest.Identity(t), Logger: heard}, Spec: job.Spec,
		StateDir: t.TempDir(), Embedded: true, Listen: "127.0.0.1:0"}
	learning, mixing := make(chan error, 1), make(chan error, 1)
	go func() { learning <- runlearner.Run(ctx, config) }()
	task := Task{Name: stream.Task(job.Spec.Name), Events: strings.Split(strings.TrimSpace(string(text)), "\n")}
	select {
	case task.URL = <-url:
	case err := <-learning:
		stop()
		t.Fatal(err)
	}
	identity := runtest.Identity(t)
	go func() {
		mixing <- runstage.Run(ctx, runstage.Config{Config: stage.Config{Task: task.Name, Identity: identity,
			Logger: runtest.Discard()}, Broker: run.Broker{ConnectConfig: natsjs.ConnectConfig{URL: task.URL}}})
	}()
	t.Cleanup(func() {
		stop()
		<-mixing
		<-learning
	})
	return task
}
