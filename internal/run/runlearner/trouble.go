package runlearner

import (
	"sync"
	"time"

	"github.com/panlearn/panlearn/learner/service"
)

// A troubled records since when the learner's calls of the broker fail, and why. It is a service.Observer.
type troubled struct {
	mu    sync.Mutex
	cause string
	since time.Time
}

func (*troubled) Resumed(service.Progress)   {}
func (*troubled) Announced(round, of uint64) {}
func (*troubled) Lost(_ string)              {}
func (*troubled) Applied(service.Applied)    {}

func (t *troubled) now() (string, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause, t.since
}

// Trouble implements service.Observer.
func (t *troubled) Trouble(cause string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == "" {
		t.since = time.Now()
	}
	t.cause = cause
}
