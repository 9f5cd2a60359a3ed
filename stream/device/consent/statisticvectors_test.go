package consent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/wire"
)

// statisticFile is docs/vectors/statistic.json: what a device makes of rows, before it is randomized.
type statisticFile struct {
	Features   []featureVector   `json:"features"`
	Statistics []statisticVector `json:"statistics"`
}

// featureVector is rows of a declaration, and their features and labels.
type featureVector struct {
	Name        string          `json:"name"`
	Declaration json.RawMessage `json:"declaration"` // canonical form
	NormBound   float64         `json:"norm_bound"`  // X of features, intercept left out
	Bound       float64         `json:"bound"`       // with the intercept
	Rows        []rowVector     `json:"rows"`
}

type rowVector struct {
	Fields   map[string]string `json:"fields,omitempty"` // texts, as of a csv file
	Index    []int32           `json:"index,omitempty"`  // of a vector's values, from 0
	Value    []float64         `json:"value,omitempty"`
	Label    string            `json:"label"`
	Invalid  bool              `json:"invalid,omitempty"`
	Features []float64         `json:"features,omitempty"`
	Seen     float64           `json:"label_seen"` // as the loss sees it
}

// statisticVector is one report's vector, of one unit: an event, or all rows of a person.
type statisticVector struct {
	Name        string          `json:"name"`
	Declaration json.RawMessage `json:"declaration"`
	Statistic   int             `json:"statistic"`
	Smoothing   float64         `json:"smoothing,omitempty"`
	Point       []float64       `json:"point,omitempty"`
	Frame       *convex.Frame   `json:"frame,omitempty"`
	Rows        []rowVector     `json:"rows"`
	Norm        float64         `json:"clip_norm"` // of the mechanism
	Scores      int             `json:"scores,omitempty"`
	Vector      []float64       `json:"vector"`
}

// ofSpec returns an agreement to a declaration, as far as reports follow from it.
func ofSpec(t *testing.T, spec *task.Spec) *Agreement {
	t.Helper()
	a := &Agreement{Spec: spec}
	var err error
	a.Features, err = spec.Compile()
	must(t, err)
	a.Loss, err = spec.Loss()
	must(t, err)
	a.Practical = spec.Practical(a.Features)
	a.card, err = spec.Scorecard(a.Features)
	must(t, err)
	return a
}

func canonical(t *testing.T, spec *task.Spec) json.RawMessage {
	t.Helper()
	out, err := spec.Canonical()
	must(t, err)
	return out
}

// mapped fills in what the feature map makes of a row.
func (r *rowVector) mapped(t *testing.T, m *task.FeatureMap) convex.Example {
	t.Helper()
	row := task.Row{Index: r.Index, Value: r.Value, Label: r.Label}
	for _, name := range m.Schema().Columns {
		row.Fields = append(row.Fields, r.Fields[name])
	}
	var x convex.Example
	if err := m.Map(row, &x); err != nil {
		r.Invalid = true
		return convex.Example{}
	}
	r.Features, r.Seen = make([]float64, m.Dim()), x.Label
	x.AddTo(r.Features, 1)
	return x
}

func (v *statisticVector) fill(t *testing.T, spec *task.Spec) {
	t.Helper()
	a := ofSpec(t, spec)
	v.Declaration = canonical(t, spec)
	c, norm, err := a.reports(&wire.Phase{Statistic: wire.Statistic(v.Statistic), Smoothing: v.Smoothing})
	must(t, err)
	exact, err := report.NewExact(c)
	must(t, err)
	must(t, exact.At(v.Point, v.Frame))
	v.Norm, v.Scores = norm, c.Scores
	rows := make([]convex.Example, len(v.Rows))
	v.Rows = append([]rowVector(nil), v.Rows...)
	for i := range v.Rows {
		rows[i] = v.Rows[i].mapped(t, a.Features)
	}
	v.Vector = append([]float64(nil), exact.Unit(rows...)...)
}

const ofTwo = `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: 2, min: -1, max: 1}}
label: %s
model: {%s}
privacy: {epsilon: 4, delta: 1e-3}
schedule: {users: 100000, plan: %s}
`

const (
	signs  = `{positive: ["1"], negative: ["-1", "0"]}`
	colors = `{classes: [red, green, blue]}`
	real   = `{min: -2, max: 10, scale: symmetric}`
	counts = `{max: 20}`
)

// lossVectors are the losses, with the least that a declaration says of them.
var lossVectors = []struct{ name, label, model, row string }{
	{"logistic", signs, "loss: logistic", "1"},
	{"logistic with weights", signs, "loss: logistic, class_weights: [1, 3]", "1"},
	{"logistic with label noise", signs, "loss: logistic, label_noise: 0.1", "-1"},
	{"softmax", colors, "loss: softmax", "green"},
	{"softmax with weights", colors, "loss: softmax, class_weights: [1, 2, 4]", "blue"},
	{"squared", real, "loss: squared", "9.5"},
	{"huber", real, "loss: huber, width: 0.5", "-2"},
	{"absolute", real, "loss: absolute", "3"},
	{"quantile", real, "loss: quantile, level: 0.9", "8"},
	{"hinge", signs, "loss: hinge", "0"},
	{"smoothed-hinge", signs, "loss: smoothed-hinge, width: 0.5", "1"},
	{"poisson", counts, "loss: poisson, score_bound: 3", "7"},
}

