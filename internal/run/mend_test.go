package run_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
)

// A book is a log that can be read while it is being written.
type book struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *book) has(s string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.buf.String(), s)
}

// patience bounds the time that a test waits for what must come, which a busy machine takes longer for.
const patience = time.Minute

// TestStreamsAreMadeAgain checks what happens when reports that a server keeps in its memory are lost with it, or an
// operator deletes the wrong stream. The stage's reader works on without a restart, above the sequences of before;
// streams that decide rounds are not made again under a task that has begun, which is logged.
func TestStreamsAreMadeAgain(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	server, err := embedded.Start(embedded.Config{StoreDir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	url := server.URL()
	defer func() { server.Shutdown() }()
	dial := func(ack time.Duration) *natsjs.Conn {
		c, err := natsjs.Connect(natsjs.ConnectConfig{URL: url, AckTimeout: ack, Reconnect: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	admin, stage, device := dial(5*time.Second), dial(time.Second), dial(time.Second)
	job := runtest.Job(t, runtest.Small(t))
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	task := stream.Task("mended")
	if _, err := run.Provision(ctx, admin, task, run.Streams{Body: body, Replicas: 1, MemoryReports: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.PutOnce(ctx, task.Task(), []byte("begun")); err != nil {
		t.Fatal(err)
	}
	var log book
	streams := run.Streams{Body: body, Replicas: 1, MemoryReports: true, Administers: true, Every: 100 * time.Millisecond}
	defer run.KeepProvisioned(ctx, admin, task, streams, slog.New(slog.NewTextHandler(&log, nil)))()
	reader, err := stage.Reader(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	n := byte(0)
	works := func(what string) (sequence uint64) {
		t.Helper()
		for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
			n++
			acks, err := device.Publish(ctx, []stream.Outgoing{{Subject: task.Report(1, 1), ID: [16]byte{n, 1},
				Data: []byte("report")}})
			if err != nil || acks[0].Status != stream.Stored {
				continue
			}
			got, err := reader.Fetch(ctx, 1, time.Second)
			if err == nil && len(got) == 1 && got[0].Ack() == nil {
				return got[0].Sequence
			}
		}
		t.Fatalf("%s: no report comes to the stage", what)
		return 0
	}
	last := works("at first")
	rises := func(what string) {
		t.Helper()
		now := works(what)
		if now < last { // the same one comes again where its acknowledgement did not arrive
			t.Errorf("%s: sequence %d after %d", what, now, last)
		}
		last = now
	}
	server.Shutdown()
	if server, err = embedded.Start(embedded.Config{StoreDir: dir, Listen: strings.TrimPrefix(url,
		"nats://")}); err != nil {
		t.Fatal(err)
	}
	rises("a server that was started again")
	js := admin.Admin().JetStream()
	if err := js.DeleteConsumer(ctx, task.Name(stream.Reports), natsjs.Durable); err != nil {
		t.Fatal(err)
	}
	rises("a consumer that was deleted")
	if err := js.DeleteStream(ctx, task.Name(stream.Reports)); err != nil {
		t.Fatal(err)
	}
	rises("a stream that was deleted")
	if !log.has("made again") || !log.has(task.Name(stream.Reports)) || log.has("docs/how-to/runbook.md") {
		t.Error("the log does not tell what was made again")
	}
	if err := js.DeleteStream(ctx, task.Name(stream.Batches)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); !log.has("docs/how-to/runbook.md") && time.Now().Before(end); {
		<-tick.C
	}
	if _, err := js.Stream(ctx, task.Name(stream.Batches)); err == nil || !log.has(task.Name(stream.Batches)) ||
		!log.has("docs/how-to/runbook.md") {
		t.Errorf("batches of a task that has begun: %v, want them missing, and a warning that says so", err)
	}
	var other book // of a learner that is no administrator
	streams.Administers = false
	defer run.KeepProvisioned(ctx, dial(5*time.Second), task, streams, slog.New(slog.NewTextHandler(&other, nil)))()
	for end := time.Now().Add(patience); !other.has("docs/how-to/runbook.md, the broker lost records") &&
		time.Now().Before(end); {
		<-tick.C
	}
	if !other.has("may not make it again") || !other.has("docs/how-to/runbook.md, the broker lost records") {
		t.Error("a learner without an administrator's rights names no way out of lost batches")
	}
	if _, err := run.Provision(ctx, admin, task, run.Streams{Body: body, Replicas: 1, MemoryReports: true}); err == nil ||
		!strings.Contains(err.Error(), "lost") {
		t.Errorf("provisioned over lost batches: %v", err)
	}
	for _, s := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Reports, stream.Leases} {
		if err := js.DeleteStream(ctx, task.Name(s)); err != nil {
			t.Fatal(err)
		}
	}
	var empty book // of a learner on a broker without any record that the task has begun
	streams.Administers = true
	defer run.KeepProvisioned(ctx, admin, task, streams, slog.New(slog.NewTextHandler(&empty, nil)))()
	for end := time.Now().Add(patience); !empty.has(task.Name(stream.Rounds)) && time.Now().Before(end); {
		<-tick.C
	}
	if _, err := js.Stream(ctx, task.Name(stream.Rounds)); err == nil || !empty.has("docs/how-to/runbook.md") ||
		empty.has("made again") {
		t.Errorf(
			"rounds of a task that has begun, with all other streams gone: %v, want them missing, and a warning that says so",
			err)
	}
}
