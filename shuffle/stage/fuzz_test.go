package stage

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

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

// FuzzLeaseRecord: any bytes in the lease's record are respected for a bounded time and never taken for ours by
// accident.
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

// FuzzAnnounced: whatever well-formed task and round a learner signs, the stage refuses them, or can open an attempt
// that takes a report of no more than it says and then erases all.
func FuzzAnnounced(f *testing.F) {
	w := newWorld(f, plan{rounds: 2, cohort: 12, minimum: 5, bundle: 3, suite: wire.Suite_SUITE_X25519,
		deadline: time.Minute})
	pan := newWorld(f, plan{cohort: 4, trust: wire.Trust_TRUST_SHUFFLE_PAN})
	for _, w := range []*world{w, pan} {
		f.Add(canonical(f, w.task), canonical(f, w.round(1, 1)))
	}
	f.Fuzz(func(t *testing.T, task, round []byte) {
		w.t = t
		var m wire.Task
		var r wire.Round
		if stream.Unmarshal(task, &m) != nil || stream.Unmarshal(round, &r) != nil {
			return
		}
		m.LearnerKey, m.StageKey, m.Name = w.learner.Public(), w.stage.Public(), string(w.name)
		signed, err := w.learner.Sign(&m)
		if err != nil {
			return
		}
		hash := stream.HashOf(canonical(t, &m))
		r.TaskHash = hash[:]
		s := w.new(w.config())
		if s.enlist(&stream.Message{Subject: w.name.Task(), Data: signed}) != nil {
			return
		}
		if signed, err = w.learner.Sign(&r); err != nil {
			return
		}
		at, err := s.readRound(&stream.Message{Subject: w.name.Round(stream.Round(r.Round)), Data: signed})
		if err != nil || at.mixer.Params.Dim > 1<<14 {
			return
		}
		a, err := newAttempt(s.environment, at, 1, time.Now())
		if err != nil {
			t.Fatalf("a round that was read cannot be opened: %v", err)
		}
		defer a.erase()
		if got := a.examine(&stream.Message{Subject: w.name.Report(stream.Round(r.Round), 1), Sequence: 1,
			Data: make([]byte, 64)}); got == Accepted {
			t.Error("64 zeros are a report")
		}
		if a.opener.largest <= 0 || a.mixer.Users() != 0 {
			t.Errorf("reports of %d bytes, %d users", a.opener.largest, a.mixer.Users())
		}
	})
}

// canonical returns a message's canonical form.
func canonical(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := stream.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
