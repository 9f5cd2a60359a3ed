package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/admin"
)

// A raw broker is the yardstick: nats.go on a stream that is set up like that of reports, without message ids; one connection
// publishes, another consumes and acknowledges.
type raw struct {
	task     stream.Task
	writer   jetstream.JetStream
	consumer jetstream.Consumer
	conns    [2]*nats.Conn
}

func newRaw(ctx context.Context, l *lab, b *broker, memory bool) (r *raw, err error) {
	l.worlds++
	r = &raw{task: stream.Task(fmt.Sprintf("raw-%d", l.worlds))}
	provision, err := natsjs.Connect(natsjs.ConnectConfig{URL: b.url})
	if err != nil {
		return nil, err
	}
	defer provision.Close()
	if err := admin.Provision(ctx, provision, r.task, admin.Options{MemoryReports: memory}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	for i := range r.conns {
		if r.conns[i], err = nats.Connect(b.url); err != nil {
			return r, err
		}
	}
	// As many publishes under way as natsjs allows.
	if r.writer, err = jetstream.New(r.conns[0], jetstream.WithPublishAsyncMaxPending(natsjs.DefaultMaxPending)); err != nil {
		return r, err
	}
	reader, err := jetstream.New(r.conns[1])
	if err != nil {
		return r, err
	}
	r.consumer, err = reader.Consumer(ctx, r.task.Name(stream.Reports), natsjs.Durable)
	return r, err
}

func (r *raw) close() {
	for _, c := range r.conns {
		if c != nil {
			c.Close()
		}
	}
}

// carry publishes n messages of some bytes while it consumes them, and answers how long it took from the first publish to the last
// acknowledgement.
func (r *raw) carry(ctx context.Context, n, size int) (time.Duration, error) {
	taken := make(chan struct{})
	left := n
	consuming, err := r.consumer.Consume(func(m jetstream.Msg) {
		if m.Ack() == nil {
			if left--; left == 0 {
				close(taken)
			}
		}
	})
	if err != nil {
		return 0, err
	}
	defer func() {
		consuming.Stop()
		<-consuming.Closed()
	}()
	data := make([]byte, size)
	begun := time.Now()
	for range n {
		if _, err := r.writer.PublishAsync(r.task.Report(1, 1), data, jetstream.WithStallWait(time.Minute)); err != nil {
			return 0, err
		}
	}
	select {
	case <-r.writer.PublishAsyncComplete():
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case <-taken:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(time.Minute):
		return 0, errors.New("raw broker: messages are missing")
	}
	return time.Since(begun), r.conns[1].Flush()
}
