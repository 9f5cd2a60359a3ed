package natsjs

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
)

// arrivals holds the messages that came on a subscription and that nobody has taken yet. They are not left to the
// library's own queue: that takes a message with the header of a no-responders answer for such an answer and drops it,
// though a device may put any header on its report.
type arrivals struct {
	sub    *nats.Subscription
	closed chan struct{} // the subscription is no more
	came   chan struct{} // holds one where something came

	mu   sync.Mutex
	list []*nats.Msg
}

// listen subscribes. The requests, and not the library, bound what waits.
func listen(nc *nats.Conn, subject string) (*arrivals, error) {
	a := &arrivals{closed: make(chan struct{}), came: make(chan struct{}, 1)}
	sub, err := nc.Subscribe(subject, func(m *nats.Msg) {
		a.mu.Lock()
		a.list = append(a.list, m)
		a.mu.Unlock()
		select {
		case a.came <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	a.sub = sub
	sub.SetClosedHandler(func(string) { close(a.closed) })
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		_ = sub.Unsubscribe()
		return nil, err
	}
	return a, nil
}

// any reports whether a message waits.
func (a *arrivals) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.list) > 0
}

// next returns the first message that waits, or that comes until the context ends.
func (a *arrivals) next(until context.Context) (*nats.Msg, error) {
	for {
		a.mu.Lock()
		if len(a.list) > 0 {
			m := a.list[0]
			a.list[0] = nil
			a.list = a.list[1:]
			a.mu.Unlock()
			return m, nil
		}
		a.list = nil
		a.mu.Unlock()
		select {
		case <-a.came:
		case <-a.closed:
			return nil, nats.ErrBadSubscription
		case <-until.Done():
			return nil, until.Err()
		}
	}
}
