package client

import (
	"context"
	"errors"
	"sync"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// errEnded says that the gateway takes no more events.
var errEnded = errors.New("the client has ended")

// An offer is one event on its way to the gateway, which owns it from then on and answers exactly once.
type offer struct {
	key     participation.Key
	example convex.Example // the zero Example, which is none of the task's, of a row that could not be mapped
	answer  func(Outcome)  // called by the gateway's goroutine; must not block
}

// An intake is the bounded queue between those who publish and the gateway.
type intake struct {
	limit int
	ready chan struct{} // holds a token when there may be offers
	space chan struct{} // holds a token when there may be room
	ended chan struct{} // closed with closed

	mu     sync.Mutex
	queue  []*offer // guarded by mu
	closed bool     // guarded by mu
}

func newIntake(limit int) *intake {
	return &intake{
		limit: limit, ready: make(chan struct{}, 1), space: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put waits for room. After an error the gateway does not have the offer.
func (q *intake) put(ctx context.Context, o *offer) error {
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return errEnded
		}
		if n := len(q.queue); n < q.limit {
			q.queue = append(q.queue, o)
			q.mu.Unlock()
			signal(q.ready)
			if n+1 < q.limit {
				signal(q.space) // this put may have taken the token that another waits for
			}
			return nil
		}
		q.mu.Unlock()
		select {
		case <-q.space:
		case <-q.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take answers up to n offers, oldest first, without waiting.
func (q *intake) take(n int) []*offer {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.queue))
	if n <= 0 {
		return nil
	}
	got := append([]*offer(nil), q.queue[:n]...)
	rest := copy(q.queue, q.queue[n:])
	clear(q.queue[rest:])
	q.queue = q.queue[:rest]
	signal(q.space)
	if rest > 0 {
		signal(q.ready)
	}
	return got
}

// close refuses all later puts and answers what is left.
func (q *intake) close() []*offer {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	close(q.ended)
	left := q.queue
	q.queue = nil
	return left
}
