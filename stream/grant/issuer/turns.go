package issuer

import (
	"crypto/sha256"
	"sync"
	"time"
)

// A device sends a request once, and again after waits that double up to a minute if it gets no reply: some 15 times in
// window. More than mostAsked for one person come from a broken device, or from somebody who tries to overload the issuer.
const (
	window    = 10 * time.Minute
	mostAsked = 60
)

// turns count the requests of each person in a window of time, all windows side by side. Its methods may be called from
// any goroutine.
type turns struct {
	now func() time.Time

	mu    sync.Mutex
	ends  time.Time                 // guarded by mu: of this window
	asked map[[sha256.Size]byte]int // guarded by mu: in it, by person
}

// take counts one request of a person. Where it is one too many, it returns after what time the next one is taken; else
// 0.
func (t *turns) take(who [sha256.Size]byte) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if !now.Before(t.ends) {
		t.ends, t.asked = now.Add(window), make(map[[sha256.Size]byte]int)
	}
	if t.asked[who] >= mostAsked {
		return t.ends.Sub(now)
	}
	t.asked[who]++
	return 0
}
