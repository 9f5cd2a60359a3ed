package campaign

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// A book remembers all bytes that anybody ever saw standing on a subject that is written once.
type book struct {
	mu       sync.Mutex
	subjects []string            // in the order in which they were seen
	versions map[string][][]byte // different ones, in order; more than one is a broken promise
	examined map[stage.Reason]int
	begun    map[stream.Round]time.Time // a stage was about to put the first Open
	over     map[stream.Round]time.Time // a Close was seen
}

func newBook() *book {
	return &book{versions: map[string][][]byte{}, examined: map[stage.Reason]int{},
		begun: map[stream.Round]time.Time{}, over: map[stream.Round]time.Time{}}
}

// saw records a message that a process was shown.
func (w *world) saw(m stream.Message) {
	at, err := stream.ParseSubject(m.Subject)
	if err != nil || at.Verb == "lease" {
		return
	}
	b := w.book
	b.mu.Lock()
	defer b.mu.Unlock()
	if at.Verb == "close" {
		once(b.over, at.Round)
	}
	for _, v := range b.versions[m.Subject] {
		if bytes.Equal(v, m.Data) {
			return
		}
	}
	if b.versions[m.Subject] == nil {
		b.subjects = append(b.subjects, m.Subject)
	}
	b.versions[m.Subject] = append(b.versions[m.Subject], bytes.Clone(m.Data))
	if n := len(b.versions[m.Subject]); n > 1 && !w.mayDiffer(at, m.Subject, b.versions[m.Subject]) {
		w.violate("%s: %d different messages stood there", m.Subject, n)
	}
}

func (w *world) examined(r stage.Reason) {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	w.book.examined[r]++
}

// once notes when something happened first.
func once(times map[stream.Round]time.Time, r stream.Round) {
	if _, known := times[r]; !known {
		times[r] = time.Now()
	}
}

// span returns the time from before the first Open of a round to its Close, or to now.
func (b *book) span(round uint64) (from, to time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if to = b.over[stream.Round(round)]; to.IsZero() {
		to = time.Now()
	}
	return b.begun[stream.Round(round)], to
}

// size counts what was ever seen: where it grows, something happens.
func (b *book) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.versions)
}

// first returns the first message seen on a subject, nil for none.
func (b *book) first(subject string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v := b.versions[subject]; len(v) > 0 {
		return v[0]
	}
	return nil
}

// body takes the message out of its envelope. Who signed it is checked by those who act on it.
func body[M proto.Message](data []byte, into M) M {
	var signed wire.Signed
	must(stream.Unmarshal(data, &signed))
	must(stream.Unmarshal(signed.Body, into))
	return into
}

// before checks and notes every put before it is made.
func (w *world) before(by *process, subject string, data []byte) {
	at, err := stream.ParseSubject(subject)
	must(err)
	switch at.Verb {
	case "task", "round", "end":
		w.onDisk(by, at, data)
	case "open":
		w.book.mu.Lock()
		once(w.book.begun, at.Round)
		w.book.mu.Unlock()
	case "batch":
		b := body(data, &wire.Batch{})
		claims := w.book.of(name.Claim(at.Round))
		if b.Void {
			break
		}
		if !slices.ContainsFunc(claims, func(c []byte) bool { return body(c, &wire.Claim{}).Attempt == b.Attempt }) {
			w.violate("%s releases round %d, attempt %d, without the claim of that attempt", by.name, b.Round, b.Attempt)
		}
	}
}

// onDisk insists that the learner's bytes are committed, and a round reserved, before anybody sees them.
func (w *world) onDisk(by *process, at stream.Address, data []byte) {
	w.mu.Lock()
	disk := w.disk
	w.mu.Unlock()
	ctx := context.Background()
	c, err := disk.Load(ctx)
	if err != nil {
		if by.current().link.enter() == nil {
			w.violate("%s puts %s, and its disk says: %v", by.name, at.Verb, err)
		}
		return
	}
	if want := map[string][]byte{"task": c.Task, "round": c.NextRound, "end": c.End}[at.Verb]; !bytes.Equal(data, want) {
		w.violate("%s puts %s %d that is not on its disk", by.name, at.Verb, at.Round)
	}
	if at.Verb != "round" {
		return
	}
	if r := c.Ledger.Open; r.Round != uint64(at.Round) {
		w.violate("%s announces round %d, which is not reserved", by.name, at.Round)
	}
}

// of returns the messages seen on a subject.
func (b *book) of(subject string) [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.versions[subject])
}

// all returns every record that was ever seen, by subject.
func (b *book) all() map[string][][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make(map[string][][]byte, len(b.versions))
	for subject, versions := range b.versions {
		all[subject] = slices.Clone(versions)
	}
	return all
}

// order returns the subjects in the order in which they were first seen.
func (b *book) order() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.subjects)
}
