package stage

import (
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/panlearn/panlearn/shuffle/split"
)

// TestHelperAwaySince: a helper is away since it was first waited for or answered last, and not since that was noticed.
func TestHelperAwaySince(t *testing.T) {
	start := time.Date(2030, 5, 6, 12, 0, 0, 0, time.UTC)
	for name, look := range map[string]func(e *environment){
		"it does not join": func(e *environment) {
			p := &collecting{environment: e, attempt: &attempt{environment: e, round: round{number: 1}, number: 1,
				pair: &pairing{}, started: start}}
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
				pair: &pairing{exchange: exchange{heard: start, pings: 3}}, started: start.Add(-time.Hour)}}
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
