package campaign

import (
	"slices"
	"strings"
	"time"
)

// A trouble is one fault: what happened, the process that it happened to, and when it may have had an effect.
type trouble struct {
	what     string
	of       *process // nil: the broker
	from, to time.Time
	lasts    bool // to is not known yet
}

// whose returns the kind of process that the fault hit: broker, learner, stage, publisher.
func (t trouble) whose() string {
	if t.of == nil {
		return "broker"
	}
	return strings.TrimRight(t.of.name, "0123456789")
}

// troubled notes a fault of a process, or of the broker where there is none. A negative length lasts until it is
// mended.
func (w *world) troubled(what string, p *process, length time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.troubles = append(w.troubles, trouble{what: what, of: p, from: now, to: now.Add(length), lasts: length < 0})
}

// mended notes that a lasting fault ends, whose effects may come as much later.
func (w *world) mended(what string, p *process, late time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.troubles {
		if t := &w.troubles[i]; t.lasts && t.what == what && t.of == p {
			t.lasts, t.to = false, time.Now().Add(late)
		}
	}
}

// faultsIn names the faults of some kinds of processes, or of all, that a round met between its first Open and its
// Close.
func (w *world) faultsIn(round uint64, of ...string) (names []string) {
	from, to := w.book.span(round)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.troubles {
		if len(of) > 0 && !slices.Contains(of, t.whose()) {
			continue
		}
		if what := t.whose() + " " + t.what; !t.from.After(to) && (t.lasts || !t.to.Before(from)) &&
			!slices.Contains(names, what) {
			names = append(names, what)
		}
	}
	if w.Reorder && (len(of) == 0 || slices.Contains(of, "broker")) {
		names = append(names, "broker hands out in any order")
	}
	slices.Sort(names)
	return names
}
