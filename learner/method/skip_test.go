package method_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
)

// TestVoidRoundsCountInInteractivePhases: a fully interactive phase is over after T rounds, void ones included:
// what was asked in a void round is asked again, the average is of the points that were answered, and a phase
// of nothing but void rounds leaves the start.
func TestVoidRoundsCountInInteractivePhases(t *testing.T) {
	plan := series(1, convex.SetDeclaration{Radius: 10}, 1, interactive(3, 0.5), interactive(2, 0.5), interactive(2, 0.5))
	a, err := learner.New(plan)
	if err != nil {
		t.Fatal(err)
	}
	// theta <- theta - (g + theta)/2 with g = -4, from 0.
	for i, want := range []struct {
		void         bool
		point, model float64
	}{
		{false, 0, 0}, {true, 2, 0}, {false, 2, 1}, // points 0 and 2, average 1
		{true, 1, 1}, {true, 1, 1}, // a phase without an answer
		{false, 1, 1}, {false, 2.5, 1.75},
	} {
		if q := a.Query(); q.Step != uint64(i+1) || q.Point[0] != want.point {
			t.Fatalf("round %d: query %+v, want step %d at %v", i+1, q, i+1, want.point)
		}
		if want.void {
			err = a.Skip()
		} else {
			err = a.Step(method.Estimate{Gradient: []float64{-4}, Users: 1})
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Model()[0]; got != want.model {
			t.Errorf("round %d: model %v, want %v", i+1, got, want.model)
		}
	}
	if !a.Done() {
		t.Error("not done after 7 of 7 rounds")
	}
	before := bytesOf(t, a)
	if a.Skip() == nil || !bytes.Equal(before, bytesOf(t, a)) {
		t.Error("a round after the last one was passed over")
	}
}

// TestSkipLeavesThePoint: passing over changes neither points nor model of any method within a stage.
func TestSkipLeavesThePoint(t *testing.T) {
	for name := range methods {
		a := build(t, name, 2, 8)
		if err := a.Step(method.Estimate{Gradient: []float64{1, -1}, Users: 1}); err != nil {
			t.Fatal(err)
		}
		q, model := a.Query(), a.Model()
		if err := a.Skip(); err != nil {
			t.Fatal(err)
		}
		if next := a.Query(); next.Step != q.Step+1 || !slices.Equal(next.Point, q.Point) || !slices.Equal(a.Model(), model) {
			t.Errorf("%s: %+v and model %v after a void round, want %+v at the next step and %v", name, next, a.Model(), q,
				model)
		}
	}
}

func TestRestartsRefuse(t *testing.T) {
	ball := convex.Ball{R: 1}
	stage := method.PSGDConfig{Dim: 2, Set: ball, Steps: 1 << 39, StepSize: 1}
	forever := method.StreamConfig{Dim: 2, Set: ball, Horizon: 3, StepSize: 1}
	other := method.PSGDConfig{Dim: 3, Set: ball, Steps: 2, StepSize: 1}
	for want, stages := range map[string][]method.Stage{
		"no stages": {}, "never ends": {forever, stage}, "more than": {stage, stage, stage}, "dim": {stage, other},
	} {
		if _, err := method.NewRestarts(method.RestartsConfig{Dim: 2, Set: ball, Stages: stages}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
}
