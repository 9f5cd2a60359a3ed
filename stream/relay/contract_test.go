package relay_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/streamtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relayclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// device is a device's port over a relay, and all else of a broker beside it.
type device struct {
	*memory.Broker
	client *relayclient.Client
}

func (d device) Get(ctx context.Context, subject string) (stream.Message, error) {
	if a, err := stream.ParseSubject(subject); err == nil && (a.Verb == "batch" || a.Verb == "stage") {
		return d.Broker.Get(ctx, subject) // no device reads these
	}
	return d.client.Get(ctx, subject)
}

func (d device) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	return d.client.Latest(ctx, pattern)
}

func (d device) Watch(ctx context.Context, task stream.Task) (<-chan stream.Wake, error) {
	return d.client.Watch(ctx, task)
}

// places are asked for over a relay, and given at the broker.
type places struct {
	stream.PlaceAsker
	stream.PlaceServer
}

// TestContract: a client of a relay keeps the contract of a device's ports.
func TestContract(t *testing.T) {
	streamtest.Run(t, func(t *testing.T) streamtest.Broker {
		const maxBytes, perSubject, payload = 4 << 20, 2200, 256 << 10
		b, err := memory.New(memory.Config{MaxReportBytes: maxBytes, MaxPerSubject: perSubject, MaxPayload: payload})
		if err != nil {
			t.Fatal(err)
		}
		client := serve(t, b, func(c *relay.Config) { c.Tasks = []stream.Task{"task-1", "task-2", "task-3"} },
			func(r *relay.Relay) { r.AnySize(2 * payload) })
		var tasks atomic.Int64
		name := func(*testing.T) stream.Task { return stream.Task(fmt.Sprintf("task-%d", tasks.Add(1))) }
		return streamtest.Broker{
			Records: device{b, client}, ReportWriter: client, Places: places{client, b}, Retention: b, Limits: b.Limits(), Settle: 50 * time.Millisecond,
			MaxReportBytes: maxBytes, MaxPerSubject: perSubject, Task: name,
			Reader: func(t *testing.T, task stream.Task) stream.ReportReader {
				r, err := b.Reader(task)
				if err != nil {
					t.Fatal(err)
				}
				return r
			},
			Redeliver: func(_ *testing.T, task stream.Task) { b.Redeliver(task) },
			LoseAck: func(*testing.T) {
				var done atomic.Bool
				b.Inject(func(op memory.Op, _ string) memory.Fault {
					if (op == memory.Publish || op == memory.Put) && !done.Swap(true) {
						return memory.LostAck
					}
					return memory.None
				})
			},
			Unwatched: func(subject string) bool {
				_, s, _ := stream.StreamOf(subject)
				return s == stream.Joins || strings.HasSuffix(subject, ".stage")
			},
		}
	})
}

// serve serves a relay over a broker, and returns a client of it.
func serve(t *testing.T, b relay.Broker, change func(*relay.Config), then func(*relay.Relay)) *relayclient.Client {
	t.Helper()
	c := relay.Config{Broker: b, PerAddress: 1000}
	change(&c)
	r, err := relay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	then(r)
	server := httptest.NewServer(r)
	client, err := relayclient.New(relayclient.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		r.Close()
		server.Close()
	})
	return client
}
