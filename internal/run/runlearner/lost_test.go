package runlearner

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestBrokerComesBackEmpty: a NATS server dies, comes back with an empty store, and its streams are provisioned again.
// The learner, which lives and waits, puts its first round again; or, where a round was applied, ends with what a start
// would say.
func TestBrokerComesBackEmpty(t *testing.T) {
	for _, applied := range []stream.Round{0, 1} {
		job := runtest.Job(t, runtest.Small(t))
		body, err := job.Wire()
		if err != nil {
			t.Fatal(err)
		}
		name := stream.Task(job.Spec.Name)
		server, err := embedded.Start(embedded.Config{StoreDir: t.TempDir(), Listen: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := natsjs.Connect(natsjs.ConnectConfig{URL: server.URL(), Reconnect: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := run.Provision(t.Context(), conn, name, run.Streams{Body: body, Replicas: 1}); err != nil {
			t.Fatal(err)
		}
		id, mixer := runtest.Identity(t), runtest.Identity(t)
		announced, lost := make(chan uint64, 8), make(chan string, 8)
		answers := func(r stream.Round) {
			if r > applied {
				return
			}
			m, err := conn.Get(t.Context(), name.Round(r))
			if err != nil {
				t.Error(err)
				return
			}
			var round wire.Round
			canonical, err := seal.Verify(m.Data, id.Public(), &round)
			if err != nil {
				t.Error(err)
				return
			}
			batch, err := mixer.Sign(runtest.ZeroBatch(t, body.Plan, &round, stream.HashOf(canonical)))
			if err == nil {
				_, err = conn.PutOnce(t.Context(), name.Batch(r), batch)
			}
			if err != nil {
				t.Error(err)
			}
		}
		s, err := service.New(service.Config{Task: name, Records: conn, Store: storetest.NewMemory(), Identity: id,
			StageKey: mixer.Public(), Observer: observe.All(runtest.Stage(answers), service.Observer{
				Announced: func(r, _ uint64) { announced <- r }, Lost: func(subject string) { lost <- subject }}),
			Patience: 500 * time.Millisecond, Poll: 200 * time.Millisecond, Prepare: func() (*wire.Task, error) {
				return body,
					nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Run(t.Context()) }()
		waiting := name.Round(applied + 1)
		for r := range announced {
			if r == uint64(applied)+1 {
				break
			}
		}
		first, err := conn.Get(t.Context(), waiting)
		if err != nil {
			t.Fatal(err)
		}
		address := strings.TrimPrefix(server.URL(), "nats://")
		server.Shutdown()
		if server, err = embedded.Start(embedded.Config{StoreDir: t.TempDir(), Listen: address}); err != nil {
			t.Fatal(err)
		}
		defer server.Shutdown()
		other, err := natsjs.Connect(natsjs.ConnectConfig{URL: server.URL()})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if err := natsadmin.Provision(t.Context(), other, name, natsadmin.Options{Replicas: 1}); err != nil {
			t.Fatal(err)
		}
		if applied > 0 {
			select {
			case err := <-done:
				if !errors.Is(err, service.ErrBrokerRolledBack) || !strings.Contains(err.Error(), "restore the broker's streams") {
					t.Errorf("ends with %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Error("a learner whose broker lost everything waits in silence")
			}
			continue
		}
		tick, late := time.NewTicker(50*time.Millisecond), time.After(20*time.Second)
		for again := (stream.Message{}); !slices.Equal(again.Data, first.Data); again, err = other.Get(t.Context(), waiting) {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("round 1 is not put again: %v", err)
			}
		}
		tick.Stop()
		if n := len(lost); n != 2 { // the task and its round
			t.Errorf("told of %d lost records, want 2", n)
		}
	}
}
