package campaign

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/retention"
)

const (
	age   = time.Hour // of the records that are removed
	older = "the learner's state is older, and the batches after it were removed"
)

// years holds the state of a campaign whose task has been running for a long time before.
type years struct {
	crowds  []*publisher // whose users are in the rounds of that time; they share a coordinate
	sweptMu sync.Mutex
	swept   map[string]bool // subjects whose record was removed; sweptMu guards it
	sweeps  int             // that removed something
	short   int             // that were cut short
	old     struct {        // of the time of the first rounds
		disk  *storetest.Memory
		round stream.Round
		mark  [stream.InstanceSize]byte
	}
	early map[*publisher]participation.Record // who went away in a round of that time
}

func (w *world) isSwept(subject string) bool {
	w.sweptMu.Lock()
	defer w.sweptMu.Unlock()
	return w.swept[subject]
}

// newest returns the newest round that anybody saw.
func (w *world) newest() stream.Round {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	var n stream.Round
	for subject := range w.book.versions {
		if at, _ := stream.ParseSubject(subject); at.Verb == "round" {
			n = max(n, at.Round)
		}
	}
	return n
}

// join lets a crowd take part and waits until its publisher has ended.
func (w *world) join(users int) {
	c := newPublisher(w, w.Publishers+len(w.crowds), users)
	c.crowd = true
	c.drawn = map[participation.Key]int{}
	for i := range users {
		c.drawn[c.key(i)] = i
	}
	w.crowds = append(w.crowds, c)
	w.start(c.process)
	<-c.current().done
}

// live plays more rounds than the broker keeps. The first device sends to the first round and goes away, the second one
// to a later one of those that will be removed, the third takes no part; the stage that has the lease is suspended from
// the first rounds on.
func (w *world) live() {
	w.early = map[*publisher]participation.Record{}
	w.start(w.learner)
	w.start(w.stages[0])
	w.leave(w.devices[0])
	w.join(20)
	w.old.disk, w.old.round = w.disk.Copy(), w.newest()
	w.troubled("is suspended", w.stages[0], -1)
	w.stages[0].current().link.suspend(1000 * time.Hour)
	w.start(w.stages[1])
	w.join(20)
	w.leave(w.devices[1])
	time.Sleep(age + time.Minute)
	w.join(2 * int(stream.KeptRounds))
	for _, d := range w.devices {
		d.away = true
	}
	w.start(w.devices[2].process)
	w.devices[2].crash() // it knows nothing, and took no part
	<-w.devices[2].current().done
}

// leave lets a device send to a round and die before it learns the outcome.
func (w *world) leave(d *publisher) {
	w.start(d.process)
	d.current().link.set(func(l *link) { l.trap = &trap{call: "publish", after: true} })
	<-d.current().done
	for _, p := range d.participations() {
		if p.State == participation.Charged {
			w.early[d] = p
			return
		}
	}
	w.violate("%s took no part", d.name)
}

// comeBack lets a device that went away come back while nothing else happens: where its round was removed it
// knows at once that no outcome will come.
func (w *world) comeBack(d *publisher) {
	early, there := w.early[d]
	w.start(d.process)
	time.Sleep(w.closeWait() / 2) // it would wait for longer
	if !there || !w.isSwept(name.Round(early.Draw.Round)) {
		w.violate("%s is in no round that was removed", d.name)
		return
	}
	if now, err := d.store.Read([]participation.Key{early.Key}); err != nil || now[0].State != participation.Unknown {
		w.violate("%s: round %d was removed, and its user is %v, %v", d.name, early.Draw.Round, now[0].State, err)
	}
}

// oldRound delivers a late put, which a learner made in the first rounds before it was suspended: of a Round that was
// removed since.
func (w *world) oldRound(o op) {
	subject := name.Round(stream.Round(1 + o.What%int(w.old.round)))
	if w.isSwept(subject) {
		_, _ = w.broker.PutOnce(context.Background(), subject, w.book.first(subject)) // its caller is gone
	}
}

// advance insists that a round ends soon: users are there, and nothing else is wrong.
func (w *world) advance() {
	before := w.released()
	time.Sleep(2 * time.Minute)
	if w.released() == before {
		w.violate("no round ends: %s", w.doing())
	}
}

// released counts the rounds of which a batch was seen.
func (w *world) released() (n int) {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	for subject := range w.book.versions {
		if at, _ := stream.ParseSubject(subject); at.Verb == "batch" {
			n++
		}
	}
	return n
}

// oldDisk gives the learner its disk of the first rounds.
func (w *world) oldDisk() {
	w.learner.crash()
	<-w.learner.current().done
	w.learner.forget()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disk = w.old.disk.Copy()
	w.rewound.Store(true)
}

