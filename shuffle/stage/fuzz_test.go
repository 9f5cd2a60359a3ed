package stage

import (
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// FuzzExamine: whatever bytes come as a report end in a reason, move the totals by at most their own users, and leave
// the attempt working.
func FuzzExamine(f *testing.F) {
	w := newWorld(f, plan{cohort: 1 << 12, suite: wire.Suite_SUITE_NONE, bundle: 3})
	a, in := w.attempt(1)
	good := func() []byte { return w.seal(in, [][16]byte{randomID()}, w.plaintext(1)) }
	f.Add(good(), w.name.Report(1, 1))
	f.Add(w.seal(in, [][16]byte{randomID(), randomID()}, w.plaintext(1, 2)), w.name.Report(1, 2))
	f.Add([]byte{}, "")
	f.Fuzz(func(t *testing.T, data []byte, subject string) {
		w.t = t
		if a.mixer.Full() {
			a.erase()
			a, in = w.attempt(1)
		}
		for _, subject := range []string{subject, w.name.Report(1, 1)} {
			before := a.mixer.Users()
			got := a.examine(&stream.Message{Subject: subject, Sequence: 1, Data: data})
			if counted := a.mixer.Users() - before; got >= reasons || counted > 3 || (counted > 0) != (got == Accepted) {
				t.Fatalf("%v counted %d users", got, counted)
			}
		}
		if a.mixer.Full() {
			return
		}
		if got := a.examine(w.message(in, 1, good())); got != Accepted {
			t.Fatalf("a good report after it: %v", got)
		}
	})
}

// FuzzLeaseRecord: whatever stands as a lease is respected for a bounded time and never taken for ours by accident.
func FuzzLeaseRecord(f *testing.F) {
	l := newLease("lease", [16]byte{1}, 10*time.Second, time.Second)
	f.Add(l.record(time.Second), uint64(3))
	f.Add([]byte("garbage"), uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, sequence uint64) {
		now := time.Unix(1e9, 0)
		l := newLease("lease", [16]byte{1}, 10*time.Second, time.Second)
		l.saw(now, &stream.Message{Sequence: max(1, sequence), Data: data})
		if l.holds(now) || l.patience() > 2*MaxLeaseTTL {
			t.Fatalf("holds %t, patience %v", l.holds(now), l.patience())
		}
		if _, write := l.next(now.Add(MaxLeaseTTL)); !write {
			t.Fatal("not taken over after the longest time")
		}
	})
}
