package memory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A Copy holds the content of a stream of records at some time. The zero Copy is a stream that was just made.
type Copy struct {
	standing []stream.Message // ascending sequence, each with its time
	last     uint64           // sequence that was given last
}

// Copy returns the present content of a stream. Reports are not copied: of them it returns the zero Copy.
func (b *Broker) Copy(task stream.Task, s stream.Stream) Copy {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.tenant(task).records[s]
	if r == nil {
		return Copy{}
	}
	c := Copy{last: r.last}
	for _, m := range slices.SortedFunc(maps.Values(r.bySubject),
		func(a, b *stream.Message) int { return cmp.Compare(a.Sequence, b.Sequence) }) {
		c.standing = append(c.standing, r.read(m))
	}
	return c
}

// Restore sets a stream back to the content of a Copy, as a server does that lost writes it had acknowledged
// since: later records are gone, overwritten ones are back, and sequences are given again. It returns the
// subjects on which less is left than before. All reports are lost, with their message ids, whatever the Copy
// is.
func (b *Broker) Restore(task stream.Task, s stream.Stream, c Copy) (lost []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tenant(task)
	r := t.records[s]
	if r == nil {
		b.lose(t.queue)
		return nil
	}
	before := r.bySubject
	r.last, r.bySubject, r.order, r.times = c.last, map[string]*stream.Message{}, nil, map[uint64]time.Time{}
	for _, m := range c.standing {
		r.times[m.Sequence] = m.Time
		m := copied(&m)
		r.bySubject[m.Subject] = &m
		r.order = append(r.order, &m)
	}
	for subject, m := range before {
		if now := r.bySubject[subject]; now == nil || now.Sequence != m.Sequence {
			lost = append(lost, subject)
		}
	}
	slices.Sort(lost)
	return lost
}

// Lose removes one record, as on a damaged disk; the stream goes on. It reports whether there was one.
func (b *Broker) Lose(subject string) bool {
	task, s, err := stream.StreamOf(subject)
	if err != nil || s == stream.Reports {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.tenant(task).records[s]
	_, there := r.bySubject[subject]
	delete(r.bySubject, subject)
	return there
}

// lose empties the queue, and forgets all message ids and sequences; b.mu is held.
func (b *Broker) lose(q *queue) {
	for _, it := range q.stored {
		b.remove(q, it)
	}
	q.forget()
	q.last, q.ready = 0, nil
	q.changed()
}
