package embedded_test

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

const task stream.Task = "churn"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a server that ends with the test.
func start(t *testing.T, c embedded.Config) *embedded.Server {
	t.Helper()
	if c.StoreDir == "" {
		c.StoreDir = t.TempDir()
	}
	e, err := embedded.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Shutdown)
	return e
}

func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for want, c := range map[string]embedded.Config{
		"store dir":      {},
		"loopback":       {StoreDir: dir, Listen: "0.0.0.0:4222"},
		"no accounts":    {StoreDir: dir, Listen: ":4222"},
		"host:port":      {StoreDir: dir, Listen: "127.0.0.1"},
		"port from":      {StoreDir: dir, Listen: "127.0.0.1:70000"},
		"negative limit": {StoreDir: dir, MaxStore: -1},
		"did not start":  {StoreDir: filepath.Join(file, "below")},
		"address alread": {StoreDir: dir, Listen: taken.Addr().String()},
	} {
		if e, err := embedded.Start(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: want an error with %q, got: %v", c, want, err)
			if err == nil {
				e.Shutdown()
			}
		}
	}
}

func TestListensOnlyWhenAsked(t *testing.T) {
	if url := start(t, embedded.Config{}).URL(); url != "" {
		t.Errorf("listens on %s", url)
	}
	e := start(t, embedded.Config{Listen: "localhost:0"})
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: e.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, want := c.Limits().MaxPayload, natsjs.DefaultMaxPayload-natsjs.HeaderRoom; got != want {
		t.Errorf("max payload %d, want %d", got, want)
	}
}

// TestRestart: what was acknowledged is there after a restart on the same folder, with the same sequences.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	sent := []stream.Outgoing{{Subject: task.Report(1, 1), ID: [16]byte{1}, Data: []byte("one")},
		{Subject: task.Report(1, 1), ID: [16]byte{2}, Data: []byte("two")}}
	for life := range 3 {
		var log bytes.Buffer
		e := start(t, embedded.Config{StoreDir: dir, SyncAlways: true,
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		c, err := e.Connect(natsjs.ConnectConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if err := natsadmin.Provision(ctx, c, task, natsadmin.Options{}); err != nil {
			t.Fatal(err)
		}
		if life == 0 {
			for _, subject := range []string{task.Task(), task.Round(1), task.Open(1, 1), task.Batch(1)} {
				if _, err := c.PutOnce(ctx, subject, []byte(subject)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Swap(ctx, task.Lease(), 0, []byte("lease")); err != nil {
				t.Fatal(err)
			}
			if acks, err := c.Publish(ctx, sent); err != nil || acks[1] != (stream.Ack{Status: stream.Stored, Sequence: 2}) {
				t.Fatalf("%v, %v", acks, err)
			}
		}
		r, err := c.PutOnce(ctx, task.Round(1), []byte("other"))
		if err != nil || r.Ours || string(r.Standing.Data) != task.Round(1) || r.Standing.Sequence != 2 {
			t.Fatalf("life %d: %+v, %v", life, r, err)
		}
		if m, err := c.Get(ctx, task.Lease()); err != nil || m.Sequence != 1 {
			t.Fatalf("life %d: %+v, %v", life, m, err)
		}
		if life == 2 {
			reader, err := c.Reader(ctx, task)
			if err != nil {
				t.Fatal(err)
			}
			var got []stream.Delivery
			for len(got) < 2 { // one of them is enough for a fetch
				more, err := reader.Fetch(ctx, 2, time.Minute)
				if err != nil || len(more) == 0 {
					t.Fatalf("after %v: %v, %v", got, more, err)
				}
				got = append(got, more...)
			}
			if len(got) != 2 || string(got[0].Data) != "one" || got[1].Sequence != 2 {
				t.Fatalf("%v", got)
			}
		}
		c.Close()
		e.Shutdown()
		e.Shutdown()
		if !strings.Contains(log.String(), "nats-server") {
			t.Error("the server's lines do not reach the log")
		}
	}
}
