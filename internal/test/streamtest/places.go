package streamtest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/panlearn/panlearn/stream"
)

// placesAreAskedAndGiven: a request comes to who serves the task, with its subject, and the answer goes back; nil
// leaves it without one, and so does nobody.
func placesAreAskedAndGiven(t *testing.T, b Broker) {
	task, other := b.Task(t), b.Task(t)
	serve := func(ctx context.Context, of stream.Task, answer func(string, []byte) []byte) {
		t.Helper()
		if err := b.Places.ServePlaces(ctx, of, answer); err != nil {
			t.Fatal(err)
		}
	}
	quiet := t.Context()
	serve(quiet, task, func(string, []byte) []byte { return nil }) // a process without the lease
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	serve(ctx, task, func(subject string, request []byte) []byte {
		return append([]byte(subject+" "), request...)
	})
	got, err := b.Places.Place(within(t), task.Place(3, 2), []byte("two"))
	if want := task.Place(3, 2) + " two"; err != nil || string(got) != want {
		t.Errorf("%q, %v: want %q", got, err, want)
	}
	if got, err := b.Places.Place(within(t), other.Place(3, 2), []byte("two")); err == nil {
		t.Errorf("%q of a task that nobody serves", got)
	}
	for _, subject := range []string{task.Report(1, 1), task.Places(), task.Round(1), "x"} {
		if _, err := b.Places.Place(within(t), subject, nil); !errors.Is(err, stream.ErrRefused) {
			t.Errorf("%s: %v, want it refused", subject, err)
		}
	}
	large := bytes.Repeat([]byte{7}, 1000)
	if got, err := b.Places.Place(within(t), task.Place(1, 1), large); err != nil || !bytes.HasSuffix(got, large) {
		t.Errorf("%d bytes, %v: want the request back", len(got), err)
	}
}
