package wording

import (
	"testing"

	"github.com/panlearn/panlearn/stream/wire"
)

// TestRoundsInWords: looks are distinguished from rounds of gradients, and the users of these range from the smallest
// to the largest cohort.
func TestRoundsInWords(t *testing.T) {
	look := &wire.Phase{Statistic: wire.Statistic_STATISTIC_MOMENTS, Users: 40, Rounds: 1, Cohort: 40, RoundsPerUser: 1}
	gradients := func(users, rounds, cohort uint64, answers uint32) *wire.Phase {
		return &wire.Phase{Users: users, Rounds: rounds, Cohort: cohort, RoundsPerUser: answers}
	}
	for want, c := range map[string]struct {
		phases []*wire.Phase
		rounds uint64
	}{
		"4 rounds, 3 of gradients of 100 to 180 users": {[]*wire.Phase{look, gradients(100, 1, 100, 1), gradients(141, 1, 141,
			1), gradients(180, 1, 180, 1)}, 4},
		"3 rounds, 2 of gradients of 100 users":  {[]*wire.Phase{look, gradients(200, 2, 100, 1)}, 3},
		"13 rounds, 12 of gradients of 90 users": {[]*wire.Phase{look, gradients(90, 12, 90, 12)}, 13},
		"9 rounds of 100 to 107 users":           {[]*wire.Phase{gradients(907, 9, 100, 1)}, 9},
		"1 round of 100 users":                   {[]*wire.Phase{gradients(100, 1, 100, 1)}, 1},
	} {
		if got := Rounds(&wire.Plan{Phases: c.phases}, c.rounds); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
