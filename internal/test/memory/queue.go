package memory

import (
	"cmp"
	"slices"
	"time"
)

// messageOverhead is about what a JetStream server counts for a stored message beside subject and data.
const messageOverhead = 32

// item is one stored report.
type item struct {
	sequence  uint64
	subject   string
	id        [16]byte
	data      []byte
	came      time.Time
	delivered int
	deadline  time.Time // of the acknowledgement; zero: none
	gone      bool      // acknowledged or purged; ready may still hold it
}

func (it *item) size() int64 { return int64(len(it.subject) + len(it.data) + messageOverhead) }

// queue is the Reports stream of one task and its consumer.
type queue struct {
	last   uint64
	bytes  int64
	stored map[uint64]*item // by sequence
	of     map[string]int   // how many are stored of each subject
	consumer

	window int
	ids    map[[16]byte]uint64 // sequence of a message id, the last window of them
	recent [][16]byte          // ring of the ids
	oldest int

	waiters chan struct{} // closed when something may be deliverable
}

// consumer holds the state of the delivery of reports.
type consumer struct {
	ready []*item          // to be delivered, in order
	out   map[uint64]*item // delivered, not acknowledged
}

func newQueue(window int) *queue {
	return &queue{stored: map[uint64]*item{}, of: map[string]int{}, consumer: consumer{out: map[uint64]*item{}},
		window: window, ids: map[[16]byte]uint64{}, waiters: make(chan struct{})}
}

func (q *queue) changed() {
	close(q.waiters)
	q.waiters = make(chan struct{})
}

func (q *queue) store(subject string, id [16]byte, data []byte) uint64 {
	q.last++
	it := &item{sequence: q.last, subject: subject, id: id, data: data, came: time.Now()}
	q.stored[it.sequence] = it
	q.bytes += it.size()
	q.of[subject]++
	q.ready = append(q.ready, it)
	return it.sequence
}

// remember puts an id into the window, from which the oldest one falls out.
func (q *queue) remember(id [16]byte, sequence uint64) {
	if len(q.recent) < q.window {
		q.recent = append(q.recent, id)
	} else {
		delete(q.ids, q.recent[q.oldest])
		q.recent[q.oldest] = id
		q.oldest = (q.oldest + 1) % q.window
	}
	q.ids[id] = sequence
}

func (q *queue) forget() {
	clear(q.ids)
	q.recent, q.oldest = nil, 0
}

// remove takes a report out of the stream.
func (q *queue) remove(it *item) {
	it.gone = true
	delete(q.stored, it.sequence)
	delete(q.out, it.sequence)
	q.bytes -= it.size()
	if q.of[it.subject]--; q.of[it.subject] == 0 {
		delete(q.of, it.subject)
	}
}

// takeBack makes the reports that are out and chosen available again, before all others, by sequence.
func (q *queue) takeBack(chosen func(*item) bool) {
	var back []*item
	for _, it := range q.out {
		if chosen(it) {
			back = append(back, it)
		}
	}
	if len(back) == 0 {
		return
	}
	slices.SortFunc(back, func(a, b *item) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, it := range back {
		delete(q.out, it.sequence)
	}
	q.ready = append(back, q.ready...)
	q.changed()
}

// next takes the first report that is ready, or that at the place which pick chooses, and marks it as out.
func (c *consumer) next(pick func(n int) int, deadline time.Time) *item {
	for len(c.ready) > 0 {
		i := pick(len(c.ready))
		it := c.ready[i]
		c.ready[i] = c.ready[0]
		c.ready[0] = nil
		c.ready = c.ready[1:]
		if it.gone {
			continue
		}
		it.delivered++
		it.deadline = deadline
		c.out[it.sequence] = it
		return it
	}
	c.ready = nil
	return nil
}

// nextDeadline returns the earliest time at which a report that is out comes back; zero where none does.
func (c *consumer) nextDeadline() time.Time {
	var next time.Time
	for _, it := range c.out {
		if !it.deadline.IsZero() && (next.IsZero() || it.deadline.Before(next)) {
			next = it.deadline
		}
	}
	return next
}
