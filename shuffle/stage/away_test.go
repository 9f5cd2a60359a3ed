package stage

import (
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestSilentHelperBlamesNoDevice: places that end while the helper owes answers are not taken for a flood of devices that
// ask and send nothing, which would end the attempt and take all places away.
func TestSilentHelperBlamesNoDevice(t *testing.T) {
	start := time.Date(2030, 5, 6, 12, 0, 0, 0, time.UTC)
	params := randomizer.Params{Dim: 2, ClipNorm: 1, Levels: 1, FloorTrials: 10, Coin: randomizer.Fair}
	sizes, err := split.Sizes(params.Dim, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		owes   uint64 // users whom the helper has not decided
		silent time.Duration
		blamed bool
	}{{1, 4 * time.Second, false}, {1, 3 * time.Second, true}, {0, 4 * time.Second, true}} {
		leader, err := split.NewLeader(split.Config{X: split.Attempt{Round: 1, Number: 1}, Params: params, Cohort: 100, Minimum: 1, MaxBundle: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range test.owes {
			if job, outcome := leader.Take([]split.User{{ID: [16]byte{byte(i)}, Public: make([]byte, sizes.Public)}}, nil, nil); job == nil {
				t.Fatal(outcome)
			}
		}
		// Under floors a flood is said, and the attempt goes on: what was said is looked at.
		e := &environment{places: &places{heard: true}, task: &wire.Task{Plan: &wire.Plan{Trust: wire.Trust_TRUST_PAN}},
			Config: Config{Task: "churn", LeaseTTL: 15 * time.Second, Logger: slog.New(slog.DiscardHandler)}}
		table := newTable(100, 50)
		table.started, table.counts = start.Add(-time.Hour), PlaceCounts{Granted: 100, Unused: 80}
		p := &collecting{environment: e, attempt: &attempt{environment: e, round: round{number: 1}, number: 1, table: table,
			pair: &pairing{leader: leader, exchange: exchange{heard: start, lease: e.LeaseTTL}}}}
		if _, err := p.flooded(start.Add(test.silent)); err != nil {
			t.Fatal(err)
		}
		if table.warned != test.blamed {
			t.Errorf("%d users wait for a helper that is silent for %v: devices are blamed %t, want %t", test.owes, test.silent,
				table.warned, test.blamed)
		}
	}
}

// TestHelperAwaySince: a helper is away since it was first waited for or answered last, and not since that was noticed.
func TestHelperAwaySince(t *testing.T) {
	start := time.Date(2030, 5, 6, 12, 0, 0, 0, time.UTC)
	for name, look := range map[string]func(e *environment){
		"it does not join": func(e *environment) {
			p := &collecting{environment: e, attempt: &attempt{environment: e, round: round{number: 1}, number: 1,
				pair: &pairing{}, term: term{started: start}}}
			for _, after := range []time.Duration{29 * time.Second, 31 * time.Second} {
				if !e.helper.IsZero() {
					t.Errorf("away before two leases are over: %v", e.helper)
				}
				if _, err := p.shared(start.Add(after), effects{subject: e.Task.Join(1, 1)}, result{}); err != nil {
					t.Fatal(err)
				}
			}
		},
		"it does not answer": func(e *environment) {
			p := &collecting{environment: e, attempt: &attempt{environment: e, round: round{number: 1}, number: 1,
				pair: &pairing{exchange: exchange{heard: start, pings: 3}}, term: term{started: start.Add(-time.Hour)}}}
			if _, err := p.shared(start.Add(time.Minute), effects{call: collect}, result{}); err != nil {
				t.Fatal(err)
			}
		},
		"it does not answer requests": func(e *environment) {
			p := &collecting{environment: e, attempt: &attempt{environment: e, round: round{number: 1}, number: 1,
				pair: &pairing{exchange: exchange{heard: start, lease: e.LeaseTTL, sent: map[uint64]*sending{7: {times: 3}}}}}}
			for _, after := range []time.Duration{7 * time.Second, 8 * time.Second} {
				if !e.helper.IsZero() {
					t.Errorf("away before half a lease is over: %v", e.helper)
				}
				if _, err := p.shared(start.Add(after), effects{call: collect}, result{}); err != nil {
					t.Fatal(err)
				}
			}
		},
		"it does not finish": func(e *environment) {
			p := &finishing{environment: e, ending: split.NewEnding(split.Prepared{})}
			for i := range 3 {
				if _, err := p.handle(start.Add(time.Duration(i)*time.Minute), effects{call: exchanged}, result{}); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		e := &environment{jitter: rand.New(rand.NewPCG(1, 1)), Config: Config{Task: "churn", LeaseTTL: 15 * time.Second, Poll: time.Second,
			Logger: slog.New(slog.DiscardHandler)}}
		look(e)
		if !e.helper.Equal(start) {
			t.Errorf("%s: away since %v, want %v", name, e.helper, start)
		}
	}
}
