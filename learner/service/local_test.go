package service

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// silos returns a world of five silos that trust nobody, which answer two phases, of one round and of three.
func silos(t testing.TB, c cast) *world {
	t.Helper()
	w := newWorld(t, c, 0)
	w.silos = 5
	block := manifest.Mechanism(randomizer.Params{Dim: dim, ClipNorm: 1, Levels: 4, Trials: 4096, Coin: randomizer.Fair,
		Units: 1, Window: 512}, 1)
	w.phases = []*wire.Phase{
		{Users: 5, Rounds: 1, Cohort: 5, Minimum: 2, RoundsPerUser: 1, Mechanism: block},
		{Users: 5, Rounds: 3, Cohort: 5, Minimum: 2, RoundsPerUser: 3, Mechanism: block, Again: true}}
	w.budget = w.locally(4)
	return w
}

// locally returns the epsilon that so many reports cost the person whom they are about, with the protection of
// their own noise alone.
func (w *world) locally(rounds int) float64 {
	w.t.Helper()
	g, err := accounting.Release{Trust: accounting.Local, Users: 1, Dim: dim, Levels: 4, Trials: 4096, P: 0.5,
		HonestFraction: accounting.One,
		Rounds:         rounds}.Epsilon(delta)
	if err != nil {
		w.t.Fatal(err)
	}
	return g.Epsilon
}

// TestStintOfSilos: each round of a stint is charged with all of them, from the first on, and by the noise of one
// report; a void round is a step less in either phase, since its reports were published.
func TestStintOfSilos(t *testing.T) {
	w := undisturbedRun(t, func(t *testing.T) *world { return silos(t, newCast(t)) }, 1, 3)
	_, at, entries := w.trace()
	if !at.Ended() || at.Cursor.Round != 4 {
		t.Fatalf("ended %t after round %d, want an end after 4", at.Ended(), at.Cursor.Round)
	}
	ledger, err := state.ReadLedger(state.Entries(entries))
	if err != nil || ledger.Steps != 2 || ledger.Voids != 2 || ledger.Users() != 4 {
		// the last round's number modulo 3 is missing
		t.Errorf("%d steps, %d void, %d reports; %v", ledger.Steps, ledger.Voids, ledger.Users(), err)
	}
	for _, e := range chargedOf(entries) {
		if e.Epsilon != w.budget {
			t.Errorf("round %d: charged %v, four reports cost %v", e.Round, e.Epsilon, w.budget)
		}
		if e.Kind == state.Spent && e.NoiseTrials != e.Users*4096 {
			t.Errorf("round %d: %d trials of %d silos", e.Round, e.NoiseTrials, e.Users)
		}
	}
	if spent := ledger.Spent(); spent.Epsilon != w.budget {
		t.Errorf("spent %v, four reports cost %v", spent, w.budget)
	}
}

// TestBudgetOfAStint: a budget that holds three of four rounds, and the phases each alone, lets none begin.
func TestBudgetOfAStint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := silos(t, newCast(t))
		w.budget = (w.locally(3) + w.locally(4)) / 2
		var err error
		w.play(func(ctx context.Context) { err = w.new(w.config()).Run(ctx) })
		var refused *state.BudgetError
		if !errors.As(err, &refused) || refused.Round != 1 || refused.Increment.Epsilon != w.locally(4) {
			t.Errorf("Run: %v, want the budget to refuse round 1", err)
		}
		if public, _, _ := w.trace(); public[name.Round(1)] != nil {
			t.Error("round 1 is announced")
		}
	})
}

// TestNobodyTopsUpSilos: a batch of few silos with the trials of all is refused: no stage adds noise under local.
func TestNobodyTopsUpSilos(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := silos(t, newCast(t))
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			w.put(ctx, name.Stage(), w.sign(w.stage, &wire.StageIdentity{Version: 1, Task: string(name), Key: w.stage.Public()}))
			round, hash, ok := w.announced(ctx, 1)
			if !ok {
				return
			}
			b := w.batch(round, hash, 3)
			b.NoiseTrials = 5 * 4096
			w.put(ctx, name.Batch(1), w.sign(w.stage, b))
		}()
		err := w.new(w.config()).Run(ctx)
		stop()
		<-over
		if err == nil || !strings.Contains(err.Error(), "3 users of 5 owe 12288") {
			t.Errorf("Run: %v", err)
		}
	})
}
