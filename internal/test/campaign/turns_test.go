package campaign

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A distant device's reports take a while to the broker.
type distant struct{ stream.Transport }

func (d distant) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	time.Sleep(50 * time.Millisecond)
	return d.Transport.Publish(ctx, reports)
}

// TestSomeSilosOfARound: where a round takes some of the organisations, all of which are there at once, few more
// come than it has places for, and those who had fewer turns come first: the task ends with all of its rounds full,
// though no more than one round's blocks are to spare.
func TestSomeSilosOfARound(t *testing.T) {
	for _, local := range []bool{true, false} {
		for seed := range uint64(3) {
			p := plan{Rounds: 5, Cohort: 3, Minimum: 2, Publishers: 6, Rows: 3, Units: 2, Local: local, Afford: 1,
				Deadline: time.Minute, Pace: time.Millisecond, Bundle: 1, Seed: seed}
			t.Run(fmt.Sprintf("local %t, seed %d", local, seed), func(t *testing.T) {
				r := play(t, p, nil, broken{device: func(w stream.Transport) stream.Transport { return distant{w} }})
				if len(r.violations) > 0 || !r.ended || r.real != 5 || r.counted != 15 || r.took > 2*time.Minute {
					t.Errorf("ended %t after %d of 5 rounds, with %d of 15 reports and %d unknown, after %v: %q",
						r.ended, r.real, r.counted, r.unknown, r.took, r.violations)
				}
			})
		}
	}
}

// TestSomeSilosOfManyPasses: where a round of many passes takes some of the organisations, the task ends with
// all of its rounds full, whichever are drawn for them, and nobody is charged for more than the stint,
// whatever comes too late.
func TestSomeSilosOfManyPasses(t *testing.T) {
	for _, local := range []bool{true, false} {
		for seed := range uint64(2) {
			p := plan{Together: 8, Cohort: 3, Minimum: 2, Publishers: 6, Rows: 1, Units: 2, Local: local, Deadline: time.Minute,
				Pace: time.Millisecond, Bundle: 1, Seed: seed}
			t.Run(fmt.Sprintf("local %t, seed %d", local, seed), func(t *testing.T) {
				r := play(t, p, nil, broken{device: func(w stream.Transport) stream.Transport { return distant{w} }})
				if len(r.violations) > 0 || !r.ended || r.real != 8 || r.void != 0 || r.reopened != 0 || r.took > 3*time.Minute {
					t.Errorf("ended %t after %d of 8 rounds, %d void, after %v: %q", r.ended, r.real, r.void, r.took, r.violations)
				}
			})
		}
	}
}
