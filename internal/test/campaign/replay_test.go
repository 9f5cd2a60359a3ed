package campaign

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// replay lets another learner, with an empty disk, read the batches that are on the broker: it must write, on
// its disk and for others to see, the same as the learner of the campaign. How long rounds took it cannot
// know: it takes the deadlines of the rounds on the broker, and shows by its own bytes that it took nothing
// else.
func (w *world) replay() {
	broker, err := memory.New(memory.Config{})
	must(err)
	ctx, stop := context.WithCancel(context.Background())
	public := map[string][]byte{}
	applied := w.applied(ctx)
	given, ended := false, uint64(0) // the end was asked for
	for _, subject := range w.book.order() {
		at, _ := stream.ParseSubject(subject)
		for _, data := range w.book.of(subject) {
			switch at.Verb {
			case "stage":
				_, err = broker.PutOnce(ctx, subject, data)
			case "batch": // the one that the learner's ledger names, if there was another too
				if applied[state.Hash(stream.HashOf(data))] {
					_, err = broker.PutOnce(ctx, subject, data)
				}
			case "end":
				if given = w.Endless; given {
					ended = body(data, &wire.End{}).LastRound
					_, err = broker.PutOnce(ctx, subject, data)
				}
				fallthrough
			case "task", "round":
				public[subject] = data
			}
			must(err)
		}
	}
	disk := storetest.NewMemory()
	c := w.service(broker, disk)
	c.Finish, c.AcceptRollback = nil, given
	if at, err := w.disk.Load(ctx); err == nil { // a Task is planned once, and may hold what is drawn
		c.Prepare = func() (*wire.Task, error) { return body(at.Task, &wire.Task{}), nil }
		c.Records = announced{broker, at.Cursor.TaskHash, public}
	}
	s, err := service.New(c)
	must(err)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	time.Sleep(time.Minute) // no fault delays it: it waits where no batch is there
	stop()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		w.violate("the batches do not make a learner: %v", err)
	}
	w.sameDisk(disk)
	for _, m := range broker.Dump() {
		switch at, _ := stream.ParseSubject(m.Subject); at.Verb {
		case "task", "round", "end":
			stood, seen := public[m.Subject]
			if !seen && len(w.said) > 0 { // it ended before it could announce it
				continue
			}
			if !bytes.Equal(stood, m.Data) && !w.remade() {
				w.violate("%s is not what a learner computes from the batches", m.Subject)
			}
			delete(public, m.Subject)
		}
	}
	for subject := range public {
		at, _ := stream.ParseSubject(subject)
		if w.behind() || w.remade() || given && uint64(at.Round) > ended {
			continue // announced, and not known any more, or given up
		}
		w.violate("%s is nothing that a learner computes from the batches", subject)
	}
	must(disk.Close())
}

// announced are records with all Rounds that a task ever had, by number.
type announced struct {
	stream.Records
	task   state.Hash
	public map[string][]byte
}

// Get implements stream.Records.
func (a announced) Get(ctx context.Context, subject string) (stream.Message, error) {
	m, err := a.Records.Get(ctx, subject)
	at, _ := stream.ParseSubject(subject)
	data, stood := a.public[subject]
	if errors.Is(err, stream.ErrNotFound) && at.Verb == "round" && stood &&
		state.Hash(body(data, &wire.Round{}).TaskHash) == a.task {
		return stream.Message{Subject: subject, Data: data}, nil
	}
	return m, err
}

// sameDisk compares checkpoint and ledger, byte for byte.
func (w *world) sameDisk(other *storetest.Memory) {
	ctx := context.Background()
	got, err := w.disk.Load(ctx)
	want, otherErr := other.Load(ctx)
	if err != nil || otherErr != nil {
		// A disk that went back to before its first commit stays so if its later announcements are on the broker, and the
		// learner reports it.
		if !errors.Is(err, state.ErrEmpty) || !errors.Is(otherErr, state.ErrEmpty) && !w.behind() {
			w.violate("the learner's disk says %v, the other's %v", err, otherErr)
		}
		return
	}
	if w.lost("batch") { // where the batch was
		want.Cursor.BatchSequence = got.Cursor.BatchSequence
	}
	a, err := got.MarshalBinary()
	must(err)
	b, err := want.MarshalBinary()
	must(err)
	if !bytes.Equal(a, b) {
		w.violate("the learner's state of round %d is not what the batches make, which is of round %d", got.Cursor.Round,
			want.Cursor.Round)
	}
	var mine, theirs []state.Entry
	for e, err := range w.disk.Ledger(ctx) {
		must(err)
		mine = append(mine, e)
	}
	for e, err := range other.Ledger(ctx) {
		must(err)
		theirs = append(theirs, e)
	}
	if len(mine) != len(theirs) {
		w.violate("%d ledger entries, the batches make %d", len(mine), len(theirs))
		return
	}
	for i := range mine {
		if mine[i] != theirs[i] {
			w.violate("ledger entry %d is not what the batches make", i+1)
		}
	}
}

// applied returns the hashes of the batches that the learner's ledger names.
func (w *world) applied(ctx context.Context) map[state.Hash]bool {
	all := map[state.Hash]bool{}
	for e, err := range w.disk.Ledger(ctx) {
		must(err)
		all[e.BatchHash] = true
	}
	return all
}
