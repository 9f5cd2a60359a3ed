package streamtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/retention"
)

func list(t *testing.T, b Broker, task stream.Task, s stream.Stream) (all []retention.Record) {
	t.Helper()
	for m, err := range b.Retention.Records(within(t), task, s) {
		if err != nil {
			t.Fatalf("records of %v: %v", s, err)
		}
		all = append(all, m)
	}
	return all
}

// retentionRemoves: messages are listed by sequence, and a removed one is gone, with its sequence; its subject is empty
// again.
func retentionRemoves(t *testing.T, b Broker) {
	task, ctx := b.Task(t), within(t)
	if m, err := b.Retention.Newest(ctx, task); !errors.Is(err, stream.ErrNotFound) {
		t.Fatalf("newest of nothing: %+v, %v", m, err)
	}
	if all := list(t, b, task, stream.Batches); len(all) != 0 {
		t.Fatalf("records of nothing: %+v", all)
	}
	put(t, b, task.Task(), []byte("task"))
	const rounds = 600 // more than an adapter requests at a time
	for r := stream.Round(1); r <= rounds; r++ {
		put(t, b, task.Round(r), []byte("round"))
	}
	put(t, b, task.End(), []byte("end"))
	newest, err := b.Retention.Newest(ctx, task)
	if err != nil || newest.Subject != task.Round(rounds) || newest.Sequence != rounds+1 || newest.Time.IsZero() {
		t.Fatalf("newest: %+v, %v", newest, err)
	}
	all := list(t, b, task, stream.Rounds)
	if len(all) != rounds+2 || all[0].Subject != task.Task() || all[rounds] != newest ||
		all[rounds+1].Subject != task.End() {
		t.Fatalf("%d records, the first %+v, the last %+v", len(all), all[0], all[len(all)-1])
	}
	if !slices.IsSortedFunc(all, func(a, b retention.Record) int { return a.Time.Compare(b.Time) }) {
		t.Fatal("a record is older than one before it")
	}
	for range 2 { // the second time nothing is there to be removed
		if err := b.Retention.Remove(ctx, task, stream.Rounds, []uint64{2, 4}); err != nil {
			t.Fatal(err)
		}
	}
	for r, gone := range []bool{1: true, 2: false, 3: true, 4: false} {
		if r == 0 {
			continue
		}
		_, err := b.Get(ctx, task.Round(stream.Round(r)))
		for ctx.Err() == nil && errors.Is(err, stream.ErrNotFound) != gone { // a read may lag
			_, err = b.Get(ctx, task.Round(stream.Round(r)))
		}
		if errors.Is(err, stream.ErrNotFound) != gone {
			t.Fatalf("round %d: %v, removed %t", r, err, gone)
		}
	}
	if n := len(list(t, b, task, stream.Rounds)); n != rounds {
		t.Fatalf("%d records stand, want %d", n, rounds)
	}
	if r := put(t, b, task.Round(1), []byte("again")); !r.Ours || r.Standing.Sequence != rounds+3 {
		t.Fatalf("put where a record was removed: %+v", r)
	}
	for _, s := range []stream.Stream{stream.Reports, stream.Leases} {
		if err := b.Retention.Remove(ctx, task, s, []uint64{1}); !errors.Is(err, stream.ErrRefused) {
			t.Fatalf("remove from %v: %v", s, err)
		}
	}
}
