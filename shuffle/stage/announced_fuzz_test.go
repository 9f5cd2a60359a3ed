package stage

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// FuzzAnnounced: whatever well-formed task and round a learner signs, the stage refuses them, or can open an attempt that
// takes a report of no more than it says and then erases all.
func FuzzAnnounced(f *testing.F) {
	w := newWorld(f, plan{rounds: 2, cohort: 12, minimum: 5, bundle: 3, suite: wire.Suite_SUITE_X25519, deadline: time.Minute})
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
		if got := a.examine(&stream.Message{Subject: w.name.Report(stream.Round(r.Round), 1), Sequence: 1, Data: make([]byte, 64)}); got == Accepted {
			t.Error("64 zeros are a report")
		}
		if a.largest <= 0 || a.mixer.Users() != 0 {
			t.Errorf("reports of %d bytes, %d users", a.largest, a.mixer.Users())
		}
	})
}

// canonical is a message's canonical form.
func canonical(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := stream.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
