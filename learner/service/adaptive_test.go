package service

import (
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestBatchOfAnAdaptiveRound: a round that is full at 100 users, of a plan of noise for 400, is released with the
// noise of 400, whether all came or the 60 who are enough at its deadline; a stage that adds the noise of the round's
// own users alone, or releases fewer or more users, is refused.
func TestBatchOfAnAdaptiveRound(t *testing.T) {
	coin, err := randomizer.CoinFromFloat(0.5)
	if err != nil {
		t.Fatal(err)
	}
	m := manifest.Mechanism(randomizer.Params{Dim: 2, ClipNorm: 1, Levels: 10, Trials: 7, Coin: coin}, 4)
	c := &core{taskHash: stream.Hash{1}, manifest: stream.Hash{2}, round: &wire.Round{Round: 2, Cohort: 100},
		place: manifest.Place{Phase: &wire.Phase{Minimum: 60, Top: 200, Cohort: 400, Mechanism: m}, Cohort: 100,
			Planned: 400}}
	for _, one := range []struct {
		users, trials uint64
		refused       string // part of the error; "" accepts
	}{
		{60, 400 * 7, ""}, {100, 400 * 7, ""}, {103, 400 * 7, ""},
		{100, 100 * 7, "owe 2800"}, {60, 100 * 7, "owe 2800"}, {100, 200 * 7, "owe 2800"}, {100, 401 * 7, "owe 2800"},
		{59, 400 * 7, "allows 60 to 103"}, {104, 400 * 7, "allows 60 to 103"}, {400, 400 * 7, "allows 60 to 103"},
	} {
		b := &wire.Batch{Version: stream.Version, TaskHash: c.taskHash[:], Round: 2, Attempt: 1, ManifestHash: c.manifest[:],
			Users:       one.users,
			NoiseTrials: one.trials, Totals: []uint64{1, 2}, Cutoff: 1000}
		err := c.validate("panlearn.t.batch.2", b)
		if (err == nil) != (one.refused == "") || err != nil && !strings.Contains(err.Error(), one.refused) {
			t.Errorf("%d users, %d trials: %v", one.users, one.trials, err)
		}
	}
}

// TestCohortOfAnAdaptiveRound: the next round has the cohort of the method, or, if that is larger, as many users as come
// in five seconds at the pace of the last round, within the plan's bounds. A state that is an older copy repeats the
// cohort that was already announced.
func TestCohortOfAnAdaptiveRound(t *testing.T) {
	next := manifest.Place{Phase: &wire.Phase{Minimum: 60, Top: 2000, Cohort: 4000}}
	for _, one := range []struct {
		round, wants, users uint64
		p                   pace
		want                uint64
	}{
		// 50 in five seconds
		{7, 100, 100, pace{took: 10 * time.Second, whole: true}, 100},
		// 500 in five seconds
		{7, 100, 100, pace{took: time.Second, whole: true}, 500},
		// more than the largest cohort
		{7, 100, 100, pace{took: time.Millisecond, whole: true}, 2000},
		{7, 100, 100, pace{whole: true}, 2000}, // at once
		// the method chooses more
		{7, 1500, 100, pace{took: time.Second, whole: true}, 1500},
		// at least the smallest
		{7, 10, 100, pace{took: time.Hour, whole: true}, 60},
		// at most the largest
		{7, 9000, 100, pace{took: time.Hour, whole: true}, 2000},
		// a void round has no pace
		{7, 100, 0, pace{took: time.Second, whole: true}, 100},
		// nor one that another process announced
		{7, 100, 100, pace{took: time.Second}, 100},
		{1, 100, 100, pace{took: time.Second, whole: true}, 100},                                         // nor the first
		{7, 100, 100, pace{took: time.Second, whole: true, next: &wire.Round{Round: 8, Cohort: 77}}, 77}, // already announced
	} {
		c := &core{round: &wire.Round{Round: one.round}}
		if got := c.cohort(next, one.wants, one.users, one.p); got != one.want {
			t.Errorf("round %d, wants %d, %d came in %v: %d, want %d", one.round, one.wants, one.users, one.p.took, got,
				one.want)
		}
	}
}

// TestTrackingOfAnAnnouncedRound: the next cohort that is shown is the announced one, and not the method's own choice
// before fast traffic made it larger. After the end there is none.
func TestTrackingOfAnAnnouncedRound(t *testing.T) {
	alg, err := method.NewPractical(method.PracticalConfig{Layout: practical.Layout{MomentUsers: 250, Rounds: 1, Base: 250,
		Top: 500, Unit: 8},
		Problem: practical.Problem{Loss: convex.Declaration{Name: "logistic"}, Features: 1, Bound: 1, Intercept: 1,
			Users: 4000, Continuous: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, dim := range []int{3, 2} {
		if err := alg.Step(method.Estimate{Gradient: make([]float64, dim), Users: 250, PrivacyVariance: 1e-4}); err != nil {
			t.Fatal(err)
		}
	}
	wanted := alg.Query().Cohort
	identity, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := identity.Sign(&wire.Round{Version: stream.Version, TaskHash: make([]byte, stream.HashSize), Round: 3,
		Step: 3, Cohort: wanted + 77})
	if err != nil {
		t.Fatal(err)
	}
	plan := &wire.Plan{DeadlineMs: 60_000}
	if got := progressOf(&wire.Task{Plan: plan}, state.Checkpoint{NextRound: signed}, alg).Tracking; got.Cohort != wanted+
		77 || got.DeadlineMs != 60_000 {
		t.Errorf("the next round asks %d within the plan's minute, and people are told %+v", wanted+77, got)
	}
	if got := progressOf(&wire.Task{Plan: &wire.Plan{}}, state.Checkpoint{End: signed}, alg).Tracking.Cohort; got != 0 {
		t.Errorf("after the end people are told of a round of %d", got)
	}
}
