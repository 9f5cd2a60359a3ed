package permissions

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// serve answers every request for places of the scene's task as the stage, and returns a channel of their bytes.
func (s *scene) serve(t *testing.T) <-chan []byte {
	t.Helper()
	asked := make(chan []byte, 64)
	err := s.conn(t, stage).ServePlaces(t.Context(), s.task, func(_ string, data []byte) []byte {
		asked <- data
		return []byte("places")
	})
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

// TestPlacesAreAskedAndGiven: a publisher asks across accounts and gets the stage's answer; other roles may neither ask
// nor give.
func TestPlacesAreAskedAndGiven(t *testing.T) {
	s := shipped(t).scene(t)
	asked := s.serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, role := range []string{publisher, publisher2} {
		got, err := s.conn(t, role).Place(ctx, s.task.Place(1, 1), []byte("a request"))
		if err != nil || string(got) != "places" || string(<-asked) != "a request" {
			t.Errorf("%s asks: %q, %v", role, got, err)
		}
	}
	for _, role := range []string{admin, learner, stage} {
		if _, err := s.conn(t, role).Place(ctx, s.task.Place(1, 1), nil); !errors.Is(err, natsjs.ErrDenied) ||
			!errors.Is(err, stream.ErrRefused) {
			t.Errorf("%s asks: %v, want it denied", role, err)
		}
	}
	for _, role := range []string{admin, learner, publisher} {
		err := s.conn(t, role).ServePlaces(ctx, s.task, func(string, []byte) []byte { return []byte("mine") })
		if !errors.Is(err, natsjs.ErrDenied) {
			t.Errorf("%s gives places: %v, want it denied", role, err)
		}
	}
	if len(asked) != 0 {
		t.Error("a role that may not ask was heard")
	}
}

// gives answers requests as if it were the stage, and checks whether a device takes the answer.
func gives(t *testing.T, s *scene, c *client) bool {
	sub, err := c.nc.SubscribeSync(s.task.Places())
	if err != nil {
		t.Fatal(err)
	}
	flush(t, c.nc)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answered := make(chan bool, 1)
	go func() {
		got, err := s.conn(t, publisher2).Place(ctx, s.task.Place(1, 1), []byte("a request"))
		answered <- err == nil && string(got) == "forged"
	}()
	for {
		if m, err := sub.NextMsg(10 * time.Millisecond); err == nil && m.Respond([]byte("forged")) != nil {
			t.Fatal("it cannot answer")
		}
		select {
		case forged := <-answered:
			return forged
		default:
		}
	}
}

// asksAs requests places as a role, and checks whether the request reaches the stage.
func asksAs(t *testing.T, s *scene, c *client) bool {
	asked := s.serve(t)
	if err := c.nc.Publish(s.task.Place(1, 1), []byte("mine")); err != nil {
		t.Fatal(err)
	}
	flush(t, c.nc)
	// What came to the stage after it has come, too.
	if _, err := s.conn(t, publisher2).Place(t.Context(), s.task.Place(1, 1), []byte("after")); err != nil {
		t.Fatal(err)
	}
	return string(<-asked) == "mine"
}

// TestPlaceAttacks: only the stage can answer requests for places, and only a publisher can make them.
func TestPlaceAttacks(t *testing.T) {
	for _, p := range []place{{onOpen, open(t), true}, {"the shipped configuration", shipped(t), false}} {
		for _, role := range []string{publisher, learner} {
			if worked := gives(t, p.broker.scene(t), p.broker.raw(t, role)); worked != p.falls {
				t.Errorf("on %s: %s gives places in the place of the stage: %t, want %t", p.name, role, worked, p.falls)
			}
		}
		for _, role := range []string{learner, stage} {
			if worked := asksAs(t, p.broker.scene(t), p.broker.raw(t, role)); worked != p.falls {
				t.Errorf("on %s: %s asks for places: %t, want %t", p.name, role, worked, p.falls)
			}
		}
	}
}
