package kills

import (
	"maps"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/wire"
)

// sound returns the evidence of a campaign of three rounds, the second of them void, with two users each and
// one who was not needed.
func sound() *evidence {
	e := &evidence{standing: map[string]stream.Message{}, seen: map[string][]byte{}, rounds: map[uint64]*round{},
		task: &wire.Task{Plan: &wire.Plan{Phases: []*wire.Phase{{Users: 4, Rounds: 2, Cohort: 2, Minimum: 2,
			RoundsPerUser: 1}}}}, end: &wire.End{LastRound: 3}}
	rows := []participation.Record{{State: participation.Uncounted, Draw: participation.Draw{Round: 1}}}
	for n := uint64(1); n <= 3; n++ {
		void := n == 2
		e.rounds[n] = &round{
			announced: &wire.Round{Round: n, Step: min(n, 2)}, opens: 1, claim: &wire.Claim{Round: n, Attempt: 1},
			batch:  &wire.Batch{Round: n, Attempt: 1, Users: 2, Cutoff: 5, Void: void},
			closes: []*wire.Close{{Round: n, Attempt: 1, Cutoff: 5, Void: void}},
		}
		entry := statedir.LedgerEntry{Round: n, Attempt: 1, Users: 2, Kind: "spent"}
		fate := participation.Counted
		if void {
			e.rounds[n].batch.Users, entry.Users, entry.Kind, fate = 0, 0, "void", participation.Unknown
		}
		e.ledger.Entries = append(e.ledger.Entries, entry)
		e.ledger.Chain = append(e.ledger.Chain, statedir.LedgerEntry{Kind: "reserved", Round: n}, entry)
		for range 2 {
			rows = append(rows, participation.Record{State: fate, Draw: participation.Draw{Round: stream.Round(n)}})
		}
		m := stream.Message{Subject: name.Batch(stream.Round(n)), Sequence: n, Data: []byte{byte(n)}}
		e.standing[m.Subject], e.seen[m.Subject] = m, m.Data
	}
	e.ledger.Intact = true
	e.status = statedir.Status{Users: 4, Ended: true, Round: 3}
	e.publishers = []publisher{{name: "publisher0", rows: rows, block: 1, summary: device.Summary{Events: 7, Units: 7,
		Counted: 4, Unknown: 2, Uncounted: 1, ChargedUncounted: 1, Rounds: 3}}}
	return e
}

