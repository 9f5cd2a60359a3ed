package streamtest

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
)

func putOnceStands(t *testing.T, b Broker) {
	task := b.Task(t)
	for i, subject := range []string{task.Task(), task.Round(1), task.Round(2), task.End()} {
		first := put(t, b, subject, []byte("first"))
		if !first.Ours || string(first.Standing.Data) != "first" || first.Standing.Subject != subject ||
			first.Standing.Sequence != uint64(i+1) {
			t.Fatalf("first put on %s: %+v", subject, first)
		}
		if again := put(t, b, subject, []byte("first")); !again.Ours || again.Standing.Sequence != first.Standing.Sequence {
			t.Fatalf("same bytes again on %s: %+v", subject, again)
		}
		other := put(t, b, subject, []byte("second"))
		if other.Ours || string(other.Standing.Data) != "first" || other.Standing.Sequence != first.Standing.Sequence {
			t.Fatalf("other bytes on %s: %+v", subject, other)
		}
	}
	// The streams of the other writer count for themselves.
	for _, subject := range []string{task.Stage(), task.Batch(1)} {
		if r := put(t, b, subject, []byte("x")); !r.Ours || r.Standing.Sequence != 1 {
			t.Fatalf("put on %s: %+v", subject, r)
		}
	}
}

// putOnceRacersAgree checks the property that a claim rests on.
func putOnceRacersAgree(t *testing.T, b Broker) {
	task := b.Task(t)
	const racers, rounds = 8, 20
	for round := range uint64(rounds) {
		results := make([]stream.PutResult, racers)
		errs := make([]error, racers)
		ctx := within(t)
		var group sync.WaitGroup
		for i := range racers {
			group.Go(func() {
				results[i], errs[i] = b.PutOnce(ctx, task.Claim(stream.Round(round+1)), []byte{byte(i)})
			})
		}
		group.Wait()
		won := 0
		for i, r := range results {
			if errs[i] != nil {
				t.Fatalf("round %d, racer %d: %v", round+1, i, errs[i])
			}
			if !bytes.Equal(r.Standing.Data, results[0].Standing.Data) || r.Standing.Sequence != results[0].Standing.Sequence {
				t.Fatalf("round %d: racers 0 and %d see %+v and %+v", round+1, i, results[0].Standing, r.Standing)
			}
			if r.Ours != bytes.Equal(r.Standing.Data, []byte{byte(i)}) {
				t.Fatalf("round %d, racer %d: %+v", round+1, i, r)
			}
			if r.Ours {
				won++
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d racers won", round+1, won)
		}
	}
}

func putOnceSurvivesLostAck(t *testing.T, b Broker) {
	task := b.Task(t)
	for round := uint64(1); round <= 3; round++ {
		b.LoseAck(t)
		if r := put(t, b, task.Round(stream.Round(round)), []byte("ours")); !r.Ours || r.Standing.Sequence != round {
			t.Fatalf("after a lost acknowledgement: %+v", r)
		}
		if r := put(t, b, task.Round(stream.Round(round)), []byte("other")); r.Ours || string(r.Standing.Data) != "ours" {
			t.Fatalf("another writer after a lost acknowledgement: %+v", r)
		}
	}
}

func putOnceTooLarge(t *testing.T, b Broker) {
	task, ctx := b.Task(t), within(t)
	if _, err := b.PutOnce(ctx, task.Round(1), make([]byte, b.Limits.MaxPayload+4096)); !errors.Is(err,
		stream.ErrRefused) {
		t.Fatalf("put of more than the limit: %v", err)
	}
	if _, err := b.Get(ctx, task.Round(1)); !errors.Is(err, stream.ErrNotFound) {
		t.Fatalf("get after a refused put: %v", err)
	}
	if r := put(t, b, task.Round(1), make([]byte, b.Limits.MaxPayload)); !r.Ours {
		t.Fatal("put of exactly the limit")
	}
}

func putOnceOwnsItsBytes(t *testing.T, b Broker) {
	task := b.Task(t)
	data := []byte("bytes")
	r := put(t, b, task.Batch(1), data)
	data[0], r.Standing.Data[0] = 'x', 'y'
	m := get(t, b, task.Batch(1))
	if string(m.Data) != "bytes" {
		t.Fatalf("stored %q", m.Data)
	}
	m.Data[0] = 'z'
	if m := get(t, b, task.Batch(1)); string(m.Data) != "bytes" {
		t.Fatalf("stored %q", m.Data)
	}
}

func getAndLatest(t *testing.T, b Broker) {
	task, ctx := b.Task(t), within(t)
	if _, err := b.Get(ctx, task.Round(1)); !errors.Is(err, stream.ErrNotFound) {
		t.Fatalf("get of nothing: %v", err)
	}
	for _, pattern := range []string{task.Rounds(), task.Opens(7)} {
		if _, err := b.Latest(ctx, pattern); !errors.Is(err, stream.ErrNotFound) {
			t.Fatalf("latest of nothing: %v", err)
		}
	}
	put(t, b, task.Task(), []byte("task"))
	for r := uint64(1); r <= 12; r++ {
		put(t, b, task.Round(stream.Round(r)), []byte{byte(r)})
	}
	put(t, b, task.End(), []byte("end"))
	put(t, b, task.Open(7, 1), []byte("open 7 1"))
	put(t, b, task.Open(7, 2), []byte("open 7 2"))
	put(t, b, task.Open(8, 1), []byte("open 8 1"))
	put(t, b, task.Close(7, 2), []byte("close 7 2"))
	if m := get(t, b, task.Round(3)); time.Since(m.Time).Abs() > time.Minute {
		t.Fatalf("get: stored at %v", m.Time)
	}
	if m := get(t, b, task.Round(3)); m.Subject != task.Round(3) || m.Sequence != 4 || !bytes.Equal(m.Data, []byte{3}) {
		t.Fatalf("get: %+v", m)
	}
	for pattern, want := range map[string]string{task.Rounds(): task.Round(12), task.Opens(7): task.Open(7, 2),
		task.Opens(8): task.Open(8, 1)} {
		// A hint may lag, but not for ever; before it has the first message it has none.
		m, err := b.Latest(ctx, pattern)
		for (errors.Is(err, stream.ErrNotFound) || err == nil && m.Subject != want) && ctx.Err() == nil {
			m, err = b.Latest(ctx, pattern)
		}
		if err != nil || m.Subject != want {
			t.Fatalf("latest %s: %+v, %v", pattern, m, err)
		}
	}
	// Data may be empty, and is still there.
	put(t, b, task.Stage(), nil)
	if m := get(t, b, task.Stage()); len(m.Data) != 0 || m.Sequence == 0 {
		t.Fatalf("get of an empty message: %+v", m)
	}
}

func tasksAreIsolated(t *testing.T, b Broker) {
	one, two, ctx := b.Task(t), b.Task(t), within(t)
	put(t, b, one.Round(1), []byte("one"))
	publish(t, b, reports(one, 1, 1, 0, 3))
	if _, err := b.Get(ctx, two.Round(1)); !errors.Is(err, stream.ErrNotFound) {
		t.Fatalf("get in another task: %v", err)
	}
	if _, err := b.Latest(ctx, two.Rounds()); !errors.Is(err, stream.ErrNotFound) {
		t.Fatalf("latest in another task: %v", err)
	}
	nothing(t, b, two, b.Reader(t, two))
	if r := put(t, b, two.Round(1), []byte("two")); !r.Ours || r.Standing.Sequence != 1 {
		t.Fatalf("put in another task: %+v", r)
	}
	// The same message id in two tasks is two messages.
	if acks := publish(t, b, reports(two, 1, 1, 0, 1)); acks[0].Status != stream.Stored || acks[0].Sequence != 1 {
		t.Fatalf("publish in another task: %+v", acks)
	}
}
