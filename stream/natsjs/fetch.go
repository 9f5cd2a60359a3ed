package natsjs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// Durable is the name of the work queue's consumer.
const Durable = "stage"

// A Reader is the stage's end of one task's work queue: its durable consumer, which all stage processes share.
//
// One subscription stays open across fetches. Reports that the broker delivers to a fetch that has just ended go to the
// next one: after their AckWait their round could have closed without them.
type Reader struct {
	conn *Conn
	task stream.Task

	mu     sync.Mutex // held by the Fetch that is under way; guards all below
	inbox  *arrivals  // nil: nobody listens
	last   pull
	number uint64 // of pulls made
}

// Reader returns the work queue of a task. The task's streams must exist; while their cluster has no leader Reader
// waits.
func (c *Conn) Reader(ctx context.Context, task stream.Task) (*Reader, error) {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return nil, fmt.Errorf("reader: %w: %w", stream.ErrRefused, err)
	}
	name := task.Name(stream.Reports)
	err := c.admin.Retry(ctx, "reader of "+string(task), Leaderless, func() error {
		return c.admin.Call(ctx, apiConsumerInfo+name+"."+Durable, func(ctx context.Context) error {
			_, err := c.js.Consumer(ctx, name, Durable)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reader of %s: %w", task, err)
	}
	return &Reader{conn: c, task: task}, nil
}

// Fetch implements stream.ReportReader. It takes the reports that are there; if there are none, it waits for one and
// takes those that came with it. The broker ends the wait. A canceled context ends the subscription, so that another
// process gets later reports; one past its deadline leaves them to the next Fetch.
func (r *Reader) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	if max < 1 || wait < 0 {
		return nil, fmt.Errorf("fetch: max %d, wait %v: want at least 1 and no negative wait", max, wait)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	got, err := r.fetch(ctx, max, wait)
	if errors.Is(ctx.Err(), context.Canceled) {
		r.hangUp()
	}
	if len(got) > 0 || err == nil {
		return got, nil // what failed fails again, and got must reach the caller
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return nil, fmt.Errorf("fetch reports of %s: %w", r.task, explain(err))
}

func (r *Reader) fetch(ctx context.Context, most int, wait time.Duration) (got []stream.Delivery, err error) {
	if err := r.listen(); err != nil {
		return nil, err
	}
	end := time.Now().Add(wait)
	answer, cancel := r.conn.requests.askWithin(ctx, r.next(), wait+r.conn.config.AckTimeout)
	defer cancel()
	burst, stop := context.WithTimeout(answer, max(wait, longestBurst))
	defer stop()
	for asked := false; len(got) < most; {
		until := answer
		switch open, remaining := r.last.open(), time.Until(end); {
		case open && len(got) > 0:
			until = burst
		case open || r.inbox.any():
		case len(got) > 0 || asked && remaining < time.Millisecond:
			return got, nil
		default:
			if err := r.request(most, remaining, asked); err != nil {
				return nil, err
			}
			asked = true
		}
		m, err := r.message(until)
		switch {
		case err == nil:
			d, err := r.last.heed(m)
			if err != nil {
				return got, err
			}
			if d != nil {
				got = append(got, *d)
			}
		case until.Err() == nil && errors.Is(err, context.DeadlineExceeded): // no word of the last request
		case until.Err() == nil: // the subscription is no more
			r.hangUp()
			return got, err
		case ctx.Err() != nil || len(got) > 0:
			return got, err
		default:
			r.last.left = 0
			return nil, r.conn.requests.outcome(ctx, answer, err)
		}
	}
	return got, nil
}

// Queue implements stream.ReportReader.
func (r *Reader) Queue(ctx context.Context) (stream.Queue, error) {
	var answer struct {
		Config struct {
			MaxBytes int64 `json:"max_bytes"`
		} `json:"config"`
		State struct {
			Messages uint64 `json:"messages"`
			Bytes    uint64 `json:"bytes"`
			Last     uint64 `json:"last_seq"`
		} `json:"state"`
	}
	if err := r.conn.admin.Request(ctx, apiStreamInfo+r.task.Name(stream.Reports), struct{}{}, &answer); err != nil {
		return stream.Queue{}, fmt.Errorf("how full the reports of %s are: %w", r.task, err)
	}
	s := answer.State
	return stream.Queue{Messages: s.Messages, Bytes: s.Bytes, MaxBytes: uint64(max(0, answer.Config.MaxBytes)),
		Next: s.Last + 1}, nil
}

// Purge implements stream.ReportReader.
func (r *Reader) Purge(ctx context.Context, before uint64) error {
	if before == 0 { // to the broker it would be no bound
		return nil
	}
	var answer struct{}
	body := map[string]uint64{"seq": before}
	if err := r.conn.admin.Request(ctx, apiStreamPurge+r.task.Name(stream.Reports), body, &answer); err != nil {
		return fmt.Errorf("purge reports of %s: %w", r.task, err)
	}
	return nil
}
