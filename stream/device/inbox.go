package device

import (
	"context"
	"errors"
	"sync"
)

// errEnded is returned when the client takes no more events.
var errEnded = errors.New("the client has ended")

// An inbox is the bounded queue from publishers to the loop, which owns the events that it has taken and reports the
// outcome of each exactly once.
type inbox struct {
	limit int
	ready chan struct{} // holds a token when there may be events
	first chan struct{} // holds a token when one may have come where there was none
	space chan struct{} // holds a token when there may be room
	ended chan struct{} // closed with closed

	mu      sync.Mutex
	events  []*event // guarded by mu; Key, example and one callback are set
	blocked uint64   // guarded by mu: events that wait for room
	closed  bool     // guarded by mu
}

func newInbox(limit int) *inbox {
	return &inbox{
		limit: limit, ready: make(chan struct{}, 1), first: make(chan struct{}, 1), space: make(chan struct{}, 1),
		ended: make(chan struct{}),
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put waits for room. After an error the loop does not have the event.
func (q *inbox) put(ctx context.Context, e *event) error {
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return errEnded
		}
		if n := len(q.events); n < q.limit {
			q.events = append(q.events, e)
			q.mu.Unlock()
			signal(q.ready)
			if n == 0 {
				signal(q.first)
			}
			if n+1 < q.limit {
				signal(q.space) // this put may have taken the token that another waits for
			}
			return nil
		}
		q.blocked++
		q.mu.Unlock()
		var err error
		select {
		case <-q.space:
		case <-q.ended:
		case <-ctx.Done():
			err = ctx.Err()
		}
		q.mu.Lock()
		q.blocked--
		q.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// len returns the number of events in the inbox.
func (q *inbox) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events)
}

// waiting returns the number of events that wait to be taken, including those whose put waits for room.
func (q *inbox) waiting() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return uint64(len(q.events)) + q.blocked
}

// take returns up to n events, oldest first, without waiting.
func (q *inbox) take(n int) []*event {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.events))
	if n <= 0 {
		if len(q.events) > 0 {
			signal(q.ready) // the receiver of the token has no room now, and will have
		}
		return nil
	}
	got := append([]*event(nil), q.events[:n]...)
	rest := copy(q.events, q.events[n:])
	clear(q.events[rest:])
	q.events = q.events[:rest]
	signal(q.space)
	if rest > 0 {
		signal(q.ready)
	}
	return got
}

// holds returns the number of events in the inbox.
func (q *inbox) holds() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events)
}

// close refuses all later puts and returns the events that are left.
func (q *inbox) close() []*event {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	close(q.ended)
	left := q.events
	q.events = nil
	return left
}

// answers carries replies that other goroutines received back to the loop: at most MaxInFlight of them, since each is
// about at least one event.
type answers[A any] struct {
	ready chan struct{} // holds a token when there may be one

	mu   sync.Mutex
	list []A // guarded by mu
}

func newAnswers[A any]() *answers[A] { return &answers[A]{ready: make(chan struct{}, 1)} }

func (a *answers[A]) put(one A) {
	a.mu.Lock()
	a.list = append(a.list, one)
	a.mu.Unlock()
	signal(a.ready)
}

// take returns all, oldest first.
func (a *answers[A]) take() []A {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.list
	a.list = nil
	return list
}
