package campaign

import (
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/ledger"
)

// A broken world has one part that does not keep its promise.
type broken struct {
	link    func(*link)                                // rewires a life's connection
	store   func(*link, *storetest.Memory) state.Store // replaces the learner's disk
	device  func(stream.Transport) stream.Transport    // the replies that a device gets to its publishes
	ledger  func(ledger.Ledger) ledger.Ledger          // replaces the devices' ledgers
	spends  bool                                       // devices take as much as a policy can allow
	forgets bool                                       // each life of a publisher finds an empty store
	forges  bool                                       // somebody sends reports that no device made
	loses   []string                                   // records that the operation "lose these" is about
}

// small is a task of three rounds with users to spare.
var small = plan{Rounds: 3, Cohort: 4, Minimum: 4, Publishers: 2, Rows: 12, Pace: 500 * time.Millisecond, Bundle: 1,
	Sealed: true, Seed: 7}

// plain returns small without sealed reports: the broker's operator is trusted.
func plain() plan {
	p := small
	p.Sealed = false
	return p
}

// together returns a task of four rounds of the same users, then one of others.
func together() plan {
	p := small
	p.Rounds, p.Together, p.First = 1, 4, true
	return p
}

// asking returns small with users who ask one by one.
func asking() plan {
	p := small
	p.Gateway, p.Afford = true, 3
	return p
}

// thrifty returns asking, with a policy that buys one participation, and rounds that close though nobody
// joins any more.
func thrifty() plan {
	p := asking()
	p.Afford, p.Minimum, p.Deadline = 1, 1, 5*time.Second
	return p
}

// one returns asking, with a policy that buys one participation and a broker that answers with sequences
// beyond every cutoff.
func one() plan {
	p := asking()
	p.Afford, p.Lie, p.Pace = 1, beyond, 1500*time.Millisecond // who waits again is there before who is new
	return p
}

// three returns one, with a policy that buys three participations.
func three() plan {
	p := one()
	p.Afford = 3
	return p
}

// overtaken has the first stage cut off as it is about to claim, until the second one has released the round.
var overtaken = []op{
	{0, "crash", 2, 0}, {0, "trap", 1, 40}, {time.Second, "start", 2, 0}, {40 * time.Second, "pass", 0, 0},
}

// torn has the learner's disk fail at the commit of the first round.
var torn = []op{{400 * time.Millisecond, "disk", 0, 0}, {2 * time.Second, "pass", 0, 0}}

// restarted is a gateway that is killed after its first users were counted, and comes back.
var restarted = []op{{1680 * time.Millisecond, "crash", 3, 0}, {0, "start", 3, 0}}

// late is a gateway that is killed after the task's end, and comes back.
var late = []op{{30 * time.Second, "crash", 3, 0}, {0, "start", 3, 0}, {time.Second, "pass", 0, 0}}

// on lets a lie be told for a while.
var on = []op{{20 * time.Second, "pass", 0, 0}}

// TestBrokenPartsAreSeen: each of these breaks one promise that the system is built on, and each is seen; the same
// campaign with the part whole is without a fault.
func TestBrokenPartsAreSeen(t *testing.T) {
	for _, c := range []struct {
		name   string
		plan   plan
		ops    []op
		broken func() broken
		seen   []string // among the violations
	}{
		{"a broker that overwrites what is written once", small, overtaken, overwrites,
			[]string{"claim.1: 2 different messages stood there", "batch.1: 2 different messages stood there"}},
		{"a broker that forgets claims", small, nil, losesClaims, []string{"is not the claimed one"}},
		{"a broker that makes up sequences", small, nil, inflates,
			[]string{"is counted 3 times", "and a report of it may have been"}},
		{"a broker that makes up sequences, to users who ask", asking(), nil, inflates,
			[]string{"was told uncounted", "and is in the batch of round"}},
		{"a broker that acknowledges and keeps nothing", asking(), nil, drops,
			[]string{"and in no batch, though nothing happened to stages and broker"}},
		{"a broker that refuses and keeps", thrifty(), nil, denies, []string{"was told uncounted",
			"and is in the batch of round"}},
		{"a device that believes other answers than it was shown", asking(), nil, misreads, []string{"and it was shown"}},
		{"a ledger in which a further round is free", three(), on, paysOnce, []string{"batches that hold it cost",
			"its device's ledger says"}},
		{"a device that does not keep its limit", one(), on, func() broken { return broken{spends: true} },
			[]string{"batches that hold it cost", "its policy allows"}},
		{"report ids that nothing authenticates", plain(), nil, renames, []string{"is counted 2 times"}},
		{"a learner's disk that acknowledges and keeps nothing", small, []op{{1200 * time.Millisecond, "crash", 0, 0}}, lies,
			[]string{"that is not on its disk"}},
		{"a learner that announces before it commits", small, nil, announces, []string{"that is not on its disk"}},
		{"a learner that keeps its model in the middle of a batch", small, torn, halves,
			[]string{"is not what the batches make"}},
		{"a device that forgets whom it charged", small, restarted, func() broken { return broken{forgets: true} },
			[]string{"is counted 2 times"}},
		{"a gateway that forgets what it told", asking(), late, func() broken { return broken{forgets: true} },
			[]string{", and later uncounted in round 0", "; its device says fresh",
				"was told that it was never sent, and it was charged before", "its device's ledger says 0"}},
		{"a device that forgets which rounds of its phase it answered", together(), restarted,
			// the fifth time it is counted, or not: that is the last round's draw
			func() broken { return broken{forgets: true} }, []string{"user 0 is in the batch of round 1, its device says"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := play(t, c.plan, c.ops, broken{}); len(r.violations) > 0 || !r.ended {
				t.Errorf("with the part whole: ended %v, %q", r.ended, r.violations)
			}
			all := strings.Join(play(t, c.plan, c.ops, c.broken()).violations, "\n")
			for _, want := range c.seen {
				if !strings.Contains(all, want) {
					t.Errorf("%q is not among the violations:\n%s", want, all)
				}
			}
			t.Log(all)
		})
	}
}

// TestRenamedReportsAreRefused: a broker stores each sealed report a second time under a new id, and none of
// the copies is counted.
func TestRenamedReportsAreRefused(t *testing.T) {
	r := play(t, small, nil, renames())
	if len(r.violations) > 0 || !r.ended || r.examined[stage.Undecryptable] == 0 {
		t.Errorf("ended %v, examined %v, %q", r.ended, r.examined, r.violations)
	}
}
