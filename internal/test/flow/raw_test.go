package flow

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// A raw broker is what everything is compared with: nats.go on a stream that is set up like that of reports,
// without message ids; one connection publishes, another consumes and acknowledges.
type raw struct {
	writer   jetstream.JetStream
	consumer jetstream.Consumer
	reading  *nats.Conn
}

const rawTask stream.Task = "raw"

func newRaw(b *testing.B, url string, memory bool) raw {
	b.Helper()
	provision, err := natsjs.Connect(natsjs.ConnectConfig{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	defer provision.Close()
	if err := natsadmin.Provision(b.Context(), provision, rawTask, natsadmin.Options{MemoryReports: memory}); err != nil {
		b.Fatal(err)
	}
	connect := func() *nats.Conn {
		c, err := nats.Connect(url)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		return c
	}
	r := raw{reading: connect()}
	// As many publishes under way as natsjs allows.
	if r.writer, err = jetstream.New(connect(),
		jetstream.WithPublishAsyncMaxPending(natsjs.DefaultMaxPending)); err != nil {
		b.Fatal(err)
	}
	reader, err := jetstream.New(r.reading)
	if err != nil {
		b.Fatal(err)
	}
	if r.consumer, err = reader.Consumer(b.Context(), rawTask.Name(stream.Reports), natsjs.Durable); err != nil {
		b.Fatal(err)
	}
	return r
}

// carry publishes n messages of some bytes while it consumes them, and returns how long it took from the first
// publish to the last acknowledgement.
func (r raw) carry(n, size int) (time.Duration, error) {
	taken, left := make(chan struct{}), n
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
		if _, err := r.writer.PublishAsync(rawTask.Report(1, 1), data, jetstream.WithStallWait(time.Minute)); err != nil {
			return 0, err
		}
	}
	for what, done := range map[string]<-chan struct{}{"published": r.writer.PublishAsyncComplete(), "taken": taken} {
		select {
		case <-done:
		case <-time.After(time.Minute):
			return 0, fmt.Errorf("raw broker: not all messages were %s within a minute", what)
		}
	}
	return time.Since(begun), r.reading.Flush()
}
