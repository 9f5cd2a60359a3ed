package streamtest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// wake waits for the next wake.
func wake(t *testing.T, ch <-chan stream.Wake, after string) stream.Wake {
	t.Helper()
	select {
	case w, ok := <-ch:
		if !ok {
			t.Fatalf("the watch closed after %s", after)
		}
		return w
	case <-time.After(patience):
		t.Fatalf("no wake after %s", after)
	}
	return stream.Wake{}
}

func watchWakes(t *testing.T, b Broker) {
	task, ctx := b.Task(t), within(t)
	one, err := b.Watch(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.Watch(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range []<-chan stream.Wake{one, two} {
		if w := wake(t, ch, "watching"); w.Subject != "" || w.Data != nil {
			t.Errorf("first wake %q, want the zero Wake", w.Subject)
		}
	}
	for _, subject := range []string{task.Stage(), task.Task(), task.Round(1), task.Open(1, 1), task.Claim(1),
		task.Close(1, 1), task.End(), task.Helper(), task.Join(1, 1), task.Share(1)} {
		put(t, b, subject, []byte("at "+subject))
		if b.Unwatched != nil && b.Unwatched(subject) {
			continue
		}
		for _, ch := range []<-chan stream.Wake{one, two} {
			if w := wake(t, ch, subject); w.Subject != subject || string(w.Data) != "at "+subject {
				t.Errorf("wake %q with %q after a put on %q", w.Subject, w.Data, subject)
			}
		}
	}
	put(t, b, task.Batch(1), []byte("nobody is woken by a batch"))
	large := bytes.Repeat([]byte{7}, b.Limits.MaxPayload)
	put(t, b, task.Round(2), large)
	if w := wake(t, one, "a large round"); w.Subject != task.Round(2) || !bytes.Equal(w.Data, large) {
		t.Errorf("wake %q with %d bytes, want the round with %d", w.Subject, len(w.Data), len(large))
	}
	clear(wake(t, two, "a large round").Data) // the receiver's own
	if m, err := b.Get(ctx, task.Round(2)); err != nil || !bytes.Equal(m.Data, large) {
		t.Errorf("a watcher has changed the record: %v", err)
	}
}

// watchMerges: wakes that nobody takes hold up nobody; what of them is lost leaves a zero Wake.
func watchMerges(t *testing.T, b Broker) {
	task, ctx := b.Task(t), within(t)
	ch, err := b.Watch(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	wake(t, ch, "watching")
	const n = 50
	for r := range stream.Round(n) {
		put(t, b, task.Round(r+1), []byte("x"))
	}
	seen := make(map[string]bool)
	for !seen[""] && len(seen) < n {
		w := wake(t, ch, "many rounds")
		if seen[w.Subject] {
			t.Errorf("%q twice", w.Subject)
		}
		seen[w.Subject] = true
	}
	if len(seen) > n/2 {
		t.Errorf("%d wakes waited for a watcher", len(seen))
	}
}

func watchClosesWithContext(t *testing.T, b Broker) {
	task := b.Task(t)
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := b.Watch(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	end := time.After(patience)
	for {
		select {
		case _, ok := <-ch:
			if !ok {
				put(t, b, task.Round(1), []byte("nobody watches"))
				return
			}
		case <-end:
			t.Fatal("the watch did not close")
		}
	}
}

func cancelledContext(t *testing.T, b Broker) {
	task := b.Task(t)
	reader := b.Reader(t, task)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := map[string]func() error{
		"PutOnce": func() error { _, err := b.PutOnce(ctx, task.Round(1), []byte("x")); return err },
		"Get":     func() error { _, err := b.Get(ctx, task.Round(1)); return err },
		"Latest":  func() error { _, err := b.Latest(ctx, task.Rounds()); return err },
		"Swap":    func() error { _, err := b.Swap(ctx, task.Lease(), 0, []byte("x")); return err },
		"Watch":   func() error { _, err := b.Watch(ctx, task); return err },
		"Purge":   func() error { return reader.Purge(ctx, 1) },
		"Queue":   func() error { _, err := reader.Queue(ctx); return err },
		"Fetch":   func() error { _, err := reader.Fetch(ctx, 1, time.Minute); return err },
		"Publish": func() error {
			acks, err := b.Publish(ctx, reports(task, 1, 1, 0, 2))
			if len(acks) != 2 || acks[0].Status != stream.Unknown || acks[1].Status != stream.Unknown {
				t.Errorf("publish: %v", acks)
			}
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A context that ends while Fetch waits ends the wait.
	ctx, cancel = context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := reader.Fetch(ctx, 1, time.Hour)
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("fetch whose context ended: %v", err)
		}
	case <-time.After(patience):
		t.Error("fetch did not end with its context")
	}
}

func subjectsAreChecked(t *testing.T, b Broker) {
	task, ctx := b.Task(t), within(t)
	calls := map[string]func(subject string) error{
		"PutOnce": func(s string) error { _, err := b.PutOnce(ctx, s, []byte("x")); return err },
		"Get":     func(s string) error { _, err := b.Get(ctx, s); return err },
		"Latest":  func(s string) error { _, err := b.Latest(ctx, s); return err },
		"Swap":    func(s string) error { _, err := b.Swap(ctx, s, 0, []byte("x")); return err },
		"Publish": func(s string) error { _, err := b.Publish(ctx, []stream.Outgoing{{Subject: s}}); return err },
	}
	wrong := map[string][]string{
		"PutOnce": {task.Lease(), task.Report(1, 1), task.Rounds()},
		"Get":     {task.Report(1, 1), task.Rounds()},
		"Latest":  {task.Round(1), task.Reports(), "panlearn." + string(task) + ".open.*.*", "panlearn.*.round.*"},
		"Swap":    {task.Round(1), task.Report(1, 1)},
		"Publish": {task.Round(1), task.Reports()},
	}
	for name, subjects := range wrong {
		for _, subject := range append(subjects, "", "elsewhere", "panlearn", "panlearn..round.1", task.Round(1)+".",
			task.Round(0)) {
			if err := calls[name](subject); !errors.Is(err, stream.ErrRefused) {
				t.Errorf("%s on %q: %v", name, subject, err)
			}
		}
	}
	if _, err := b.Watch(ctx, "no.task"); !errors.Is(err, stream.ErrRefused) {
		t.Errorf("watch of a task that cannot be: %v", err)
	}
}
