package memory

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// Publish implements stream.ReportWriter.
func (b *Broker) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks := make([]stream.Ack, len(reports))
	if err := b.enter(ctx, "publish", 0); err != nil {
		return acks, err
	}
	defer b.mu.Unlock()
	var touched *queue
	for i, r := range reports {
		task, _, err := stream.CheckPublish(r.Subject)
		if err != nil {
			return acks, err
		}
		q := b.tenant(task).queue
		acks[i] = b.publish(q, r)
		if touched != nil && touched != q {
			touched.changed()
		}
		touched = q
	}
	if touched != nil {
		touched.changed()
	}
	return acks, nil
}

func (b *Broker) publish(q *queue, r stream.Outgoing) stream.Ack {
	fault := b.fault(Publish, r.Subject)
	if fault == Lost {
		return stream.Ack{}
	}
	ack := stream.Ack{Status: stream.Stored}
	first, again := q.ids[r.ID]
	size := (&item{subject: r.Subject, data: r.Data}).size()
	switch {
	case len(r.Data) > b.config.MaxPayload:
		ack = stream.Ack{Status: stream.Refused, Cause: "the message is too large", Reason: stream.TooLarge}
	case again && fault != Twice:
		ack = stream.Ack{Status: stream.Duplicate, Sequence: first}
	case b.config.MaxReportBytes > 0 && q.bytes+size > b.config.MaxReportBytes,
		b.config.MaxPerSubject > 0 && q.of[r.Subject] >= b.config.MaxPerSubject:
		ack = stream.Ack{Status: stream.Refused, Cause: "the stream of reports is full", Reason: stream.StreamFull}
	default:
		ack.Sequence = q.store(r.Subject, r.ID, bytes.Clone(r.Data))
		if !again {
			q.remember(r.ID, ack.Sequence)
		}
		if fault == Twice {
			q.store(r.Subject, r.ID, bytes.Clone(r.Data))
		}
	}
	if fault == LostAck || fault == LostAckRead {
		return stream.Ack{}
	}
	return ack
}

// A Reader is the stage's end of one task's work queue. All Readers of a task share one consumer.
type Reader struct {
	broker *Broker
	task   stream.Task
}

// Reader returns the work queue of a task.
func (b *Broker) Reader(task stream.Task) (*Reader, error) {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return nil, fmt.Errorf("reader: %w", err)
	}
	return &Reader{broker: b, task: task}, nil
}

// Fetch implements stream.ReportReader.
func (r *Reader) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	if max < 1 || wait < 0 {
		return nil, fmt.Errorf("fetch: max %d, wait %v: want at least 1 and no negative wait", max, wait)
	}
	end := time.Now().Add(wait)
	for {
		got, changed, next, err := r.take(ctx, max)
		if err != nil || len(got) > 0 {
			return got, err
		}
		until := end
		if !next.IsZero() && next.Before(until) {
			until = next
		}
		left := time.Until(end)
		if left <= 0 {
			return nil, nil
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("fetch: %w", ctx.Err())
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// take returns what can be delivered now, else what to wait for.
func (r *Reader) take(ctx context.Context, max int) (got []stream.Delivery, changed <-chan struct{}, next time.Time,
	err error) {
	b := r.broker
	if err := b.enter(ctx, "fetch", 0); err != nil {
		return nil, nil, time.Time{}, err
	}
	defer b.mu.Unlock()
	q := b.tenant(r.task).queue
	c := &q.consumer
	now, deadline := time.Now(), time.Time{}
	if b.config.AckWait > 0 {
		deadline = now.Add(b.config.AckWait)
		q.takeBack(func(it *item) bool { return !it.deadline.After(now) })
	}
	pick := func(int) int { return 0 }
	if b.config.Shuffle {
		pick = b.rng.IntN
	}
	for len(got) < max && len(c.out) < b.config.MaxAckPending {
		it := c.next(pick, deadline)
		if it == nil {
			break
		}
		fault := b.fault(Deliver, it.subject)
		if fault == Lost {
			continue
		}
		got = append(got, r.delivery(it, it.delivered > 1))
		if fault == Twice && len(got) < max {
			it.delivered++
			got = append(got, r.delivery(it, true))
		}
	}
	for i := range got {
		got[i].Pending = uint64(len(got) - 1 - i + len(c.ready))
	}
	return got, q.waiters, c.nextDeadline(), nil
}

func (r *Reader) delivery(it *item, again bool) stream.Delivery {
	m := stream.Message{Subject: it.subject, Sequence: it.sequence, Data: bytes.Clone(it.data)}
	return stream.Delivery{Message: m, Redelivered: again, Came: it.came, Ack: func() error {
		b := r.broker
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.disconnected {
			return fmt.Errorf("acknowledge: %w", ErrDisconnected)
		}
		if !it.gone && b.fault(Ack, it.subject) != Lost {
			b.remove(b.tenant(r.task).queue, it)
			b.tenant(r.task).queue.changed()
		}
		return nil
	}}
}

// Queue implements stream.ReportReader.
func (r *Reader) Queue(ctx context.Context) (stream.Queue, error) {
	b := r.broker
	if err := b.enter(ctx, "queue", 0); err != nil {
		return stream.Queue{}, err
	}
	defer b.mu.Unlock()
	q := b.tenant(r.task).queue
	return stream.Queue{Messages: uint64(len(q.stored)), Bytes: uint64(q.bytes), MaxBytes: uint64(b.config.MaxReportBytes),
		Next: q.last + 1}, nil
}

// Purge implements stream.ReportReader.
func (r *Reader) Purge(ctx context.Context, before uint64) error {
	b := r.broker
	if err := b.enter(ctx, "purge", 0); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if b.fault(Purge, r.task.Reports()) == Lost {
		return fmt.Errorf("purge reports of %s: %w", r.task, ErrDisconnected)
	}
	q := b.tenant(r.task).queue
	for _, it := range q.stored {
		if it.sequence < before {
			b.remove(q, it)
		}
	}
	q.changed()
	return nil
}
