package natsjs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

// putPatience is for how many ack timeouts PutOnce tries before it leaves the retry to its caller.
const putPatience = 4

// PutOnce implements stream.Records.
func (c *Conn) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	task, s, err := stream.CheckPut(subject)
	if err != nil {
		return stream.PutResult{}, err
	}
	pause, start := firstPause, time.Now()
	for reads := false; ; {
		sequence, err := c.put(ctx, task.Name(s), subject, 0, data)
		if err == nil {
			standing := stream.Message{Subject: subject, Sequence: sequence, Data: bytes.Clone(data)}
			return stream.PutResult{Ours: true, Standing: standing}, nil
		}
		if errors.Is(err, stream.ErrRefused) {
			return stream.PutResult{}, fmt.Errorf("put %s: %w", subject, err)
		}
		// Nothing found decides nothing, even after a conflict: the replica that answered may not have seen it yet, or the
		// write that was in our way ended with its leader. Only another put decides.
		standing, getErr := c.Get(ctx, subject)
		if getErr == nil {
			return stream.PutResult{Ours: bytes.Equal(standing.Data, data), Standing: standing}, nil
		}
		if reads = reads || errors.Is(getErr, stream.ErrNotFound); reads {
			err = unwritten(err)
		}
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return stream.PutResult{}, fmt.Errorf("put %s: %w", subject, &lateError{explain(err), ctx.Err()})
		case ctx.Err() != nil:
			return stream.PutResult{}, fmt.Errorf("put %s: %w", subject, errors.Join(ctx.Err(), err))
		}
		if time.Since(start) > putPatience*c.config.AckTimeout {
			return stream.PutResult{}, fmt.Errorf("put %s: %w", subject, explain(err))
		}
		pause = sleep(ctx, pause)
	}
}

// Swap implements stream.Records.
func (c *Conn) Swap(ctx context.Context, subject string, expected uint64, data []byte) (uint64, error) {
	task, s, err := stream.CheckSwap(subject)
	if err != nil {
		return 0, err
	}
	sequence, err := c.put(ctx, task.Name(s), subject, expected, data)
	switch {
	case conflict(err):
		return 0, fmt.Errorf("swap %s: %w (%w)", subject, stream.ErrConflict, err)
	case errors.Is(err, errNoAnswer):
		if _, getErr := c.Get(ctx, subject); getErr == nil || errors.Is(getErr, stream.ErrNotFound) {
			err = unwritten(err)
		}
		fallthrough
	case err != nil:
		return 0, fmt.Errorf("swap %s: %w", subject, explain(err))
	}
	return sequence, nil
}

// put writes where the last sequence of the subject is expected.
func (c *Conn) put(ctx context.Context, name, subject string, expected uint64, data []byte) (uint64, error) {
	if limit := c.Limits().MaxPayload; len(data) > limit && c.Connected() {
		return 0, fmt.Errorf("%w: %d bytes, the broker takes %d", stream.ErrRefused, len(data), limit)
	}
	within := c.config.AckTimeout
	if end, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(end)/2) // a read afterwards has the other half
	}
	wait, cancel := c.requests.askWithin(ctx, subject, within)
	defer cancel()
	ack, err := c.js.Publish(wait, subject, data, jetstream.WithExpectLastSequencePerSubject(expected),
		jetstream.WithExpectStream(name))
	if err != nil {
		err = c.requests.outcome(ctx, wait, err)
		if final := refused(explain(err)); errors.Is(final, stream.ErrRefused) {
			return 0, final
		}
		return 0, err
	}
	if ack.Duplicate {
		return 0, errors.New("the broker says duplicate of a message without an id")
	}
	return ack.Sequence, nil
}

// directGet is the request subject of a direct get of the last message on a subject, which is in the request's
// subject: permissions of devices are given by it.
const directGet = "$JS.API.DIRECT.GET."

// Get implements stream.Records.
func (c *Conn) Get(ctx context.Context, subject string) (stream.Message, error) {
	task, s, err := stream.CheckGet(subject)
	if err != nil {
		return stream.Message{}, err
	}
	m, err := c.last(ctx, task.Name(s), subject)
	if err == nil && m.Subject != subject {
		err = fmt.Errorf("the broker answered with subject %q", m.Subject)
	}
	if err != nil {
		return stream.Message{}, fmt.Errorf("get %s: %w", subject, err)
	}
	return m, nil
}

// Latest implements stream.Records.
func (c *Conn) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	task, s, err := stream.CheckLatest(pattern)
	if err != nil {
		return stream.Message{}, err
	}
	m, err := c.last(ctx, task.Name(s), pattern)
	if err != nil {
		return stream.Message{}, fmt.Errorf("latest %s: %w", pattern, err)
	}
	return m, nil
}

func (c *Conn) last(ctx context.Context, name, subject string) (stream.Message, error) {
	if err := ctx.Err(); err != nil {
		return stream.Message{}, err
	}
	request := directGet + name + "." + subject
	wait, cancel := c.requests.ask(ctx, request)
	defer cancel()
	answer, err := c.nc.RequestWithContext(wait, request, nil)
	if err != nil {
		return stream.Message{}, refused(explain(c.requests.outcome(ctx, wait, err)))
	}
	return directAnswer(answer)
}

// directAnswer reads the headers of a direct get's answer; they come from a peer.
func directAnswer(answer *nats.Msg) (stream.Message, error) {
	switch status := answer.Header.Get("Status"); status {
	case "":
	case "404":
		return stream.Message{}, stream.ErrNotFound
	default:
		return stream.Message{}, fmt.Errorf("direct get: status %q", status)
	}
	subject := answer.Header.Get(jetstream.SubjectHeader)
	if _, err := stream.ParseSubject(subject); err != nil {
		return stream.Message{}, fmt.Errorf("direct get: %w", err)
	}
	sequence, err := strconv.ParseUint(answer.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil || sequence == 0 {
		return stream.Message{}, errors.New("direct get: no sequence in the answer")
	}
	stored, _ := time.Parse(time.RFC3339Nano, answer.Header.Get(jetstream.TimeStampHeaer)) // else it is not known
	return stream.Message{Subject: subject, Sequence: sequence, Data: answer.Data, Time: stored}, nil
}
