package tune

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/task"
)

const (
	fourierShare = 250 // users for one Fourier feature at epsilon 1: fewer drown in noise
	mostFourier  = 200
	leastFourier = 10
	fourierPairs = 1000 // pairs of rows; their distances determine gamma
)

// fourier sets random Fourier features of all numbers, or none where the task has some. gamma is one over the median
// squared distance of two rows.
func (t table) fourier(base run.Job, seed uint64) (setting, bool) {
	f := base.Spec.Features
	if f.Fourier != nil {
		return setting{"features.fourier": json.RawMessage("null")}, f.Vector == nil || !f.Vector.Hidden
	}
	numbers, names := numbersOf(base.Features)
	d := min(mostFourier, int(float64(base.Problem.Users)*base.Problem.Epsilon/fourierShare))
	if len(numbers) < 2 || d < leastFourier {
		return nil, false
	}
	r := rand.New(sim.Entropy(seed, "distances"))
	distances := make([]float64, fourierPairs)
	for i := range distances {
		a, b := t.dense(r.IntN(len(t)), base.Features.Dim()), t.dense(r.IntN(len(t)), base.Features.Dim())
		for _, j := range numbers {
			distances[i] += (a[j] - b[j]) * (a[j] - b[j])
		}
	}
	slices.Sort(distances)
	median := distances[len(distances)/2]
	if !(median > 0) || math.IsInf(1/median, 0) {
		return nil, false
	}
	return one("features.fourier", task.Fourier{Columns: names, Dimension: d, Gamma: tidy(1 / median)}), true
}

// numbersOf returns the coordinates of numeric columns, and their names.
func numbersOf(m *task.FeatureMap) (at []int, names []string) {
	for j, c := range m.Coordinates() {
		if c.Kind == string(task.Numeric) && c.Column != "" {
			at, names = append(at, j), append(names, c.Sources[0].Column)
		}
	}
	return at, names
}

// dense returns the values of a row.
func (t table) dense(i, dim int) []float64 {
	out := make([]float64, dim)
	t[i].AddTo(out, 1)
	return out
}

// passes has all users answer every round, or each a single one where they all do.
func passes(base run.Job) setting {
	return one("schedule.interactive", !base.Spec.Schedule.Interactive)
}

// ridges are the weights of half the squared norm that are tried, beside none.
var ridges = [...]float64{0.001, 0.01}

// ridge returns other ridges than the task's.
func ridge(base run.Job) (out []setting) {
	for _, r := range append([]float64{0}, ridges[:]...) {
		if r != base.Spec.Model.Ridge {
			out = append(out, one("model.ridge", r))
		}
	}
	return out
}
