package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestStatementsFromAModel: the epsilon that a start states is added to the task's, if it covers as large a
// unit; otherwise the sentence states that it does not.
func TestStatementsFromAModel(t *testing.T) {
	const public, rows, people = "event 0", "event 4", "user 4"
	starts := map[string]*wire.StartPrivacy{
		"":     nil, // of a plan that an earlier version made
		public: {Task: "a"},
		rows:   {Task: "a", Epsilon: 4, Delta: 1e-6},
		people: {Task: "a", Epsilon: 4, Delta: 1e-6, Unit: wire.Unit_UNIT_USER},
	}
	event, user := wording.Kind{Protects: "event"}, wording.Kind{Protects: "user"}
	own := func(k wording.Kind) Statement {
		return Statement{Kind: k, Epsilon: 0.5, Delta: 1e-6, HonestFraction: accounting.One}
	}
	for _, c := range []struct {
		own   Statement
		start string
		sums  bool
		says  string
	}{
		{own(event), rows, true,
			"people who are in task a too, whose model learning began with (epsilon 4, delta 1e-06); epsilon 0.5, delta 1e-06 are for people who are in this task alone"},
		{own(event), people, true, "people who are in task a too"},
		{own(user), people, true, "people who are in task a too"},
		{own(user), rows, false, "for a person with several events there no epsilon of both together is known"},
		{own(event), public, false, "states no epsilon, so it has to be public"},
		{own(event), "", false, "states no epsilon, so it has to be public"},
		{own(event).Known(), rows, false, "which states epsilon 4, delta 1e-06 for its own data"},
		{Unprotected(event), rows, false, "which states epsilon 4, delta 1e-06 for its own data"},
	} {
		got := c.own.From(&wire.Plan{Start: []float64{1}, StartPrivacy: starts[c.start]})
		want, delta := c.own.Epsilon, c.own.Delta
		if c.sums {
			want, delta = 4.5, 2e-6
		}
		if got.Start.Adds != c.sums || got.Epsilon < want || got.Epsilon > want*(1+1e-15) || got.Delta < delta ||
			got.Delta > delta*(1+1e-15) {
			t.Errorf("%+v from %q: %+v", c.own, c.start, got)
		}
		if text := got.String(); !strings.Contains(text, c.says) {
			t.Errorf("%+v from %q says %s", c.own, c.start, text)
		}
		doc, err := json.Marshal(got)
		var back struct {
			Epsilon *float64
			Start   struct{ Epsilon *float64 }
		}
		if err == nil {
			err = json.Unmarshal(doc, &back)
		}
		if err != nil || (back.Epsilon == nil) != !c.own.protects() ||
			(back.Start.Epsilon == nil) != (starts[c.start].GetEpsilon() == 0) {
			t.Errorf("%s: %v", doc, err)
		}
	}
	if s := own(event).From(&wire.Plan{}); s.Start != nil || s.Epsilon != 0.5 || strings.Contains(s.String(), "began") {
		t.Errorf("without a start: %+v", s)
	}
}
