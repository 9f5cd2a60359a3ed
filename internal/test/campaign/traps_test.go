package campaign

import (
	"slices"
	"testing"
	"time"
)

// aims returns what lays a trap for the first life of each process of a kind.
func aims(kind string, t trap) broken {
	aimed := map[*process]bool{}
	return broken{link: func(l *link) {
		if (trouble{of: l.owner}).whose() != kind || aimed[l.owner] {
			return
		}
		aimed[l.owner], l.trap = true, &t
		if t.call == "purge" {
			l.w.flood(op{What: 6}) // or there is nothing to purge
		}
	}}
}

// TestTraps: at each kind of call, before and after it, the processes of a kind die or are cut off: all of it
// happens, and what must hold holds. Random campaigns meet some of these calls once or never.
func TestTraps(t *testing.T) {
	calls := map[string][]string{"learner": learnerTraps, "stage": stageTraps, "publisher": {"publish"}}
	soon := []op{{3 * time.Minute, "pass", 0, 0}} // what is down stays down so long
	for kind, all := range calls {
		for i, call := range all {
			if slices.Contains(all[:i], call) {
				continue
			}
			for _, aim := range []trap{{call, false, 0}, {call, true, 0}, {call, true, 20 * time.Second}} {
				if r := play(t, small, soon, aims(kind, aim)); len(r.violations) > 0 || !r.ended || r.sprung[aim.String()] == 0 {
					t.Errorf("%s %v: ended %v, met %v\n%q", kind, aim, r.ended, r.sprung, r.violations)
				}
			}
		}
	}
	// Who claims a round of the same users and dies leaves a step that nobody takes.
	if r := play(t, together(), soon, aims("stage", trap{"claim", true, 0})); len(r.violations) > 0 || !r.ended ||
		r.passed == 0 || r.again == 0 {
		t.Errorf("ended %v, %d void rounds of the same users, %d of whom are counted again\n%q", r.ended, r.passed, r.again,
			r.violations)
	}
	// A user with the outcome that a report came too late takes part again, although it was in time.
	if r := play(t, three(), on, broken{}); len(r.violations) > 0 || !r.ended || r.twice == 0 {
		t.Errorf("ended %v, %d users who were lied to are in batches by several participations\n%q", r.ended, r.twice,
			r.violations)
	}
}
