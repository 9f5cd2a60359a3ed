package service

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// Counted records count the looks for the first batch, and can keep wakes away.
type counted struct {
	stream.Records
	looks  atomic.Int64
	watch  func(ctx context.Context) (<-chan stream.Wake, error) // nil: the broker's
	failed atomic.Bool                                           // reads fail
}

func (c *counted) Get(ctx context.Context, subject string) (stream.Message, error) {
	if subject == name.Batch(1) {
		if c.looks.Add(1); c.failed.Load() {
			return stream.Message{}, errors.New("away")
		}
	}
	return c.Records.Get(ctx, subject)
}

func (c *counted) Watch(ctx context.Context, task stream.Task) (<-chan stream.Wake, error) {
	if c.watch != nil {
		return c.watch(ctx)
	}
	return c.Records.Watch(ctx, task)
}

// TestRest: while nobody reports the learner looks rarely; the Close after a batch wakes it at once, and a batch whose
// wake was lost is found within Rest. Without wakes, and where reads fail, it looks as often as Poll.
func TestRest(t *testing.T) {
	const idle = 30 * time.Minute
	people := newCast(t)
	for _, c := range []struct {
		what        string
		closes      bool
		watch       func(ctx context.Context) (<-chan stream.Wake, error)
		failed      bool
		least, most int           // looks while idle
		late        time.Duration // after the batch was put, at most
	}{
		{what: "a batch and its Close", closes: true, least: int(idle / (15 * time.Second)),
			most: 2 * int(idle/(15*time.Second)) * 5 / 4},
		{what: "a lost wake", least: int(idle / (15 * time.Second)), most: 2 * int(idle/(15*time.Second)) * 5 / 4,
			late: 15 * time.Second},
		{what: "no wakes", watch: func(context.Context) (<-chan stream.Wake, error) { return nil, errors.New("none") },
			least: int(idle / time.Second), most: 2*int(idle/time.Second) + 2, late: time.Second},
		{what: "wakes that ended", watch: func(context.Context) (<-chan stream.Wake, error) {
			ended := make(chan stream.Wake)
			close(ended)
			return ended, nil
		}, least: int(idle / time.Second), most: 2*int(idle/time.Second) + 2, late: time.Second},
		{what: "reads that fail", failed: true, least: int(idle / time.Second), most: 2*int(idle/time.Second) + 2,
			late: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, people, 4)
			records := &counted{Records: w.broker, watch: c.watch}
			records.failed.Store(c.failed)
			ctx, stop := context.WithCancel(t.Context())
			var applied time.Time
			config := w.config()
			config.Records, config.Rest = records, 0
			config.Observer.Applied = func(Applied) { applied = time.Now(); stop() }
			over := make(chan error, 1)
			go func() { over <- w.new(config).Run(ctx) }()
			round, hash, ok := w.announced(ctx, 1)
			if !ok {
				t.Fatalf("%s: no round", c.what)
			}
			time.Sleep(idle)
			if n := int(records.looks.Load()); n < c.least || n > c.most {
				t.Errorf("%s: %d looks in %v, want %d to %d", c.what, n, idle, c.least, c.most)
			}
			records.failed.Store(false)
			since := time.Now()
			w.put(ctx, name.Batch(1), w.sign(w.stage, w.batch(round, hash, cohort)))
			if c.closes {
				w.put(ctx, name.Close(1, 1), w.sign(w.stage, &wire.Close{Version: stream.Version, TaskHash: round.TaskHash,
					Round: 1, Attempt: 1,
					ManifestHash: hash[:], BatchHash: hash[:]}))
			}
			if err := <-over; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", c.what, err)
			}
			if late := applied.Sub(since); applied.IsZero() || late > c.late {
				t.Errorf("%s: applied %v after it stood, want %v at most", c.what, late, c.late)
			}
		})
	}
}
