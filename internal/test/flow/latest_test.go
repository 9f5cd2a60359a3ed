package flow

import (
	"context"
	"sync"
)

// A latest is the greatest number that was reached so far, such as a round's; others wait for it.
type latest struct {
	mu      sync.Mutex
	n       uint64
	changed chan struct{} // closed at the next change
}

func newLatest() *latest { return &latest{changed: make(chan struct{})} }

func (l *latest) reach(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > l.n {
		l.n = n
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

func (l *latest) wait(ctx context.Context, n uint64) error {
	for {
		l.mu.Lock()
		reached, changed := l.n >= n, l.changed
		l.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
