package natsadmin

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// TestRetain: the records of the rounds that are far behind are gone from the server, all others are there, and the
// server holds no listing any more.
func TestRetain(t *testing.T) {
	c := broker(t)
	provision(t, c, task, Options{Helper: true})
	ctx := t.Context()
	put := func(subject string) {
		if _, err := c.PutOnce(ctx, subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	const gone = 40
	put(task.Helper())
	put(task.Task())
	put(task.Stage())
	for r := stream.Round(1); r <= gone+1+stream.KeptRounds; r++ {
		put(task.Round(r))
		put(task.Open(r, 1))
		put(task.Join(r, 1))
		put(task.Share(r))
		put(task.Claim(r))
		put(task.Batch(r))
		put(task.Close(r, 1))
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := (Records{c}).Remove(over, task, stream.Rounds, []uint64{2}); !errors.Is(err, context.Canceled) {
		t.Errorf("removed by whom nobody waits for: %v", err)
	}
	if out, err := Retain(ctx, c, task, time.Hour); err != nil || out.Records != 0 {
		t.Fatalf("with all of them young: %+v, %v", out, err)
	}
	out, err := Retain(ctx, c, task, time.Nanosecond)
	if err != nil || out.Before != gone+1 || out.Records != 7*gone {
		t.Fatalf("%+v, %v: want the records of %d rounds removed", out, err, gone)
	}
	for subject, there := range map[string]bool{
		task.Task(): true, task.Stage(): true, task.Round(gone): false, task.Open(gone, 1): false, task.Claim(gone): false,
		task.Batch(gone): false,
		task.Helper():    true, task.Join(gone, 1): false, task.Share(gone): false, task.Join(gone+1, 1): true,
		task.Share(gone + 1): true,
		task.Close(gone, 1):  false, task.Round(gone + 1): true, task.Batch(gone + 1): true, task.Open(gone+1, 1): true,
	} {
		if _, err := c.Get(ctx, subject); errors.Is(err, stream.ErrNotFound) == there {
			t.Errorf("%s: %v, want it there: %t", subject, err, there)
		}
	}
	for _, s := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Joins, stream.Batches} {
		info, err := streamInfo(ctx, c, task.Name(s))
		if err != nil || info.State.Consumers != 0 {
			t.Errorf("%v: %d listings are left, %v", s, info.State.Consumers, err)
		}
	}
}

// TestRetainWithoutHelper: a task of one operator has no stream of a helper, which is no failure of a sweep.
func TestRetainWithoutHelper(t *testing.T) {
	c := broker(t)
	provision(t, c, task, Options{})
	for m, err := range (Records{c}).Records(t.Context(), task, stream.Joins) {
		t.Errorf("%v, %v", m, err)
	}
}
