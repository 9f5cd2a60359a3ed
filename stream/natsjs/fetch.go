package natsjs

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

// Durable is the name of the work queue's consumer.
const Durable = "stage"

// A Reader is the stage's end of one task's work queue: its durable consumer, which all stage processes share.
type Reader struct {
	conn     *Conn
	task     stream.Task
	consumer jetstream.Consumer
	most     atomic.Int64 // reports that the link carries in the time that callers have; 0: no bound is known
}

// Reader returns the work queue of a task, whose streams must be there. While their cluster has no leader it waits.
func (c *Conn) Reader(ctx context.Context, task stream.Task) (r *Reader, err error) {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return nil, fmt.Errorf("reader: %w: %w", stream.ErrRefused, err)
	}
	err = c.Retry(ctx, "reader of "+string(task), Leaderless, func() error {
		r, err = c.reader(ctx, task)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reader of %s: %w", task, err)
	}
	return r, nil
}

func (c *Conn) reader(ctx context.Context, task stream.Task) (*Reader, error) {
	name := task.Name(stream.Reports)
	wait, cancel := c.ask(ctx, apiConsumerInfo+name+"."+Durable)
	defer cancel()
	consumer, err := c.js.Consumer(wait, name, Durable)
	if err != nil {
		return nil, explain(c.outcome(ctx, wait, err))
	}
	return &Reader{conn: c, task: task, consumer: consumer}, nil
}

// Fetch implements stream.ReportReader. It takes what is there; where nothing is, it waits for one report and then
// takes what has come with it.
func (r *Reader) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	if max < 1 || wait < 0 {
		return nil, fmt.Errorf("fetch: max %d, wait %v: want at least 1 and no negative wait", max, wait)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	got, err := r.available(ctx, max)
	if len(got) > 0 || err != nil || wait < time.Millisecond {
		return got, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	batch, err := r.consumer.Fetch(1, jetstream.FetchContext(waiting))
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	got, err = r.collect(ctx, batch)
	if ctx.Err() != nil && len(got) == 0 {
		return nil, r.failed(ctx, ctx.Err())
	}
	if len(got) == 0 || max == 1 {
		if waiting.Err() != nil {
			err = nil // the wait is over
		}
		return got, err
	}
	more, _ := r.available(ctx, max-1) // what failed here fails again, and got must reach the caller
	return append(got, more...), nil
}

// available asks for what is there. Of a fetch that a slow link does not deliver in time the rest is sent in vain, and comes
// again only after AckWait: so the next one asks for half, and grows again where all came.
func (r *Reader) available(ctx context.Context, max int) ([]stream.Delivery, error) {
	n := max
	if most := int(r.most.Load()); most > 0 {
		n = min(n, most)
	}
	batch, err := r.consumer.FetchNoWait(n)
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	got, err := r.collect(ctx, batch)
	switch {
	case ctx.Err() != nil:
		r.most.Store(int64(n+1) / 2)
	case len(got) == n && n < max:
		r.most.Store(2 * int64(n))
	}
	return got, err
}

// collect returns what came; an error that ended the batch early is returned only where nothing came. A slow link may
// take longer than the caller has: then what is still on its way comes again later.
func (r *Reader) collect(ctx context.Context, batch jetstream.MessageBatch) ([]stream.Delivery, error) {
	var got []stream.Delivery
	for open := true; open; {
		var m jetstream.Msg
		select {
		case m, open = <-batch.Messages():
		case <-ctx.Done():
			if len(got) == 0 {
				return nil, r.failed(ctx, ctx.Err())
			}
			return got, nil
		}
		if !open {
			break
		}
		meta, err := m.Metadata()
		if err != nil {
			continue // not a delivery
		}
		got = append(got, stream.Delivery{
			Message:     stream.Message{Subject: m.Subject(), Sequence: meta.Sequence.Stream, Data: m.Data()},
			Redelivered: meta.NumDelivered > 1,
			Pending:     meta.NumPending,
			Ack:         m.Ack,
		})
	}
	if err := batch.Error(); err != nil && len(got) == 0 {
		return nil, r.failed(ctx, err)
	}
	return got, nil
}

func (r *Reader) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("fetch reports of %s: %w", r.task, explain(err))
}

// Purge implements stream.ReportReader.
func (r *Reader) Purge(ctx context.Context, subject string) error {
	task, _, err := stream.CheckPurge(subject)
	if err != nil {
		return err
	}
	if task != r.task {
		return fmt.Errorf("purge %s: %w: the reader is of task %s", subject, stream.ErrRefused, r.task)
	}
	var answer struct{}
	body := map[string]string{"filter": subject}
	if err := r.conn.Request(ctx, apiStreamPurge+task.Name(stream.Reports), body, &answer); err != nil {
		return fmt.Errorf("purge %s: %w", subject, err)
	}
	return nil
}
