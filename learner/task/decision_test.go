package task

import (
	"math"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestLabels: the label that the loss sees, and the value that a prediction is compared with, by kind of label.
func TestLabels(t *testing.T) {
	for _, c := range []struct {
		name, file string
		sets       []string
		labels     []float64 // Labels()
		outputs    int
		text       string
		label      float64 // of text, as the loss sees it
		target     float64
	}{
		{"two classes", plain, nil, []float64{-1, 1}, 1, " 0.0 ", -1, -1},
		{"several classes", digits, nil, []float64{0, 1, 2}, 3, "c", 2, 2},
		{"a number", regression, nil, []float64{-1, 1}, 1, "2.5", -0.5, 2.5},
		{"a number in [0, 1]", regression, []string{"label.scale=unit"}, []float64{0, 1}, 1, "2.5", 0.25, 2.5},
		{"a raw number", regression, []string{"label.scale=raw", "label.min=-3"}, []float64{-3, 10}, 1, "11", 10, 10},
		{"a count", counts, nil, []float64{0, 40}, 1, "7", 7, 7},
		{"a count above the largest", counts, nil, []float64{0, 40}, 1, "1e3", 40, 40},
	} {
		s := mustParse(t, c.file, c.sets...)
		m := mustCompile(t, s)
		if got := m.Labels(); !slices.Equal(got, c.labels) {
			t.Errorf("%s: labels %v, want %v", c.name, got, c.labels)
		}
		y, err := m.LabelMap.parse(c.text, 0)
		if err != nil || y != c.label || math.Abs(m.Target(y)-c.target) > 1e-12 {
			t.Errorf("%s: %q is %v (%v), want %v for the loss and %v as a target", c.name, c.text, y, err, c.label, c.target)
		}
		loss, err := s.Loss()
		if err != nil {
			t.Fatal(err)
		}
		for _, y := range m.Labels() {
			if err := loss.CheckLabel(y); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if got := loss.Parameters(m.Dim()); m.Outputs() != c.outputs || got != c.outputs*m.Dim() {
			t.Errorf("%s: %d outputs, %d parameters for %d features", c.name, m.Outputs(), got, m.Dim())
		}
	}
}

func TestLabelsThatAreRefused(t *testing.T) {
	for file, labels := range map[string][]string{
		plain:      {"2", "", "x"},
		digits:     {"d", "0", ""},
		regression: {"", "x", "nan"},
		counts:     {"", "x", "-1", "0.5", "inf"},
	} {
		m := mustCompile(t, mustParse(t, file))
		for _, text := range labels {
			if y, err := m.LabelMap.parse(text, 0); err == nil {
				t.Errorf("label %q is accepted as %v", text, y)
			}
		}
	}
}

func TestPredict(t *testing.T) {
	binary := mustCompile(t, mustParse(t, plain))
	for score, class := range map[float64]float64{2: 1, 1e-300: 1, 0: -1, -3: -1} {
		if got := binary.Predict([]float64{score}); got != class || decide(binary, score) != class {
			t.Errorf("score %v: class %v, want %v", score, got, class)
		}
	}
	if a, b := binary.ClassName(1), binary.ClassName(-1); a != "1" || b != "0" {
		t.Errorf("classes %q and %q, want 1 and 0", a, b)
	}

	several := mustCompile(t, mustParse(t, digits, "intercept=0", "features.vector.dimension=2"))
	theta := []float64{1, 0, 0, 2, -1, -1}
	for i, want := range []string{"a", "b", "c"} {
		e := convex.Example{Value: [][]float64{{3, 1}, {1, 3}, {-1, -1}}[i]}
		scores := several.Scores(nil, theta, e)
		if want := []float64{e.Value[0], 2 * e.Value[1], -e.Value[0] - e.Value[1]}; !slices.Equal(scores, want) {
			t.Errorf("scores %v, want %v", scores, want)
		}
		if got := several.ClassName(several.Predict(scores)); got != want {
			t.Errorf("event %d: class %s, want %s", i, got, want)
		}
	}
	if got := several.Predict([]float64{1, 1, 1}); got != 0 {
		t.Errorf("among equals %v, want the first", got)
	}

	// The score is the logarithm of the count, and is bounded above.
	poisson := mustCompile(t, mustParse(t, counts))
	for score, want := range map[float64]float64{0: 1, 1: math.E, 9: math.Exp(4), -9: math.Exp(-9)} {
		if got := poisson.Predict([]float64{score}); math.Abs(got-min(want, 40)) > 1e-12*want {
			t.Errorf("score %v: %v events, want %v", score, got, want)
		}
	}

	// Predictions stay in the declared range, scores do not.
	number := mustCompile(t, mustParse(t, regression))
	for score, want := range map[float64][2]float64{0.5: {7.5, 7.5}, 1.5: {10, 12.5}, -3: {0, -10}} {
		if got := [2]float64{decide(number, score), number.InUnits(score)}; got != want {
			t.Errorf("score %v: %v, want %v", score, got, want)
		}
	}
}

// TestLipschitzOfCounts: the largest count is declared, so that the loss of counts has a Lipschitz constant.
func TestLipschitzOfCounts(t *testing.T) {
	loss, err := mustParse(t, counts).Loss()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := loss.Lipschitz(1), math.Exp(4); math.Abs(got-want) > 1e-9*want {
		t.Errorf("Lipschitz constant %v, want exp(score bound) = %v", got, want)
	}
}

// TestDefaultAlgorithm: the default algorithm is one that can run.
func TestDefaultAlgorithm(t *testing.T) {
	for _, c := range []struct{ file, set, want string }{
		{plain, "name=demo", "pagd"},
		{plain, "schedule.interactive=true", "auto"},
		{plain, "schedule.continuous=constant", "psgd"},
		{plain, "schedule.continuous=decaying", "psgd"},
		{plain, "schedule.continuous=epochs", "pagd"},
		{svm, "name=demo", "pagd-envelope"},
		{svm, "schedule.continuous=epochs", "pagd-envelope"},
		{svm, "schedule.continuous=constant", "psgd"},
		{digits, "name=demo", "pagd"},
		{counts, "name=demo", "pagd"},
	} {
		if got := mustParse(t, c.file, c.set).Schedule.Algorithm; got != c.want {
			t.Errorf("%s: algorithm %s, want %s", c.set, got, c.want)
		}
	}
}

// TestSets: the set that is declared is the set that is used.
func TestSets(t *testing.T) {
	for set, x := range map[string][]float64{ // the projection of (-3, 4)
		"model.set=ball":                             {-0.6, 0.8},
		"model.set=nonnegative":                      {0, 1},
		"model.set=simplex":                          {0, 1},
		"model.set=l1":                               {0, 1},
		"model={loss: logistic, set: box, max: 0.5}": {0, 0.5},
	} {
		sets := []string{set, "model.radius=1"}
		if set[:6] == "model=" {
			sets = sets[:1]
		}
		s := mustParse(t, plain, sets...)
		k, err := s.Set(2)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, 2)
		k.Project(got, []float64{-3, 4})
		for i := range got {
			if math.Abs(got[i]-x[i]) > 1e-12 {
				t.Errorf("%s: projection %v, want %v", set, got, x)
			}
		}
	}
}

// decide is like Predict, for a loss of one score.
func decide(m *FeatureMap, score float64) float64 { return m.Predict([]float64{score}) }
