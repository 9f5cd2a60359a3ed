package streamtest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// exchangeGoesBothWays: a message reaches the server of the task, with its subject; any number of replies go back to
// the sender and to nobody else, also later; if nobody serves the task, the sender gets an error.
func exchangeGoesBothWays(t *testing.T, b Broker) {
	if b.Exchange == nil {
		return
	}
	task, other := b.Task(t), b.Task(t)
	subject := task.Prepare([stream.InstanceSize]byte{7})
	open := func(ctx context.Context, subject string) (send func([]byte) error, answers chan []byte) {
		t.Helper()
		answers = make(chan []byte, 16)
		send, err := b.Exchange.Exchange(ctx, subject, func(answer []byte) { answers <- answer })
		if err != nil {
			t.Fatal(err)
		}
		return send, answers
	}
	hear := func(answers chan []byte) []byte {
		t.Helper()
		select {
		case a := <-answers:
			return a
		case <-time.After(patience):
			t.Fatal("no answer")
			return nil
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	alone, nobody := open(t.Context(), other.Prepare([stream.InstanceSize]byte{7}))
	must(alone([]byte("is anybody there")))
	if a := hear(nobody); a != nil {
		t.Errorf("%q of a task that nobody serves, want nil", a)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	later := make(chan func([]byte), 16)
	must(b.Exchange.ServeExchange(ctx, task, func(at string, message []byte, reply func([]byte)) {
		reply([]byte(at + " " + string(message[:min(len(message), 9)])))
		later <- reply
	}))
	one, ones := open(t.Context(), subject)
	two, twos := open(t.Context(), subject)
	must(one([]byte("first")))
	if a, want := hear(ones), subject+" first"; string(a) != want {
		t.Errorf("%q, want %q", a, want)
	}
	must(two([]byte("second")))
	if a, want := hear(twos), subject+" second"; string(a) != want {
		t.Errorf("%q, want %q", a, want)
	}
	(<-later)([]byte("late"))
	if a := hear(ones); string(a) != "late" {
		t.Errorf("%q, want a late answer to the first", a)
	}
	large := bytes.Repeat([]byte("l"), b.Limits.MaxPayload/2)
	must(one(large))
	hear(ones)
	<-later
	(<-later)(large)
	if a := hear(ones); !bytes.Equal(a, large) {
		t.Errorf("%d bytes, want %d", len(a), len(large))
	}
	if len(twos) != 0 {
		t.Errorf("%q came to who has not asked", <-twos)
	}
	for _, subject := range []string{task.Join(1, 1), task.Prepares(), "x"} {
		if _, err := b.Exchange.Exchange(t.Context(), subject, func([]byte) {}); !errors.Is(err, stream.ErrRefused) {
			t.Errorf("%s: %v, want it refused", subject, err)
		}
	}
}
