package memory_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
)

// TestLoss: what was written after a copy is gone, what it overwrote is there again, and the next write is given the
// sequence of the one that was lost. One record can be lost alone, and all reports.
func TestLoss(t *testing.T) {
	b, r := open(t, memory.Config{})
	ctx := t.Context()
	put := func(subject, data string) stream.PutResult {
		p, err := b.PutOnce(ctx, subject, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	swap := func(expected uint64, data string) uint64 {
		n, err := b.Swap(ctx, task.Lease(), expected, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	gone := func(subject string) {
		t.Helper()
		if _, err := b.Get(ctx, subject); !errors.Is(err, stream.ErrNotFound) {
			t.Errorf("%s is there: %v", subject, err)
		}
	}
	put(task.Round(1), "one")
	first := swap(0, "first")
	stored, err := b.Get(ctx, task.Lease())
	if err != nil {
		t.Fatal(err)
	}
	rounds, leases := b.Copy(task, stream.Rounds), b.Copy(task, stream.Leases)
	put(task.Round(2), "two")
	swap(first, "second")
	if lost := b.Restore(task, stream.Rounds, rounds); !slices.Equal(lost, []string{task.Round(2)}) {
		t.Errorf("lost %v", lost)
	}
	if lost := b.Restore(task, stream.Leases, leases); !slices.Equal(lost, []string{task.Lease()}) {
		t.Errorf("lost %v", lost)
	}
	if m, err := b.Get(ctx, task.Lease()); err != nil || m.Time.IsZero() || !m.Time.Equal(stored.Time) {
		t.Errorf("the lease was stored at %v, and is shown with %v, %v", stored.Time, m.Time, err)
	}
	gone(task.Round(2))
	if m, err := b.Latest(ctx, task.Rounds()); err != nil || m.Subject != task.Round(1) {
		t.Errorf("the newest round is %v, %v", m, err)
	}
	if p := put(task.Round(2), "other"); !p.Ours || p.Standing.Sequence != 2 {
		t.Errorf("round 2 again: %+v", p)
	}
	if m, err := b.Get(ctx, task.Lease()); err != nil || string(m.Data) != "first" || swap(first, "third") != first+1 {
		t.Errorf("the lease is %v, %v", m, err)
	}
	if !b.Lose(task.Round(1)) || b.Lose(task.Round(1)) || b.Lose(task.Report(1, 1)) {
		t.Error("round 1 is lost once, and reports are no records")
	}
	gone(task.Round(1))
	if p := put(task.Round(3), "three"); p.Standing.Sequence != 3 {
		t.Errorf("a stream that lost one record goes on at %d", p.Standing.Sequence)
	}
	b.Restore(task, stream.Rounds, memory.Copy{})
	gone(task.Round(3))
	if acks, err := b.Publish(ctx, outgoing(3)); err != nil || acks[2].Sequence != 3 {
		t.Fatal(acks, err)
	}
	if got, err := r.Fetch(ctx, 1, 0); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	b.Restore(task, stream.Reports, b.Copy(task, stream.Reports))
	if got, err := r.Fetch(ctx, 9, 0); err != nil || len(got) != 0 {
		t.Errorf("lost reports are delivered: %v, %v", got, err)
	}
	if acks, err := b.Publish(ctx, outgoing(1)); err != nil ||
		acks[0] != (stream.Ack{Status: stream.Stored, Sequence: 1}) {
		t.Errorf("after the loss: %v, %v", acks, err)
	}
}
