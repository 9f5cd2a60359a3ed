package natsjs

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

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
	wait, cancel := c.ask(ctx, request)
	defer cancel()
	answer, err := c.nc.RequestWithContext(wait, request, nil)
	if err != nil {
		return stream.Message{}, refused(explain(c.outcome(ctx, wait, err)))
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
	return stream.Message{Subject: subject, Sequence: sequence, Data: answer.Data}, nil
}
