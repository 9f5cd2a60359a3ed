package sim

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// Rows of every shipped schema are valid, the same for the same seeds under maps that differ, and their labels can
// be predicted.
func TestSchemaRows(t *testing.T) {
	files, err := filepath.Glob("../../deploy/tasks/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range append(files, "every kind") {
		spec, err := task.Parse([]byte(everyKind), nil)
		if file != "every kind" {
			spec, err = task.Load(file, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewSchema(spec, 1)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		const n = 1000
		rows, err := s.Rows(s.features, n, 2)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		again, err := s.Rows(s.features, n, 2)
		if err != nil || !reflect.DeepEqual(rows, again) {
			t.Errorf("%s: other rows from the same seed (%v)", file, err)
		}
		other := *spec
		other.NormBound = s.features.Bound() / 3
		narrow, err := other.Compile()
		if err != nil {
			t.Fatal(err)
		}
		cut, err := s.Rows(narrow, n, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if cut[i].Label != rows[i].Label {
				t.Errorf("%s: row %d has label %v, and %v under another norm bound", file, i, rows[i].Label, cut[i].Label)
				break
			}
		}
		planted(t, file, s, rows)
	}
}

// everyKind has the columns that no shipped task has.
const everyKind = `{version: 1, name: every, events: {format: csv, header: true}, features: {columns: [
  {column: age, kind: numeric, min: 0, max: 100, missing: {tokens: ["", "?"], fill: 40, indicator: true}},
  {column: member, kind: indicator},
  {column: soil, kind: onehot-group, columns: [clay, sand, silt]},
  {column: city, kind: hashed, buckets: 16},
  {column: pay, kind: bucketed, edges: [10, 20, 40]},
  {column: tax, kind: numeric, scale: log, unit: 3, mean: 2, std: 1},
  {column: notes, kind: text, buckets: 20},
  {column: hour, field: at, part: hour, kind: hats, knots: [0, 12, 24]},
  {column: weekday, field: at, part: weekday, kind: bucketed, edges: [6]},
  {column: rent, kind: hats, knots: [0, 5, 10, 20]}]},
  label: {column: y, min: 0, max: 10}, model: {loss: squared, radius: 5},
  privacy: {epsilon: 1, delta: 1e-6}, schedule: {users: 1000}}`

// TestPlantedLogLabels: labels of scale log follow the planted model in their logarithm.
func TestPlantedLogLabels(t *testing.T) {
	file := strings.Replace(everyKind, "min: 0, max: 10}, model", "min: 0, max: 10000, scale: log, unit: 1}, model", 1)
	spec, err := task.Parse([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSchema(spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Rows(s.features, 1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	planted(t, "scale log", s, rows)
}

// planted compares the planted scores with the labels: better than any constant, and not perfect.
func planted(t *testing.T, file string, s *Schema, rows []convex.Example) {
	t.Helper()
	counts := map[float64]int{}
	var right, most int
	var mean, square, residual float64
	for _, e := range rows {
		counts[e.Label]++
		mean += e.Label / float64(len(rows))
	}
	for _, c := range counts {
		most = max(most, c)
	}
	var product, scores2 float64
	for _, e := range rows {
		scores := s.features.Scores(nil, s.weights, e)
		for k := range scores {
			scores[k] += s.offsets[k]
		}
		square += (e.Label - mean) * (e.Label - mean)
		product += scores[0] * (e.Label - mean)
		scores2 += scores[0] * scores[0]
		if s.features.Classification() && s.features.Predict(scores) == e.Label {
			right++
		}
	}
	if s.features.Classification() {
		if right < most+len(rows)/50 && len(counts) == 2 || right > len(rows)*97/100 {
			t.Errorf("%s: the planted model has %d of %d right, the most frequent class %d", file, right, len(rows), most)
		}
		return
	}
	residual = 1 - product*product/(scores2*square)
	if residual < 0.03 || residual > 0.8 {
		t.Errorf("%s: the planted model leaves %v of the labels' variance", file, residual)
	}
}
