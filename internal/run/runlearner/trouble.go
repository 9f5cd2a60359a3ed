package runlearner

import (
	"sync"
	"time"
)

// A troubled records since when the learner's calls of the broker fail, and why.
type troubled struct {
	mu    sync.Mutex
	cause string
	since time.Time
}

func (t *troubled) now() (string, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause, t.since
}

// begins notes why calls fail from now on, or "" that they work.
func (t *troubled) begins(cause string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == "" {
		t.since = time.Now()
	}
	t.cause = cause
}
