package natsjs

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// Place implements stream.PlaceAsker: one request, which no stream stores.
func (c *Conn) Place(ctx context.Context, subject string, request []byte) ([]byte, error) {
	if a, err := stream.ParseSubject(subject); err != nil || a.Verb != "place" {
		return nil, fmt.Errorf("place: %w: want the place subject of an attempt", stream.ErrRefused)
	}
	wait, cancel := c.requests.ask(ctx, subject)
	defer cancel()
	m, err := c.nc.RequestWithContext(wait, subject, request)
	if err != nil {
		return nil, fmt.Errorf("place: %w", refused(explain(c.requests.outcome(ctx, wait, err))))
	}
	return m.Data, nil
}

// maxPlaces bounds the requests for places that wait for the stage; more of them are lost, and asked again.
const maxPlaces = 1 << 16

// ServePlaces implements stream.PlaceServer. It subscribes without a queue group: of several stage processes only the
// one that collects reports replies.
func (c *Conn) ServePlaces(ctx context.Context, task stream.Task, answer func(string, []byte) []byte) error {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return fmt.Errorf("places: %w: %w", stream.ErrRefused, err)
	}
	err := c.serve(ctx, task.Places(), maxPlaces, -1, func(m *nats.Msg) {
		if data := answer(m.Subject, m.Data); data != nil && m.Reply != "" {
			_ = m.Respond(data) // a lost answer is asked for again
		}
	})
	if err != nil {
		return fmt.Errorf("places of %s: %w", task, err)
	}
	return nil
}
