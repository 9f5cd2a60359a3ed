package statedir

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run/runtest"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state"
)

// TestSnapshotAroundMoments: before, at and after the moments there is a model, and it scores a raw event as the learner's own
// parameters do the event that a device makes of it, one that is scaled down too.
func TestSnapshotAroundMoments(t *testing.T) {
	for _, file := range []string{runtest.Words, runtest.Numbers, runtest.Classes} {
		file = strings.Replace(file, "unknown: drop}", "unknown: drop}\n  precondition: {users: 200, damping: 0.2}\nnorm_bound: 1.1", 1)
		file = strings.Replace(file, "max: 2}", "max: 3}", 1)
		for rounds := range uint64(4) {
			store := state.NewMemory()
			spec := runtest.Parsed(t, file)
			runtest.Learned(t, runtest.Job(t, spec), runtest.UpTo{Store: store, Round: rounds})
			view, err := Look(t.Context(), store)
			if err != nil {
				t.Fatal(err)
			}
			scales := learner.ScalesOf(view.Algorithm)
			if view.Checkpoint.Cursor.Round != rounds || (scales != nil) != (rounds > 0) {
				t.Fatalf("round %d of %d, scales %v", view.Checkpoint.Cursor.Round, rounds, scales)
			}
			snapshot, err := view.Snapshot()
			if err != nil {
				t.Fatalf("after %d rounds: %v", rounds, err)
			}
			p, err := model.NewPredictor(snapshot, "")
			if err != nil {
				t.Fatal(err)
			}
			if scales == nil {
				scales = []float64{1, 1, 1}
			}
			features, err := spec.Compile()
			if err != nil {
				t.Fatal(err)
			}
			if rounds == 3 && convex.Norm(view.Algorithm.Model()) == 0 {
				t.Fatal("the model is zero: the test would see nothing")
			}
			for _, row := range [][]string{{"100", "a<b"}, {"50", "x"}, {"0", "c&d"}} {
				var raw, scaled, mapped convex.Example
				at := task.Row{Fields: row, Label: map[bool]string{true: "7", false: "<=50K"}[spec.Model.Loss == "squared"]}
				if err := features.Map(at, &raw); err != nil {
					t.Fatal(err)
				}
				spec.Preconditioner().Rescale(&scaled, raw, scales)
				if err := p.Features.Map(at, &mapped); err != nil {
					t.Fatal(err)
				}
				own := features.Scores(nil, view.Algorithm.Model(), scaled)
				got := p.Features.Scores(nil, p.Theta, mapped)
				for k := range own {
					if math.Abs(own[k]-got[k]) > 1e-12*(1+math.Abs(own[k])) {
						t.Errorf("%s after %d rounds, %v: scores %v, the learner's %v", spec.Model.Loss, rounds, row, got, own)
					}
				}
			}
		}
	}
}