// TestTamperedEvidenceIsSeen changes one thing after the other in sound evidence, as a broken promise would, and
// insists that the audit sees it.
func TestTamperedEvidenceIsSeen(t *testing.T) {
	e := sound()
	if violations, s := e.audit(); len(violations) > 0 || s.fit != 2 || s.void != 1 {
		t.Fatalf("sound: %q, %+v", violations, s)
	}
	const full = 3
	r, user := e.rounds[full], &e.publishers[0].rows[6]
	for _, c := range []struct {
		name, want string
		by         func() (restore func())
	}{
		{"a user is counted in a later round again", "the devices know of", func() func() {
			return swap(&e.publishers[0].rows[1].Draw.Round, 3)
		}},
		{"a user of the batch calls itself uncounted", "the devices know of",
			func() func() { return swap(&user.State, participation.Uncounted) }},
		{"a user is undecided", "and the task is over", func() func() { return swap(&user.State, participation.Charged) }},
		{"a summary with a user too many", "its store says", func() func() {
			return swap(&e.publishers[0].summary.Counted, e.publishers[0].summary.Counted+1)
		}},
		{"a summary with a user who may not go again, and never went", "cost too much to go again", func() func() {
			return swap(&e.publishers[0].summary.NotAgain, 2)
		}},
		{"a summary with nobody who paid for nothing", "its store says", func() func() {
			return swap(&e.publishers[0].summary.ChargedUncounted, 0)
		}},
		{"a batch that nobody claimed", "is not the claimed one", func() func() { return swap(&r.claim, nil) }},
		{"a claim of another attempt", "is not the claimed one", func() func() {
			return swap(&r.claim.Attempt,
				r.claim.Attempt+1)
		}},
		{"a batch of fewer users than allowed", "users of", func() func() { return swap(&r.batch.Users, uint64(1)) }},
		{"a round without a batch", "has no batch", func() func() { return swap(&r.batch, nil) }},
		{"a batch that turned void", "is void, and", func() func() { return swap(&r.batch.Void, true) }},
		{"a device that a void round counted", "is void, and", func() func() {
			return swap(&e.publishers[0].rows[3].State,
				participation.Counted)
		}},
		{"a device of a round that never was", "which never was", func() func() { return swap(&user.Draw.Round, 4) }},
		{"a round too few", "the plan has", func() func() { return swap(&e.task.Plan.Phases[0].Rounds, 3) }},
		{"a Close of another cutoff", "do not say what its batch says", func() func() {
			return swap(&r.closes[0].Cutoff,
				r.closes[0].Cutoff+1)
		}},
		{"two Close", "do not say what its batch says",
			func() func() { return swap(&r.closes, append(r.closes, r.closes[0])) }},
		{"a record that was replaced", "does not stand any more", func() func() {
			m := e.standing[name.Batch(full)]
			e.standing[m.Subject] = stream.Message{Subject: m.Subject, Sequence: m.Sequence, Data: append([]byte{0}, m.Data...)}
			return func() { e.standing[m.Subject] = m }
		}},
		{"a record that was lost", "does not stand any more", func() func() {
			m := e.standing[name.Batch(full)]
			delete(e.standing, m.Subject)
			return func() { e.standing[m.Subject] = m }
		}},
		{"a task without its end", "no End stands", func() func() { return swap(&e.end, nil) }},
		{"an End of another round", "End at round", func() func() { return swap(&e.end.LastRound, e.end.LastRound+1) }},
		{"a ledger that is not whole", "ledger: intact false", func() func() { return swap(&e.ledger.Intact, false) }},
		{"a round that nobody charged", "ledger: intact true", func() func() {
			return swap(&e.ledger.Entries,
				e.ledger.Entries[1:])
		}},
		{"a round that is charged twice", "ledger: intact true", func() func() {
			return swap(&e.ledger.Chain, append([]statedir.LedgerEntry{e.ledger.Chain[0]}, e.ledger.Chain...))
		}},
		{"a ledger of other users", "ledger: entry", func() func() { return swap(&e.ledger.Entries[full-1].Users, 1) }},
		{"a status of other users", "status:", func() func() { return swap(&e.status.Users, e.status.Users+1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			restore := c.by()
			violations, _ := e.audit()
			restore()
			if !strings.Contains(strings.Join(violations, "\n"), c.want) {
				t.Errorf("%q is not among %q", c.want, violations)
			}
		})
	}
	if violations, _ := e.audit(); len(violations) > 0 {
		t.Errorf("what was changed was not put back: %q", violations)
	}
}

func swap[T any](at *T, value T) (restore func()) {
	was := *at
	*at = value
	return func() { *at = was }
}

// TestWhatIsNotOnDiskIsSeen: a learner that announces first and commits afterwards leaves such a folder when it is
// killed in between.
func TestWhatIsNotOnDiskIsSeen(t *testing.T) {
	disk := state.Checkpoint{Cursor: state.Cursor{Round: 2}, Task: []byte("task"), NextRound: []byte("round 3")}
	sound := map[string][]byte{name.Task(): disk.Task, name.Round(1): []byte("round 1"), name.Round(3): disk.NextRound,
		name.Claim(3): []byte("claim")}
	if got := notOnDisk(sound, disk, nil); len(got) > 0 {
		t.Errorf("sound: %q", got)
	}
	for subject, data := range map[string]string{name.Round(4): "round 4", name.Round(3): "another round 3",
		name.End(): "end", name.Task(): "another task"} {
		book := maps.Clone(sound)
		book[subject] = []byte(data)
		if got := notOnDisk(book, disk, nil); len(got) != 1 || !strings.Contains(got[0], subject) {
			t.Errorf("%s: %q", subject, got)
		}
	}
	if got := notOnDisk(sound, state.Checkpoint{}, state.ErrEmpty); len(got) != 3 {
		t.Errorf("an empty disk: %q", got)
	}
}
