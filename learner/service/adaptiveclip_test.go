package service

import (
	"testing"
	"time"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestClipOfABusyStream: where more users come in five seconds than the method chose, the cohort of the round is all of
// them, and its clip is the one for the announced cohort, and not for the smaller one. The state that is committed with
// it has that clip too, and an older copy of the state writes the same bytes.
func TestClipOfABusyStream(t *testing.T) {
	problem := practical.Problem{Loss: convex.Declaration{Name: "logistic"}, Features: 2, Bound: 2, Intercept: 1,
		Users: 40_000, Continuous: true}
	coin, err := randomizer.CoinFromFloat(0.5)
	if err != nil {
		t.Fatal(err)
	}
	phase := func(dim int, norm float64) *wire.Phase {
		return &wire.Phase{Users: 1000, Rounds: 1, Cohort: 4000, Minimum: 250, RoundsPerUser: 1,
			Mechanism: manifest.Mechanism(randomizer.Params{Dim: dim, ClipNorm: norm, Levels: 20, Trials: 40, Coin: coin}, 1)}
	}
	look, rounds := phase(problem.MomentsDim(), problem.MomentsNorm()), phase(problem.Parameters(), 1)
	look.Statistic, rounds.Top = wire.Statistic_STATISTIC_MOMENTS, 4000
	plan := &wire.Plan{Algorithm: schedule.Practical, Practical: manifest.WirePractical(&problem),
		Phases:     []*wire.Phase{look, rounds},
		Continuous: wire.Continuous_CONTINUOUS_ADAPTIVE, Trust: wire.Trust_TRUST_SHUFFLE, HonestFraction: "1", Delta: 1e-6,
		EpsilonBudget: 100}
	plan.Practical.Unit = 20
	identity, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	alg, err := learner.New(plan)
	if err != nil {
		t.Fatal(err)
	}
	mean := make([]float64, problem.MomentsDim())
	if err := alg.Step(method.Estimate{Gradient: mean, Users: 4000, PrivacyVariance: 1e-4}); err != nil {
		t.Fatal(err)
	}
	before, err := alg.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	c := &core{identity: identity, task: &wire.Task{Plan: plan}, taskHash: stream.Hash{1}, round: &wire.Round{Round: 2,
		Cohort: 250},
		place: manifest.Place{Plan: plan, Phase: rounds, Cohort: 250, Planned: 4000}}
	follow := func(p pace) (*wire.Round, []byte) {
		t.Helper()
		again, err := learner.New(plan)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalBinary(before); err != nil {
			t.Fatal(err)
		}
		out := commit{applied: Applied{BatchUsers: 250}}
		out.next.Cursor = state.Cursor{Round: 2, TaskHash: state.Hash(c.taskHash)}
		for r := range uint64(2) {
			if _, err := c.reserve(&out.next.Ledger, &wire.Round{Round: r + 1, Step: r + 1}); err != nil {
				t.Fatal(err)
			}
			if _, err := out.next.Ledger.Void(r+1, 1, state.Hash{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.follow(&out, again, false, p); err != nil {
			t.Fatal(err)
		}
		r := &wire.Round{}
		if _, err := seal.Verify(out.next.NextRound, identity.Public(), r); err != nil {
			t.Fatal(err)
		}
		return r, out.next.Algorithm
	}
	slow, _ := follow(pace{took: time.Hour, whole: true})
	busy, committed := follow(pace{took: time.Second, whole: true})
	if slow.Cohort != 250 || busy.Cohort != 1250 {
		t.Fatalf("cohorts of %d where users come slowly and %d where they come fast, want 250 and 1250", slow.Cohort,
			busy.Cohort)
	}
	layout, learned := learner.LayoutOf(plan), learner.LearnedOf(alg)
	for _, r := range []*wire.Round{slow, busy} {
		if want := problem.StreamClip(layout, learned, r.Cohort, 1); r.Frame.Clip != want {
			t.Errorf("a round of %d clips at %v, want %v", r.Cohort, r.Frame.Clip, want)
		}
	}
	if !(busy.Frame.Clip > slow.Frame.Clip) {
		t.Fatalf("clips of %v and %v: the test wants a longer one for more users", slow.Frame.Clip, busy.Frame.Clip)
	}
	resumed, err := learner.New(plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := resumed.UnmarshalBinary(committed); err != nil {
		t.Fatal(err)
	}
	if q := resumed.Query(); q.Cohort != busy.Cohort || q.Frame.Clip != busy.Frame.Clip {
		t.Errorf("the committed state asks %d at a clip of %v, the round %d at %v", q.Cohort, q.Frame.Clip, busy.Cohort,
			busy.Frame.Clip)
	}
	again, state := follow(pace{took: time.Hour, next: busy})
	if again.Cohort != busy.Cohort || again.Frame.Clip != busy.Frame.Clip || string(state) != string(committed) {
		t.Errorf("an older copy of the state asks %d at a clip of %v", again.Cohort, again.Frame.Clip)
	}
}
