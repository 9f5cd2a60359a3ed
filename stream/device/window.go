package device

import "time"

// A window bounds the number of events that are on their way to the broker at a time. It grows while answers come
// quickly, and halves when an answer takes long: a report sent to a broker that is behind may come too late for
// its round, and an event that is not answered when the round closes stays in doubt for ever. The window depends
// on the broker alone.
type window struct{ now, least, most int }

// An answer is quick, and the window grows by what it is about, or slow.
const (
	quickAnswer = time.Second
	slowAnswer  = 2 * time.Second
)

// newWindow begins with two chunks.
func newWindow(chunk, most int) window {
	return window{now: min(2*chunk, most), least: min(chunk, most), most: most}
}

// answered takes the answer about some events, which took so long.
func (w *window) answered(events int, took time.Duration) {
	switch {
	case took <= quickAnswer:
		w.now = min(w.now+events, w.most)
	case took > slowAnswer:
		w.now = max(w.now/2, w.least)
	}
}
