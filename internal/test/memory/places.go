package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/stream"
)

// placeServer is one call of ServePlaces.
type placeServer struct {
	answer func(subject string, request []byte) []byte
}

// Place implements stream.PlaceAsker: the first reply is taken. Lost is a request that reaches nobody, LostAck a lost
// reply, Twice a request that arrives two times.
func (b *Broker) Place(ctx context.Context, subject string, request []byte) ([]byte, error) {
	a, err := stream.ParseSubject(subject)
	if err != nil || a.Verb != "place" {
		return nil, fmt.Errorf("place: %w: want the place subject of an attempt", stream.ErrRefused)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	fault := b.fault(Place, subject)
	answers := slices.Clone(b.tenant(a.Task).answers)
	gone := b.disconnected
	b.mu.Unlock()
	if gone {
		return nil, ErrDisconnected
	}
	if fault == Lost {
		return nil, ErrDisconnected
	}
	if fault == Twice { // what repeats it drops the first answer
		for _, s := range answers {
			s.answer(subject, slices.Clone(request))
		}
	}
	for _, s := range answers { // without the lock: an answer may ask the broker
		data := s.answer(subject, slices.Clone(request))
		if data != nil && fault != LostAck {
			return data, nil
		}
	}
	return nil, ErrDisconnected
}

// ServePlaces implements stream.PlaceServer.
func (b *Broker) ServePlaces(ctx context.Context, task stream.Task, answer func(string, []byte) []byte) error {
	s := &placeServer{answer}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.disconnected {
		return ErrDisconnected
	}
	t := b.tenant(task)
	t.answers = append(t.answers, s)
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.answers = slices.DeleteFunc(t.answers, func(one *placeServer) bool { return one == s })
	})
	return nil
}
