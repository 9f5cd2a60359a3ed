package stream

// A Wake announces that a record was written: its subject, and the bytes that are there now as the broker sent them.
// Anybody who can write to the broker's wake subjects can send one, so it proves no more than its signature does. The
// zero Wake means that something may have been written and has to be read: it comes first, after a reconnection, and
// instead of wakes that were lost.
type Wake struct {
	Subject string
	Data    []byte
}

// maxWakes bounds the wakes that wait for a watcher: the wakes of two rounds. A wake may be as large as the broker's
// largest message.
const maxWakes = 8

// Wakes carries wakes from an adapter to one watcher. It is bounded: if the watcher does not keep up, one zero Wake
// replaces all that wait. Its methods are not for concurrent use; the channel is.
type Wakes struct{ c chan Wake }

// NewWakes begins with the zero Wake.
func NewWakes() *Wakes {
	w := &Wakes{c: make(chan Wake, maxWakes)}
	w.c <- Wake{}
	return w
}

// C returns the channel on which the watcher receives.
func (w *Wakes) C() <-chan Wake { return w.c }

// Put never waits. A zero Wake also replaces all wakes that wait: a watcher that reads everything needs none of them.
func (w *Wakes) Put(wake Wake) {
	if wake.Subject != "" {
		select {
		case w.c <- wake:
			return
		default:
		}
	}
	for {
		select {
		case <-w.c:
			continue
		default:
		}
		break
	}
	w.c <- Wake{} // has room: nobody else puts
}

// Close ends the watch.
func (w *Wakes) Close() { close(w.c) }
