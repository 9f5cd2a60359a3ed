package streamtest

import (
	"testing"

	"github.com/panlearn/panlearn/stream"
)

func publishAcknowledges(t *testing.T, b Broker) {
	task := b.Task(t)
	if acks := publish(t, b, nil); len(acks) != 0 {
		t.Fatalf("acks for nothing: %v", acks)
	}
	acks := append(publish(t, b, reports(task, 1, 1, 0, 2000)), publish(t, b, reports(task, 1, 2, 2000, 500))...)
	seen := map[uint64]bool{}
	for i, a := range acks {
		if a.Status != stream.Stored || a.Sequence == 0 || a.Sequence > uint64(len(acks)) || seen[a.Sequence] {
			t.Fatalf("ack %d of %d: %+v", i, len(acks), a)
		}
		seen[a.Sequence] = true
	}
}

func publishDuplicate(t *testing.T, b Broker) {
	task := b.Task(t)
	r := b.Reader(t, task)
	sent := reports(task, 1, 1, 0, 20)
	first := publish(t, b, sent)
	// Also after the report is gone, and on another attempt's subject.
	take(t, r, 10, true)
	sent[0].Subject = task.Report(1, 2)
	for i, a := range publish(t, b, sent) {
		if a.Status != stream.Duplicate || a.Sequence != first[i].Sequence {
			t.Fatalf("retry of report %d at %+v: %+v", i, first[i], a)
		}
	}
	take(t, r, 10, true)
	nothing(t, b, task, r)
}

func publishLostAck(t *testing.T, b Broker) {
	task := b.Task(t)
	r, ctx := b.Reader(t, task), within(t)
	sent := reports(task, 1, 1, 0, 1)
	b.LoseAck(t)
	acks, err := b.Publish(ctx, sent)
	if len(acks) != 1 || acks[0].Status != stream.Unknown || acks[0].Sequence != 0 {
		t.Fatalf("publish without an acknowledgement: %+v, %v", acks, err)
	}
	for acks[0].Status == stream.Unknown && ctx.Err() == nil {
		acks, _ = b.Publish(ctx, sent)
	}
	if acks[0].Status != stream.Duplicate || acks[0].Sequence != 1 {
		t.Fatalf("retry: %+v", acks)
	}
	take(t, r, 1, true)
	nothing(t, b, task, r)
}

func publishTooLarge(t *testing.T, b Broker) {
	task := b.Task(t)
	sent := reports(task, 1, 1, 0, 3)
	sent[0].Data = make([]byte, b.Limits.MaxPayload)
	sent[1].Data = make([]byte, b.Limits.MaxPayload+4096)
	acks := publish(t, b, sent)
	for i, want := range []stream.AckStatus{stream.Stored, stream.Refused, stream.Stored} {
		if acks[i].Status != want {
			t.Errorf("report %d of %d bytes: %+v, want %v", i, len(sent[i].Data), acks[i], want)
		}
	}
}

func publishFull(t *testing.T, b Broker) {
	task := b.Task(t)
	r := b.Reader(t, task)
	const size = 16 << 10 // so that few fill it: each is a request of its own to some brokers
	sent := reports(task, 1, 1, 0, b.MaxReportBytes/size+100)
	for i := range sent {
		sent[i].Data = make([]byte, size)
		sent[i].Subject = task.Report(1, stream.Attempt(i%4+1)) // of which none is full
	}
	stored := map[uint64]bool{}
	var refused stream.Outgoing
	for i, a := range publish(t, b, sent) {
		switch a.Status {
		case stream.Stored:
			stored[a.Sequence] = true
		case stream.Refused:
			refused = sent[i]
		default:
			t.Fatalf("report %d: %+v", i, a)
		}
	}
	if len(stored) == 0 || len(stored) == len(sent) {
		t.Fatalf("%d of %d reports stored in a stream that cannot hold them", len(stored), len(sent))
	}
	// Nothing old was dropped for something new, and room that comes back is used by a retry of the same id.
	for _, d := range take(t, r, len(stored), true) {
		if !stored[d.Sequence] {
			t.Fatalf("sequence %d is there, and was refused", d.Sequence)
		}
	}
	nothing(t, b, task, r)
	if a := publish(t, b, []stream.Outgoing{refused})[0]; a.Status != stream.Stored {
		t.Fatalf("retry of a refused report: %+v", a)
	}
}

func publishFullSubject(t *testing.T, b Broker) {
	task := b.Task(t)
	r := b.Reader(t, task)
	const over = 20
	sent := reports(task, 1, 1, 0, b.MaxPerSubject+over)
	stored := 0
	var refused stream.Outgoing
	for i, a := range publish(t, b, sent) {
		switch a.Status {
		case stream.Stored:
			stored++
		case stream.Refused:
			refused = sent[i]
		default:
			t.Fatalf("report %d: %+v", i, a)
		}
	}
	if stored != b.MaxPerSubject {
		t.Fatalf("%d reports of one attempt are stored, want %d", stored, b.MaxPerSubject)
	}
	// Other attempts have room of their own, and a refused report is taken when its attempt has some again.
	for i, a := range publish(t, b, reports(task, 1, 2, len(sent), over)) {
		if a.Status != stream.Stored {
			t.Errorf("report %d of another attempt: %+v", i, a)
		}
	}
	take(t, r, b.MaxPerSubject+over, true)
	nothing(t, b, task, r)
	if a := publish(t, b, []stream.Outgoing{refused})[0]; a.Status != stream.Stored {
		t.Errorf("retry of a refused report: %+v", a)
	}
}
