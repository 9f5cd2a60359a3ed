package memory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/panlearn/panlearn/stream"
)

// Stored is one message that the broker holds, or held.
type Stored struct {
	Task   stream.Task
	Stream stream.Stream
	stream.Message
	ID      [16]byte // message id of a report
	Deleted bool     // acknowledged or purged; present with Config.Keep only
}

// Dump returns all that the broker stores, as an operator who looks would see it: ordered by task, stream and
// sequence. With Config.Keep it includes deleted reports. Overwritten leases are not kept.
func (b *Broker) Dump() []Stored {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Stored
	for task, t := range b.tasks {
		for s, r := range t.records {
			for _, m := range r.bySubject {
				all = append(all, Stored{Task: task, Stream: s, Message: copied(m)})
			}
		}
		for _, it := range t.queue.stored {
			all = append(all, stored(task, it))
		}
	}
	all = append(all, b.deleted...)
	slices.SortFunc(all, func(a, b Stored) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Sequence, b.Sequence))
	})
	return all
}

func stored(task stream.Task, it *item) Stored {
	m := stream.Message{Subject: it.subject, Sequence: it.sequence, Data: slices.Clone(it.data)}
	return Stored{Task: task, Stream: stream.Reports, Message: m, ID: it.id, Deleted: it.gone}
}

// remove deletes a report; b.mu is held.
func (b *Broker) remove(q *queue, it *item) {
	q.remove(it)
	if b.config.Keep {
		task, _, _ := stream.StreamOf(it.subject)
		b.deleted = append(b.deleted, stored(task, it))
	}
}

// Save returns a function that puts one stream of a task, not the stream of reports, back to its content of now,
// sequences included, like a broker that is restored from a copy. If nothing was written yet, the function acts like a
// stream that was removed and made again.
func (b *Broker) Save(task stream.Task, s stream.Stream) (restore func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.tenant(task).records[s].clone()
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tenant(task).records[s] = kept.clone()
	}
}

func (r *records) clone() *records {
	return &records{last: r.last, bySubject: maps.Clone(r.bySubject), order: slices.Clone(r.order),
		times: maps.Clone(r.times)}
}
