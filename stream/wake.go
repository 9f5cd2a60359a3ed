package stream

// A Wake says that a record was written: the subject, and the bytes that now stand there as the broker sent them. Whoever can
// write to the broker's wake subjects can send one, so it proves no more than its signature does. The zero Wake says that
// something may have been written, and what is to be read: it comes first, after a reconnection, and in place of wakes that were lost.
type Wake struct {
	Subject string
	Data    []byte
}

// maxWakes is how many wakes wait for a watcher: those of two rounds. A wake may be as large as the broker's largest message.
const maxWakes = 8

// Wakes is the way of wakes from an adapter to one watcher. It is bounded: where the watcher does not keep up, one zero Wake takes
// the place of all that wait. Its methods are not for concurrent use; the channel is.
type Wakes struct{ c chan Wake }

// NewWakes begins with the zero Wake.
func NewWakes() *Wakes {
	w := &Wakes{c: make(chan Wake, maxWakes)}
	w.c <- Wake{}
	return w
}

// C is where the watcher receives.
func (w *Wakes) C() <-chan Wake { return w.c }

// Put never waits. A zero Wake replaces all that wait, too: whoever reads everything needs none of them.
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
