package streamtest

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/retention"
)

// Broker is one broker under test.
type Broker struct {
	stream.Records
	stream.ReportWriter
	// Places are both ends of requests for places.
	Places interface {
		stream.PlaceAsker
		stream.PlaceServer
	}
	// Exchange are both ends of the exchange of two operators; nil: a port that only devices use.
	Exchange interface {
		stream.ExchangeAsker
		stream.ExchangeServer
	}
	// Retention is the administrator's end.
	Retention retention.Broker

	// Task makes a task whose streams are ready; every call another one.
	Task func(t *testing.T) stream.Task
	// Reader opens the work queue of a task.
	Reader func(t *testing.T, task stream.Task) stream.ReportReader
	// Limits holds the limits of the broker.
	Limits stream.Limits
	// Redeliver makes un-acknowledged reports come back, at once or as time passes.
	Redeliver func(t *testing.T, task stream.Task)
	// LoseAck makes the next write's acknowledgement not arrive, though the write is stored.
	LoseAck func(t *testing.T)
	// Settle is the time that a Fetch must wait to be sure that nothing comes, after Redeliver.
	Settle time.Duration
	// Unwatched reports that a write of a subject wakes nobody here, which a device's port need not; nil: all wake.
	Unwatched func(subject string) bool
	// MaxReportBytes is the limit on the stored reports of each task, a few MiB.
	MaxReportBytes int
	// MaxPerSubject is the limit on the stored reports of each attempt, a few hundred more than 2000.
	MaxPerSubject int
}

// patience bounds the time that a test waits for a required event; no test waits that long on a correct
// broker.
const patience = 20 * time.Second

// perReport is the time that a publish has beside patience for each of its reports.
const perReport = 50 * time.Millisecond

// Run runs the suite, its tests in parallel; open makes a fresh broker, or a connection of its own to a shared one, and
// registers its clean-up.
func Run(t *testing.T, open func(t *testing.T) Broker) {
	tests := []struct {
		name string
		run  func(t *testing.T, b Broker)
	}{
		{"PutOnceStands", putOnceStands},
		{"PutOnceRacersAgree", putOnceRacersAgree},
		{"PutOnceSurvivesLostAck", putOnceSurvivesLostAck},
		{"PutOnceTooLarge", putOnceTooLarge},
		{"PutOnceOwnsItsBytes", putOnceOwnsItsBytes},
		{"GetAndLatest", getAndLatest},
		{"RetentionRemoves", retentionRemoves},
		{"SwapConflicts", swapConflicts},
		{"SwapRacersOneWins", swapRacersOneWins},
		{"WatchWakes", watchWakes},
		{"WatchMerges", watchMerges},
		{"WatchClosesWithContext", watchClosesWithContext},
		{"TasksAreIsolated", tasksAreIsolated},
		{"SubjectsAreChecked", subjectsAreChecked},
		{"CancelledContext", cancelledContext},
		{"PlacesAreAskedAndGiven", placesAreAskedAndGiven},
		{"ExchangeGoesBothWays", exchangeGoesBothWays},
		{"PublishAcknowledges", publishAcknowledges},
		{"PublishDuplicate", publishDuplicate},
		{"PublishLostAck", publishLostAck},
		{"PublishTooLarge", publishTooLarge},
		{"PublishFull", publishFull},
		{"PublishFullSubject", publishFullSubject},
		{"QueueDeliversAll", queueDeliversAll},
		{"QueueRedelivers", queueRedelivers},
		{"QueueReadersShare", queueReadersShare},
		{"QueueWaits", queueWaits},
		{"QueuePurges", queuePurges},
		{"QueueOfNothing", queueOfNothing},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // most of a test is waiting for what must not come
			test.run(t, open(t))
		})
	}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// put puts until nothing is unknown, as the contract asks of callers.
func put(t *testing.T, b Broker, subject string, data []byte) stream.PutResult {
	t.Helper()
	ctx := within(t)
	for {
		r, err := b.PutOnce(ctx, subject, data)
		if err == nil {
			return r
		}
		if ctx.Err() != nil || errors.Is(err, stream.ErrRefused) {
			t.Fatalf("put: %v", err)
		}
	}
}

// get reads until something is there: a read may lag.
func get(t *testing.T, b Broker, subject string) stream.Message {
	t.Helper()
	ctx := within(t)
	for {
		m, err := b.Get(ctx, subject)
		if err == nil {
			return m
		}
		if !errors.Is(err, stream.ErrNotFound) {
			t.Fatalf("get: %v", err)
		}
	}
}

func reports(task stream.Task, round, attempt uint64, first, n int) []stream.Outgoing {
	all := make([]stream.Outgoing, n)
	for i := range all {
		r := &all[i]
		r.Subject = task.Report(stream.Round(round), stream.Attempt(attempt))
		binary.BigEndian.PutUint64(r.ID[:], uint64(first+i)+1)
		r.Data = append([]byte(nil), r.ID[:]...)
	}
	return all
}

// publish publishes reports, each of which may be a request of its own: there is more time for many.
func publish(t *testing.T, b Broker, all []stream.Outgoing) []stream.Ack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(len(all))*perReport)
	defer cancel()
	acks, err := b.Publish(ctx, all)
	if err != nil || len(acks) != len(all) {
		t.Fatalf("publish %d: %d acks, %v", len(all), len(acks), err)
	}
	return acks
}

// take fetches until it has n different reports, acknowledging each where ack is set. What comes again because its
// acknowledgement was slow is acknowledged again.
func take(t *testing.T, r stream.ReportReader, n int, ack bool) []stream.Delivery {
	t.Helper()
	ctx := within(t)
	var all []stream.Delivery
	seen := map[uint64]bool{}
	for len(all) < n {
		got, err := r.Fetch(ctx, min(n-len(all), 256), time.Second)
		if err != nil {
			t.Fatalf("fetch after %d of %d: %v", len(all), n, err)
		}
		for _, d := range got {
			if ack {
				if err := d.Ack(); err != nil {
					t.Fatalf("ack: %v", err)
				}
			}
			if !seen[d.Sequence] {
				seen[d.Sequence] = true
				all = append(all, d)
			}
		}
	}
	return all
}

// nothing checks that a queue is empty, unacknowledged reports included.
func nothing(t *testing.T, b Broker, task stream.Task, r stream.ReportReader) {
	t.Helper()
	b.Redeliver(t, task)
	got, err := r.Fetch(within(t), 10, b.Settle)
	if err != nil || len(got) != 0 {
		t.Errorf("%d reports left over, %v", len(got), err)
		for _, d := range got {
			t.Errorf("sequence %d, redelivered %t", d.Sequence, d.Redelivered)
		}
		t.FailNow()
	}
}
