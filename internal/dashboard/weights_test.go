package dashboard

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/task"
)

// TestWeightsRankByEffect: a feature in small units has a small weight and may matter most.
func TestWeightsRankByEffect(t *testing.T) {
	features := []task.Coordinate{{Name: "income", Factor: 1e-5}, {Name: "job=*", Factor: 1}, {Name: "age", Factor: 0.02}}
	for _, c := range []struct {
		name    string
		weights []float64
		spread  []float64
		want    string // names in order
		effect  string
		widths  [3]float64
		others  bool
	}{
		{"spread released", []float64{-0.0001, 0.5, 0.1}, []float64{20000, 0.1, 10}, "income age job=*",
			"the spread of its feature", [3]float64{50, 25, 1.3}, true},
		{"declared alone", []float64{-0.00001, 0.5, 0.1}, nil, "age income job=*", "the declared scale",
			[3]float64{50, 10, 5}, true},
		{"no weight", []float64{0, 0, 0}, nil, "income job=* age", "the declared scale", [3]float64{}, true},
	} {
		w := weightsOf(&Model{model.Snapshot{Weights: model.Rows{c.weights}, Features: features}, c.spread})
		var names []string
		for i, r := range w.Rows {
			if names = append(names, r.Name); r.Width != c.widths[i] {
				t.Errorf("%s: %s has a bar of %v, want %v", c.name, r.Name, r.Width, c.widths[i])
			}
		}
		if got := strings.Join(names, " "); got != c.want || !strings.HasPrefix(w.Effect, c.effect) || w.Others != c.others {
			t.Errorf("%s: %s by %q, others %t, want %s", c.name, got, w.Effect, w.Others, c.want)
		}
	}
	if w := weightsOf(&Model{Snapshot: model.Snapshot{Weights: model.Rows{{1}}, Features: features[2:]}}); w.Others {
		t.Error("a mark is explained that no name has")
	}
}
