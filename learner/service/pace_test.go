package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// deadlines lists the deadlines that the rounds of a world announced, from round 1.
func (w *world) deadlines() (own []time.Duration) {
	w.t.Helper()
	public, _, _ := w.trace()
	for r := stream.Round(1); public[name.Round(r)] != nil; r++ {
		var round wire.Round
		if _, err := seal.Verify(public[name.Round(r)], w.learner.Public(), &round); err != nil {
			w.t.Fatal(err)
		}
		own = append(own, time.Duration(round.DeadlineMs)*time.Millisecond)
	}
	return own
}

// wantDeadlines checks that the rounds announced these deadlines, or up to a tenth more, which polling adds.
func (w *world) wantDeadlines(want ...time.Duration) {
	w.t.Helper()
	got := w.deadlines()
	if len(got) != len(want) {
		w.t.Fatalf("deadlines %v of %d rounds, want %v of %d", got, len(got), want, len(want))
	}
	for i := range got {
		if got[i] < want[i] || got[i] > want[i]+want[i]/10 || (want[i] == 0) != (got[i] == 0) {
			w.t.Errorf("round %d: deadline %v, want %v or a little more (0: the plan's): %v", i+1, got[i], want[i], got)
		}
	}
}

// TestTheDeadlineFollowsCohortAndPace: a round is given three times as long as its cohort takes at the pace of the last
// round that shows one, within the plan's bounds. The first one shows none, nor does a void one.
func TestTheDeadlineFollowsCohortAndPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 6)
		w.timed, w.voids = true, map[uint64]bool{3: true}
		w.comes = func(r *wire.Round) (uint64, time.Duration) {
			return map[uint64]uint64{4: 30}[r.Round] + map[bool]uint64{true: cohort}[r.Round != 4 && r.Step < 6] +
					map[bool]uint64{true: cohort + left}[r.Step == 6],
				map[uint64]time.Duration{1: 24 * time.Hour, 2: 400 * time.Second, 3: 5 * time.Hour, 4: 600 * time.Second,
					5: 8 * time.Hour, 6: 40 * time.Second}[r.Round]
		}
		w.run()
		// 1: the plan's; 2: as 1 shows none; 3: 3 x 400 s; 4: as 3 was void; 5: 3 x 40/30 x 600 s; 6: at most the plan's
		// hour; 7: 3 x 47/40 x 40 s.
		w.wantDeadlines(0, 0, 1200*time.Second, 1200*time.Second, 2400*time.Second, time.Hour, 141*time.Second)
	})
}

// TestAPaceThatThePlanAllowsForIsNotNamed: rounds that are quick enough keep the plan's deadline, and so do all rounds
// of plans without bounds for others, and of organisations.
func TestAPaceThatThePlanAllowsForIsNotNamed(t *testing.T) {
	for what, change := range map[string]func(*wire.Plan){
		"quick":          func(p *wire.Plan) { p.DeadlineMs, p.StaleMs = 1_500_000, 3_600_000 },
		"an older plan":  func(p *wire.Plan) { p.StaleMs = 0 },
		"no deadline":    func(p *wire.Plan) { p.DeadlineMs, p.StaleMs = 0, 0 },
		"nothing longer": func(p *wire.Plan) { p.StaleMs = p.DeadlineMs },
		"organisations": func(p *wire.Plan) {
			p.Silos = 3 * cohort
			p.Phases[0].Users, p.Phases[0].Mechanism.Units = 3*cohort, 1
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, newCast(t), 3)
			w.timed, w.change = true, change
			w.comes = func(r *wire.Round) (uint64, time.Duration) { return w.place(r).Cohort, 400 * time.Second }
			w.run()
			t.Log(what)
			w.wantDeadlines(0, 0, 0)
		})
	}
}

// TestMembersWhoLeftAreNotAwaitedForLonger: in an interactive phase a round that lacks members shows no slow pace.
func TestMembersWhoLeftAreNotAwaitedForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := phased(t, newCast(t))
		w.timed = true
		w.comes = func(r *wire.Round) (uint64, time.Duration) {
			if r.Step == 4 || r.Step == 5 {
				return 40, time.Hour
			}
			return w.place(r).Cohort, 100 * time.Second
		}
		w.run()
		// Round 2 has 47 users, 3 to 6 have 45, 7 has 40: after round 3 those who left halve what is given.
		w.wantDeadlines(0, 0, 287*time.Second, 300*time.Second, 150*time.Second, 75*time.Second,
			300*time.Second*40/45)
	})
}

// TestARestartKeepsThePace: a learner that was away for a part of a round does not take the rest for all of it, and
// announces what is committed.
func TestARestartKeepsThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 4)
		w.timed = true
		w.comes = func(r *wire.Round) (uint64, time.Duration) { return w.place(r).Cohort, 400 * time.Second }
		w.play(func(ctx context.Context) {
			life, stop := context.WithCancel(ctx)
			go func() {
				time.Sleep(3*400*time.Second - 60*time.Second) // in round 3
				stop()
			}()
			_ = w.new(w.config()).Run(life)
			before := w.deadlines()
			w.reopen()
			if err := w.new(w.config()).Run(ctx); err != nil {
				t.Error(err)
			}
			if after := w.deadlines(); len(before) != 3 || after[2] != before[2] {
				t.Errorf("deadlines %v before the restart in round 3, %v after it", before, after)
			}
		})
		w.wantDeadlines(0, 0, 1200*time.Second, 1410*time.Second)
	})
}

// TestAnOlderCopyAnnouncesTheSameDeadlines: a learner that applies the stored batches again saw no round's
// pace, and takes the stored deadlines, as it has to write the same bytes.
func TestAnOlderCopyAnnouncesTheSameDeadlines(t *testing.T) {
	h := recordedWhere(t, newCast(t), true)
	if own := h.deadlines(); own[3] == 0 {
		t.Fatalf("deadlines %v, want one of its own in round 4", own)
	}
	for k := range h.last {
		synctest.Test(t, func(t *testing.T) {
			w := h.at(t, k, everything)
			w.accept = true
			w.run()
			same(t, w, h.world)
		})
	}
}
