package memory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
)

const task stream.Task = "churn"

func open(t *testing.T, c memory.Config) (*memory.Broker, *memory.Reader) {
	t.Helper()
	b, err := memory.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Reader(task)
	if err != nil {
		t.Fatal(err)
	}
	return b, r
}

func outgoing(n int) []stream.Outgoing {
	all := make([]stream.Outgoing, n)
	for i := range all {
		all[i] = stream.Outgoing{Subject: task.Report(1, 1), ID: [16]byte{byte(i), byte(i >> 8)}, Data: []byte{byte(i)}}
	}
	return all
}

func TestAckWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := open(t, memory.Config{AckWait: 5 * time.Second})
		ctx := context.Background()
		if _, err := b.Publish(ctx, outgoing(3)); err != nil {
			t.Fatal(err)
		}
		got, err := r.Fetch(ctx, 10, time.Minute)
		if err != nil || len(got) != 3 {
			t.Fatalf("%d deliveries, %v", len(got), err)
		}
		if err := got[1].Ack(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		again, err := r.Fetch(ctx, 10, time.Minute)
		if err != nil || len(again) != 2 || !again[0].Redelivered || again[0].Sequence != 1 || again[1].Sequence != 3 {
			t.Fatalf("%v, %v", again, err)
		}
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("redelivered after %v", d)
		}
	})
}
