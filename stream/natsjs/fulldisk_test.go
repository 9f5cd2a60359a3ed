package natsjs_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestFullDiskIsNamed: nats-server does not reply to a write that finds the disk full, nor to all later ones of that
// stream, also with room again. A writer gets an error with cause and advice, and a write that is not stored does not
// count as refused; the server in the process knows that it has to be started again, after which it works.
func TestFullDiskIsNamed(t *testing.T) {
	t.Parallel() // most of it is waiting for answers that do not come
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=0700,size=1m", "panlearn-test",
		dir).CombinedOutput(); err != nil {
		fmt.Printf("NOT RUN: a full disk under a broker: may not mount one: %v %s\n", err, out)
		return
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	e, err := embedded.Start(embedded.Config{StoreDir: dir + "/nats", SyncAlways: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { e.Shutdown() }()
	operator, c := dial(t, e, natsjs.ConnectConfig{}), dial(t, e, natsjs.ConnectConfig{AckTimeout: time.Second})
	provision(t, operator, "full", natsadmin.Options{})
	task, ctx := stream.Task("full"), t.Context()
	var lease uint64
	if lease, err = operator.Swap(ctx, task.Lease(), 0, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := e.Failed(); err != nil {
		t.Fatalf("healthy: %v", err)
	}
	publish := func(n int, size int) stream.Ack {
		acks, err := c.Publish(ctx, []stream.Outgoing{{Subject: task.Report(1, 1), ID: [16]byte{byte(n), byte(n >> 8)},
			Data: make([]byte, size)}})
		if err != nil {
			t.Fatal(err)
		}
		return acks[0]
	}
	n := 0
	for ; e.Failed() == nil && n < 3000; n++ { // a write that is not answered may be one of a slow machine
		publish(n, 30_000)
	}
	if a := publish(n, 300); a.Status != stream.Unknown || !strings.Contains(a.Cause, "disk") {
		t.Errorf("a publish: %+v, want unknown because of the disk", a)
	}
	for r := stream.Round(1); ; r++ { // fills what the last block left
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err = c.PutOnce(short, task.Round(r), make([]byte, 4000))
		cancel()
		if errors.Is(err, natsjs.ErrFullDisk) || r == 100 {
			break
		}
	}
	if !errors.Is(err, natsjs.ErrFullDisk) || !errors.Is(err, context.DeadlineExceeded) ||
		strings.Contains(err.Error(), "deadline") {
		t.Errorf("put: %v, want that the disk may be full", err)
	}
	for err = nil; err == nil; lease++ {
		if _, err = c.Swap(ctx, task.Lease(), lease, make([]byte, 4000)); err != nil && !errors.Is(err, natsjs.ErrFullDisk) {
			t.Fatal(err)
		}
	}
	r, err := c.Reader(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Purge(ctx, 5); !errors.Is(err, natsjs.ErrFullDisk) || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("purge: %v", err)
	}
	if err := exec.Command("mount", "-o", "remount,size=8m", dir).Run(); err != nil {
		t.Fatal(err)
	}
	if a := publish(n, 300); a.Status == stream.Stored {
		t.Error("nats-server stores again: what it refuses after a full disk is not what it was; say so in the runbook")
	}
	if err := e.Failed(); !errors.Is(err, embedded.ErrLatched) || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("the server in the process: %v, want that it has latched", err)
	}
	c.Close()
	e.Shutdown()
	if e, err = embedded.Start(embedded.Config{StoreDir: dir + "/nats", SyncAlways: true}); err != nil {
		t.Fatal(err)
	}
	c = dial(t, e, natsjs.ConnectConfig{})
	if a := publish(n, 300); a.Status != stream.Stored && a.Status != stream.Duplicate {
		t.Errorf("started again: %+v", a)
	}
	if err := e.Failed(); err != nil {
		t.Errorf("started again: %v", err)
	}
}
