package httpgateway

import (
	"testing"
	"testing/synctest"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestEventsOfTwoOperators: an event that is posted is shared between two operators, and counted.
func TestEventsOfTwoOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, columns, options{two: true})
		defer w.end()
		w.openRound()
		w.closeRounds()
		w.expect("?wait=30&until=outcome", goodEvent, 200, "counted")
		sent := 0
		for _, m := range w.broker.Dump() {
			if m.Stream != stream.Reports {
				continue
			}
			var r wire.Report
			must(t, stream.Unmarshal(m.Data, &r))
			if sent++; len(r.PublicShares) != 1 || len(r.HelperCiphertext) == 0 {
				t.Errorf("a report of %d public shares, and %d bytes for the helper", len(r.PublicShares), len(r.HelperCiphertext))
			}
		}
		if sent != 1 {
			t.Errorf("%d reports, want 1", sent)
		}
	})
}

// TestPolicyOfOperators: a gateway whose policy pins one operator of two takes no event.
func TestPolicyOfOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, columns, options{two: true, silent: true})
		w.end()
		o := options{}
		o.policy.StageKey = w.task.StageKey
		w.put(w.name().Task(), w.learner, w.task)
		w.start(o)
		defer w.end()
		_, _ = w.device.Agreement(t.Context())
		if status, answer := w.post("", goodEvent); status < 400 {
			t.Errorf("%d %v", status, answer)
		}
	})
}
