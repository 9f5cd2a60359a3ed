package relay

import (
	"context"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
	"github.com/panlearn/panlearn/stream/wire"
)

// An attempt of two operators is an Open and a Join, and a device acts on both together. So a State shows the newest
// Open that has a Join together with the Join, and wakes waiting requests once for both.

// readTask reads the mark of the Task, and notes whether its attempts have Joins. Its signature is not looked at: a wrong
// one makes the relay show other records, and no more.
func (f *follower) readTask(ctx context.Context) (relayhttp.Mark, error) {
	m, err := f.get(ctx, f.task.Task())
	if err != nil {
		return relayhttp.Mark{}, err
	}
	var envelope wire.Signed
	var task wire.Task
	pairs := stream.Unmarshal(m.Data, &envelope) == nil && stream.Unmarshal(envelope.Body, &task) == nil &&
		manifest.HasOperators(task.Plan)
	f.mu.Lock()
	f.pairs = pairs
	f.mu.Unlock()
	return markOf(m), nil
}

func (f *follower) hasPairs() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pairs
}

// pair shows the newest Open of a round, if attempts have Joins together with its Join; until there is one, an older
// attempt at the round stays in the State. join is the Open's Join, or nil if it has to be read.
func (f *follower) pair(ctx context.Context, s *relayhttp.State, open relayhttp.Mark, join *relayhttp.Mark) error {
	if !f.hasPairs() || open.Sequence == 0 {
		s.Open, s.Join = open, relayhttp.Mark{}
		return nil
	}
	if join == nil {
		m, err := f.mark(ctx, f.task.Join(open.Round, open.Attempt))
		if err != nil {
			return err
		}
		join = &m
	}
	switch {
	case join.Sequence > 0:
		s.Open, s.Join = open, *join
	case s.Open.Round != open.Round || s.Open.Attempt >= open.Attempt || s.Join.Sequence == 0:
		s.Open, s.Join = relayhttp.Mark{}, relayhttp.Mark{}
	}
	return nil
}

// heardPart takes an Open or a Join that was read from the broker.
func (f *follower) heardPart(ctx context.Context, s *relayhttp.State, a stream.Address, got relayhttp.Mark) error {
	open, join := got, (*relayhttp.Mark)(nil)
	if a.Verb == "join" {
		var err error
		if open, err = f.mark(ctx, f.task.Open(a.Round, a.Attempt)); err != nil || open.Sequence == 0 || !f.hasPairs() {
			return err
		}
		join = &got
	}
	next := *s
	forward(&next.Open, open)
	if next.Open != open {
		return nil
	}
	next = *s
	err := f.pair(ctx, &next, open, join)
	if err == nil && next.Open == open {
		*s = next
	}
	return err
}
