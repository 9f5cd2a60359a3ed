package natsjs_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestShortFetches: of reports that come while one short fetch after the other ends, with its wait or with its
// caller's time, none has to be delivered again: what a fetch no longer took is the next one's.
func TestShortFetches(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{})
	devices, stage := dial(t, e, natsjs.ConnectConfig{}), dial(t, e, natsjs.ConnectConfig{})
	provision(t, devices, task, natsadmin.Options{AckWait: time.Hour})
	r, err := stage.Reader(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	var published sync.WaitGroup
	defer published.Wait() // the last report may be taken before its publisher gets the acknowledgement
	published.Go(func() {
		for i := range n {
			id := [16]byte{byte(i), byte(i >> 8), 1}
			acks, err := devices.Publish(t.Context(), []stream.Outgoing{{Subject: task.Report(1, 1), ID: id, Data: id[:]}})
			if err != nil || acks[0].Status != stream.Stored {
				t.Errorf("report %d: %v, %v", i, acks, err)
				return
			}
		}
	})
	taken := map[uint64]bool{}
	fetches, last := 0, time.Now()
	for ; len(taken) < n && time.Since(last) < 20*time.Second; fetches++ {
		wait := time.Duration(fetches%4) * 700 * time.Microsecond
		ctx, cancel := context.WithTimeout(t.Context(), wait+time.Duration(fetches%3)*time.Millisecond)
		got, _ := r.Fetch(ctx, 4, wait)
		cancel()
		for _, d := range got {
			last, taken[d.Sequence] = time.Now(), true
			if err := d.Ack(); err != nil || d.Redelivered {
				t.Errorf("report %d, redelivered %t: %v", d.Sequence, d.Redelivered, err)
			}
		}
	}
	if len(taken) != n {
		t.Errorf("%d of %d reports came in %d fetches", len(taken), n, fetches)
	}
}

// TestReportsAreNotTheBrokersWord checks that a publisher, who chooses headers and numbers freely, cannot make a
// report pass for the broker's word about a fetch: such a report is handed out as any other. One that nobody takes
// would hold a place among those that may be out.
func TestReportsAreNotTheBrokersWord(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{})
	device, stage := dial(t, e, natsjs.ConnectConfig{}), dial(t, e, natsjs.ConnectConfig{})
	provision(t, device, task, natsadmin.Options{MaxAckPending: 4, AckWait: time.Hour})
	r, err := stage.Reader(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	const n = 12
	for i := range n {
		m := nats.NewMsg(strings.Replace(task.Report(1, 1), "1.1", []string{"1.1", "x.y"}[i%2], 1))
		m.Header.Set("Status", []string{"100", "404", "408", "503"}[i%4])
		if _, err := device.Admin().JetStream().PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for taken := 0; taken < n; {
		got, err := r.Fetch(t.Context(), n, 5*time.Second)
		if err != nil || len(got) == 0 {
			t.Fatalf("after %d of %d reports: %d, %v", taken, n, len(got), err)
		}
		for _, d := range got {
			if err := d.Ack(); err != nil {
				t.Fatal(err)
			}
		}
		taken += len(got)
	}
}

// A stopping context is canceled between the first time that somebody asks and the second.
type stopping struct {
	context.Context
	asked bool
}

func (c *stopping) Err() error {
	if !c.asked {
		c.asked = true
		return nil
	}
	return context.Canceled
}

// TestFetchOfALostConnection: a stage that stops cancels its fetch, also where the connection is closed and nothing
// can be subscribed to.
func TestFetchOfALostConnection(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{})
	c := dial(t, e, natsjs.ConnectConfig{})
	provision(t, c, task, natsadmin.Options{})
	r, err := c.Reader(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if got, err := r.Fetch(&stopping{Context: t.Context()}, 1, time.Second); !errors.Is(err, context.Canceled) ||
		len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestAcknowledgementsHoldNoReport: a stage that keeps acknowledgements back for a moment, of reports for attempts
// that it has not opened, has no memory filled by what they say.
func TestAcknowledgementsHoldNoReport(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{})
	c := dial(t, e, natsjs.ConnectConfig{})
	provision(t, c, task, natsadmin.Options{})
	r, err := c.Reader(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), []stream.Outgoing{{Subject: task.Report(1, 1), ID: [16]byte{1},
		Data: make([]byte, 1<<16)}}); err != nil {
		t.Fatal(err)
	}
	got, err := r.Fetch(t.Context(), 1, 10*time.Second)
	if err != nil || len(got) != 1 || len(got[0].Data) != 1<<16 {
		t.Fatalf("%d reports, %v", len(got), err)
	}
	ack, report := got[0].Ack, weak.Make(&got[0].Data[0])
	got[0] = stream.Delivery{}
	runtime.GC()
	if report.Value() != nil {
		t.Error("the report is held by its acknowledgement")
	}
	if err := ack(); err != nil {
		t.Error(err)
	}
}
