package streamtest

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
)

func queueDeliversAll(t *testing.T, b Broker) {
	task := b.Task(t)
	r := b.Reader(t, task)
	sent := reports(task, 3, 2, 0, 300)
	acks := publish(t, b, sent)
	got := take(t, r, len(sent), true)
	bySequence := map[uint64]stream.Delivery{}
	for _, d := range got {
		bySequence[d.Sequence] = d
	}
	for i, a := range acks {
		d, ok := bySequence[a.Sequence]
		if !ok || d.Redelivered || d.Subject != task.Report(3, 2) || !bytes.Equal(d.Data, sent[i].Data) {
			t.Fatalf("report %d, sequence %d: %t, %+v", i, a.Sequence, ok, d.Message)
		}
	}
	nothing(t, b, task, r)
}

func queueRedelivers(t *testing.T, b Broker) {
	task := b.Task(t)
	r := b.Reader(t, task)
	publish(t, b, reports(task, 1, 1, 0, 10))
	got := take(t, r, 10, false)
	var kept []uint64
	for i, d := range got {
		if i%2 == 0 {
			if err := d.Ack(); err != nil {
				t.Fatal(err)
			}
		} else {
			kept = append(kept, d.Sequence)
		}
	}
	b.Redeliver(t, task)
	again := take(t, r, len(kept), true)
	var sequences []uint64
	for _, d := range again {
		if !d.Redelivered {
			t.Errorf("sequence %d came again without saying so", d.Sequence)
		}
		sequences = append(sequences, d.Sequence)
	}
	slices.Sort(kept)
	slices.Sort(sequences)
	if !slices.Equal(kept, sequences) {
		t.Fatalf("redelivered %v, not acknowledged %v", sequences, kept)
	}
	nothing(t, b, task, r)
	// An acknowledgement after all is over is harmless.
	if err := got[1].Ack(); err != nil {
		t.Errorf("late ack: %v", err)
	}
}

// queueReadersShare checks that a report goes to one of several readers. A slow broker may have nothing for a while:
// readers go on until all reports came, and then until nothing comes.
func queueReadersShare(t *testing.T, b Broker) {
	task := b.Task(t)
	const readers, n = 3, 300
	publish(t, b, reports(task, 1, 1, 0, n))
	var mu sync.Mutex
	seen := map[uint64]int{}
	var group sync.WaitGroup
	ctx := within(t)
	for range readers {
		r := b.Reader(t, task)
		group.Go(func() {
			for ctx.Err() == nil {
				got, err := r.Fetch(ctx, 16, 200*time.Millisecond)
				if err != nil {
					return
				}
				mu.Lock()
				for _, d := range got {
					seen[d.Sequence]++
				}
				all := len(seen) == n
				mu.Unlock()
				if all && len(got) == 0 {
					return
				}
				for _, d := range got {
					if err := d.Ack(); err != nil {
						return
					}
				}
			}
		})
	}
	group.Wait()
	for sequence, times := range seen {
		if times != 1 {
			t.Errorf("sequence %d was delivered %d times", sequence, times)
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d reports were delivered", len(seen), n)
	}
}

func queueWaits(t *testing.T, b Broker) {
	task := b.Task(t)
	r, ctx := b.Reader(t, task), within(t)
	if got, err := r.Fetch(ctx, 5, 0); err != nil || len(got) != 0 {
		t.Fatalf("fetch without a wait: %d, %v", len(got), err)
	}
	fetched := make(chan int, 1)
	go func() {
		got, err := r.Fetch(ctx, 5, patience)
		for _, d := range got {
			err = d.Ack()
		}
		if err != nil {
			t.Errorf("fetch: %v", err)
		}
		fetched <- len(got)
	}()
	publish(t, b, reports(task, 1, 1, 0, 1))
	if n := <-fetched; n != 1 {
		t.Fatalf("fetch that waited got %d", n)
	}
	for _, bad := range []func() ([]stream.Delivery, error){
		func() ([]stream.Delivery, error) { return r.Fetch(ctx, 0, time.Second) },
		func() ([]stream.Delivery, error) { return r.Fetch(ctx, 1, -time.Second) },
	} {
		if _, err := bad(); err == nil {
			t.Error("fetch of nothing, or with a negative wait: no error")
		}
	}
}

func queuePurges(t *testing.T, b Broker) {
	task := b.Task(t)
	r, ctx := b.Reader(t, task), within(t)
	publish(t, b, reports(task, 1, 1, 0, 5))
	publish(t, b, reports(task, 9, 7, 5, 3))
	before := queued(t, r, 8)
	publish(t, b, reports(task, 1, 2, 8, 4))
	publish(t, b, reports(task, 1, 1, 12, 1)) // on a subject of before, and later
	out := take(t, r, 10, false)
	for range 2 {
		if err := r.Purge(ctx, before.Next); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Purge(ctx, 0); err != nil {
		t.Error(err)
	}
	if left := queued(t, r, 5); left.Next != before.Next+5 || left.Bytes == 0 ||
		left.MaxBytes != uint64(b.MaxReportBytes) {
		t.Errorf("after a purge: %+v, before %+v", left, before)
	}
	b.Redeliver(t, task)
	for _, d := range take(t, r, 5, true) {
		if d.Sequence < before.Next {
			t.Errorf("%s, sequence %d, came after its purge", d.Subject, d.Sequence)
		}
	}
	nothing(t, b, task, r)
	if acks := publish(t, b, reports(task, 1, 3, 13, 1)); acks[0].Sequence != 14 {
		t.Errorf("sequence %d after a purge: numbers are not used again", acks[0].Sequence)
	}
	if err := out[0].Ack(); err != nil { // of what is no more
		t.Error(err)
	}
}

// queued checks that a queue holds the wanted number of reports, taken ones included, and returns its state.
func queued(t *testing.T, r stream.ReportReader, want uint64) stream.Queue {
	t.Helper()
	q, err := r.Queue(within(t))
	if err != nil || q.Messages != want {
		t.Fatalf("the queue has %+v, %v, want %d messages", q, err, want)
	}
	return q
}

func queueOfNothing(t *testing.T, b Broker) {
	task := b.Task(t)
	r := b.Reader(t, task)
	if q := queued(t, r, 0); q.Next != 1 || q.Bytes != 0 {
		t.Errorf("a queue that was never used: %+v", q)
	}
	publish(t, b, reports(task, 1, 1, 0, 3))
	take(t, r, 3, true)
	nothing(t, b, task, r)
	if q := queued(t, r, 0); q.Next != 4 || q.Bytes != 0 {
		t.Errorf("a queue whose reports were acknowledged: %+v", q)
	}
}