func statisticVectors(t *testing.T) (out []statisticVector) {
	for _, name := range convex.LossNames() {
		if !slices.ContainsFunc(lossVectors, func(l struct{ name, label, model, row string }) bool { return l.name == name }) {
			t.Errorf("devices in other languages have no vector of loss %s", name)
		}
	}
	add := func(v statisticVector, text string, set ...string) {
		spec, err := task.Parse([]byte(text), set)
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		v.fill(t, spec)
		out = append(out, v)
	}
	row := func(label string) []rowVector {
		return []rowVector{{Index: []int32{0, 1}, Value: []float64{0.5, -0.25}, Label: label}}
	}
	for _, l := range lossVectors {
		of := 1
		if l.label == colors {
			of = 3
		}
		point := make([]float64, 3*of)
		for i := range point {
			point[i] = 0.5 - 0.25*float64(i%4)
		}
		proved := fmt.Sprintf(ofTwo, l.label, l.model+", radius: 5, clip_norm: 1", "proved")
		tight := fmt.Sprintf(ofTwo, l.label, l.model+", radius: 5, clip_norm: 0.125", "proved")
		add(statisticVector{Name: l.name, Point: point, Rows: row(l.row)}, proved)
		add(statisticVector{Name: l.name + ", clipped", Point: point, Rows: row(l.row)}, tight, "validation.off=true")
		add(statisticVector{Name: l.name + ", an envelope", Smoothing: 2, Point: point, Rows: row(l.row)}, proved,
			"validation.off=true")
		framed := fmt.Sprintf(ofTwo, l.label, l.model, "practical")
		frame := &convex.Frame{Center: []float64{0.25, -0.5}, Scale: []float64{2, 0.5}, Intercept: 0.75, Bound: 0.5, Clip: 0.5}
		add(statisticVector{Name: l.name + ", in a frame", Point: point, Frame: frame, Rows: row(l.row)}, framed)
		if l.label == real || l.label == counts {
			white := *frame
			white.Whitener = []float64{2, 0.5, 1, -0.25, 0.125, 3}
			add(statisticVector{Name: l.name + ", in a frame with a whitener", Point: point, Frame: &white, Rows: row(l.row)},
				framed)
			matrix := *frame
			matrix.LabelCenter, matrix.LabelScale, matrix.LabelWeight = 0.25, 0.5, 0.75
			add(statisticVector{Name: l.name + ", the matrix", Statistic: 2, Frame: &matrix, Rows: row(l.row)}, framed)
		}
		if loss := convex.TraitsOf(strings.Fields(l.name)[0]); loss.Rounded || !loss.Smooth {
			smooth := *frame
			smooth.Smoothing = 0.5
			add(statisticVector{Name: l.name + ", in a frame with smoothing", Point: point, Frame: &smooth, Rows: row(l.row)},
				framed)
		}
		add(statisticVector{Name: l.name + ", moments", Statistic: 1, Rows: row(l.row)}, framed)
	}
	logistic := fmt.Sprintf(ofTwo, signs, "loss: logistic, radius: 5, clip_norm: 1", "proved")
	at := []float64{0.5, 0.25, 0}
	add(statisticVector{Name: "a score of 0 is the class -1", Point: []float64{0, 0, 0}, Rows: row("-1")}, logistic)
	add(statisticVector{Name: "a row that is none of the task's", Point: at, Rows: row("maybe")}, logistic)
	add(statisticVector{Name: "a value that is no number", Point: at,
		Rows: []rowVector{{Index: []int32{2}, Value: []float64{1}, Label: "1"}}}, logistic)
	people := strings.Replace(logistic, "events: {format: libsvm}\nfeatures: {vector: {dimension: 2, min: -1, max: 1}}\nlabel: {",
		"events: {format: csv, header: true}\nfeatures: {columns: [{column: a, kind: numeric, min: -1, max: 1}, "+
			"{column: b, kind: numeric, min: -1, max: 1}]}\nuser: {column: who, items: 4}\nlabel: {column: y, ", 1)
	person := func(label, a, b string) rowVector {
		return rowVector{Fields: map[string]string{"a": a, "b": b}, Label: label}
	}
	rows := []rowVector{person("1", "0.5", "-0.25"), person("-1", "1", "1"), person("1", "0", "-1")}
	add(statisticVector{Name: "a person of three rows", Point: at, Rows: rows}, people, "privacy.unit=user")
	add(statisticVector{Name: "a person of one row", Point: at, Rows: rows[:1]}, people, "privacy.unit=user")
	bad := append(rows[:1:1], person("none", "1", "1"))
	add(statisticVector{Name: "a person of two rows, of which one is none", Point: at, Rows: bad}, people,
		"privacy.unit=user")
	return out
}
