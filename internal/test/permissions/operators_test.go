package permissions

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// exchange sends a message to a helper's instance as a role, and returns the first answer; nil: nobody listens.
func (s *scene) exchange(t *testing.T, role, message string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answers := make(chan []byte, 8)
	send, err := s.conn(t, role).Exchange(ctx, s.task.Prepare([stream.InstanceSize]byte{1}), func(answer []byte) {
		answers <- answer
	})
	if err == nil {
		err = send([]byte(message))
	}
	if err != nil {
		return nil, err
	}
	select {
	case answer := <-answers:
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestOperatorsExchange: the leader's messages reach the helper across accounts, and its replies come back; if no
// helper listens the leader gets an error. Nobody else may send requests, or receive the leader's.
func TestOperatorsExchange(t *testing.T) {
	s := shipped(t).scene(t)
	if answer, err := s.exchange(t, stage, "first"); err != nil || answer != nil {
		t.Errorf("nobody listens, and the leader is told %q, %v", answer, err)
	}
	heard := make(chan string, 64)
	if err := s.conn(t, helper).ServeExchange(t.Context(), s.task, func(_ string, message []byte, reply func([]byte)) {
		heard <- string(message)
		reply([]byte("answer to " + string(message)))
	}); err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{"one", "two"} {
		answer, err := s.exchange(t, stage, message)
		if err != nil || string(answer) != "answer to "+message || <-heard != message {
			t.Errorf("%s is answered by %q, %v", message, answer, err)
		}
	}
	for _, role := range []string{admin, learner, publisher, relay, helper} {
		err := s.conn(t, role).Permissions().MayPublish(t.Context(), s.task.Prepare([stream.InstanceSize]byte{1}))
		if !errors.Is(err, natsjs.ErrDenied) {
			t.Errorf("%s asks the helper: %v, want it denied", role, err)
		}
	}
	for _, role := range []string{admin, learner, stage, publisher, relay} {
		err := s.conn(t, role).Permissions().MaySubscribe(t.Context(), s.task.Prepares())
		if !errors.Is(err, natsjs.ErrDenied) {
			t.Errorf("%s hears the leader: %v, want it denied", role, err)
		}
	}
	if len(heard) != 0 {
		t.Error("a role that may not ask was heard")
	}
}

// TestDevicesWakeToJoins and not to Shares: both are records of one stream, whose wakes the broker sends.
func TestDevicesWakeToJoins(t *testing.T) {
	s := shipped(t).scene(t)
	wakes := map[string]<-chan stream.Wake{}
	for _, role := range []string{stage, publisher} {
		w, err := s.conn(t, role).Watch(t.Context(), s.task)
		if err != nil {
			t.Fatal(err)
		}
		<-w
		wakes[role] = w
	}
	next := func(role string) string {
		select {
		case w := <-wakes[role]:
			return w.Subject
		case <-time.After(patience):
			t.Fatalf("%s wakes to nothing", role)
			return ""
		}
	}
	s.put(t, helper, task.Join(2, 1), "join")
	s.put(t, helper, task.Share(2), "share")
	s.put(t, learner, task.Round(2), "round")
	for role, want := range map[string][]string{
		stage:     {s.task.Join(2, 1), s.task.Share(2), s.task.Round(2)},
		publisher: {s.task.Join(2, 1), s.task.Round(2)},
	} {
		for _, subject := range want {
			if got := next(role); got != subject {
				t.Errorf("%s wakes to %q, want %q", role, got, subject)
			}
		}
	}
}