// oldMarks gives a folder of marks what it held in the first rounds.
func (w *world) oldMarks(o op) {
	m := w.memos[o.Who%len(w.memos)]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.round > w.old.round {
		w.marks.Store(true)
		m.before, m.round, m.instance = 0, w.old.round, [stream.InstanceSize]byte{}
	}
}

// An administrator is a broker that is gone after some listings and removals, and notes which were removed.
type administrator struct {
	*memory.Broker
	w    *world
	left int
}

var errNoBroker = errors.New("the broker is gone")

// Records implements retention.Broker.
func (a *administrator) Records(ctx context.Context, task stream.Task, s stream.Stream) iter.Seq2[retention.Record,
	error] {
	if a.left--; a.left < 0 {
		return func(yield func(retention.Record, error) bool) { yield(retention.Record{}, errNoBroker) }
	}
	return a.Broker.Records(ctx, task, s)
}

// Remove implements retention.Broker.
func (a *administrator) Remove(ctx context.Context, task stream.Task, s stream.Stream, sequences []uint64) error {
	subjects := map[uint64]string{}
	for _, m := range a.Dump() {
		if m.Stream == s {
			subjects[m.Sequence] = m.Subject
		}
	}
	for _, n := range sequences {
		if a.left--; a.left < 0 {
			return errNoBroker
		}
		if err := a.Broker.Remove(ctx, task, s, []uint64{n}); err != nil {
			return err
		}
		if subject := subjects[n]; subject != "" {
			a.w.sweptMu.Lock()
			a.w.swept[subject] = true
			a.w.sweptMu.Unlock()
		}
	}
	return nil
}

// sweep removes old records, all or some. A batch that is removed is the last of its round; where a sweep comes to its
// end, no record of an old round is left, except those that were put again.
func (w *world) sweep(some int) {
	a := &administrator{Broker: w.broker, w: w, left: 1 << 30}
	if some%3 > 0 {
		a.left = some * 3 / 2
	}
	ctx := context.Background()
	newest, unknown := w.broker.Newest(ctx, name)
	out, err := retention.Sweep(ctx, a, name, age)
	if err != nil {
		w.short++
		if !errors.Is(err, errNoBroker) && !errors.Is(err, memory.ErrDisconnected) {
			w.violate("a sweep ends with %v", err)
		}
	}
	if out.Records > 0 {
		w.sweeps++
	}
	batches, others := map[stream.Round]bool{}, map[stream.Round]string{}
	for _, m := range w.broker.Dump() {
		at, bad := stream.ParseSubject(m.Subject)
		must(bad)
		switch {
		case m.Stream == stream.Reports || at.Round == 0:
		case at.Verb == "batch":
			batches[at.Round] = true
		case !w.isSwept(m.Subject): // else it was put again
			others[at.Round] = m.Subject
		}
	}
	if err == nil && unknown == nil {
		at, bad := stream.ParseSubject(newest.Subject)
		must(bad)
		for r := range batches {
			over := w.closed(r)
			if r+stream.KeptRounds < at.Round && !over.IsZero() && newest.Time.Sub(over) > age && !w.isSwept(name.Batch(r)) {
				w.violate("round %d is old, and its batch stands after a sweep, with round %d as the newest", r, at.Round)
			}
		}
	}
	for r, subject := range others {
		switch {
		case err == nil && r < out.Before:
			w.violate("%s stands after a sweep of all before round %d", subject, out.Before)
		case w.isSwept(name.Batch(r)) && !batches[r] && len(w.gone) == 0:
			w.violate("a sweep removed the batch of round %d before %s", r, subject)
		}
	}
}

// closed returns the time at which the first Close of a round was seen.
func (w *world) closed(r stream.Round) time.Time {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	return w.book.over[r]
}

// auditCrowd holds the batches of the crowd, of which single users are not seen, against what their devices say.
func (w *world) auditCrowd(record) {
	if !w.Years {
		return
	}
	crowd := w.Publishers * w.Rows
	sent, in, counted := map[uint64]int{}, map[uint64]int{}, 0
	for _, c := range w.crowds {
		for _, t := range c.reports {
			sent[t.round]++
		}
		for _, p := range c.participations() {
			if p.State == participation.Counted {
				counted++
			}
		}
	}
	seats := w.seats()[crowd]
	for _, s := range seats {
		if in[s.round]++; in[s.round] > sent[s.round] {
			w.violate("round %d: %d of the crowd are in the batch, and %d were sent", s.round, in[s.round], sent[s.round])
		}
	}
	if len(seats) != counted {
		w.violate("%d of the crowd are counted, and %d are in batches", counted, len(seats))
	}
}
