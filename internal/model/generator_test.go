package model

import (
	"math"
	"strconv"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

var losses = []string{"logistic", "softmax", "squared", "huber", "absolute", "quantile", "hinge", "smoothed-hinge", "poisson"}

// drawTask draws a task and its parameters. Bounds are moderate, so that tests can compare to relative precision.
func drawTask(t *rapid.T, kinds ...task.ColumnKind) (*task.Spec, []float64) {
	s := &task.Spec{Version: task.Version, Name: "drawn"}
	s.Intercept = rapid.SampledFrom([]float64{0, 1, 0.25, -2}).Draw(t, "intercept")
	s.Model = task.Model{Loss: rapid.SampledFrom(losses).Draw(t, "loss"), Radius: 5}
	s.Privacy = task.Privacy{Epsilon: 1, Delta: 1e-6}
	s.Schedule.Users = 1000
	drawTarget(t, s)
	s.Events.Format = rapid.SampledFrom([]task.Format{task.LIBSVM, task.CSV, task.JSONL}).Draw(t, "format")
	if s.Events.Format == task.LIBSVM {
		s.Features.Vector = drawVector(t)
	} else {
		s.Label.Column = "target"
		s.Events.Header = s.Events.Format == task.CSV
		for i := range rapid.IntRange(1, 6).Draw(t, "columns") {
			s.Features.Columns = append(s.Features.Columns, drawColumn(t, columnNames[i], kinds))
		}
	}
	s.SetDefaults()
	features, err := s.Compile()
	if err == nil && rapid.Bool().Draw(t, "bounded") {
		s.NormBound = features.Bound() * rapid.Float64Range(0.1, 1).Draw(t, "norm bound")
		features, err = s.Compile()
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	n := features.Outputs() * features.Dim()
	return s, rapid.SliceOfN(rapid.Float64Range(-10, 10), n, n).Draw(t, "theta")
}

// columnNames have some that are no identifiers, and some that outputs and tensors have too.
var columnNames = []string{"age", "score", "norm", "capital gain", "é-x.y", "label"}

func drawTarget(t *rapid.T, s *task.Spec) {
	switch s.Model.Loss {
	case "logistic", "hinge", "smoothed-hinge":
		s.Label.Positive, s.Label.Negative = []string{">50K", "1"}, []string{"<=50K"}
	case "softmax":
		s.Label.Classes = []string{"3", "1", "two", "<4>"}[:rapid.IntRange(2, 4).Draw(t, "classes")]
	case "poisson":
		s.Label.Max, s.Model.ScoreBound = 100, rapid.Float64Range(0.1, 5).Draw(t, "score bound")
	default:
		s.Label.Min, s.Label.Max = drawRange(t)
		s.Label.Scale = drawScale(t)
	}
	switch s.Model.Loss {
	case "huber", "smoothed-hinge":
		s.Model.Width = 0.5
	case "quantile":
		s.Model.Level = 0.9
	}
}

func drawVector(t *rapid.T) *task.Vector {
	v := &task.Vector{Dimension: rapid.IntRange(1, 20).Draw(t, "dimension")}
	v.MaxNonzeros = rapid.IntRange(1, v.Dimension).Draw(t, "max nonzeros")
	v.Max = rapid.Float64Range(0.1, 100).Draw(t, "max")
	switch v.Scale = drawScale(t); v.Scale {
	case task.Raw:
		v.Min = -rapid.Float64Range(0, 100).Draw(t, "min")
	case task.Symmetric:
		v.Min = -v.Max
	}
	return v
}

func drawColumn(t *rapid.T, name string, kinds []task.ColumnKind) task.Column {
	c := task.Column{Name: name, Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	switch c.Kind {
	case task.Numeric:
		c.Min, c.Max = drawRange(t)
		c.Scale = drawScale(t)
	case task.Categorical:
		c.Vocabulary = []string{"red", "green", "<b>", "é"}[:rapid.IntRange(1, 4).Draw(t, "words")]
		c.Unknown = rapid.SampledFrom([]task.Unknown{task.Invalid, task.Drop, task.Other}).Draw(t, "unknown")
	case task.Hashed:
		c.Buckets = rapid.IntRange(1, 8).Draw(t, "buckets")
	}
	return c
}

func drawRange(t *rapid.T) (low, high float64) {
	low = rapid.Float64Range(-100, 100).Draw(t, "low")
	return low, low + rapid.Float64Range(1, 100).Draw(t, "width")
}

func drawScale(t *rapid.T) task.Scale {
	return rapid.SampledFrom([]task.Scale{task.Raw, task.Unit, task.Symmetric}).Draw(t, "scale")
}

// drawRow draws an event that may leave the bounds and the vocabularies, and may hold what is no number.
func drawRow(t *rapid.T, s *task.Spec) task.Row {
	number := rapid.OneOf(rapid.Float64Range(-200, 200), rapid.Float64Range(-200, 200), rapid.SampledFrom([]float64{0, math.MaxFloat64, math.NaN(), math.Inf(-1)}))
	row := task.Row{Line: 1, Label: labelText(s)}
	if v := s.Features.Vector; v != nil {
		row.Value = rapid.SliceOfN(number, v.Dimension, v.Dimension).Draw(t, "vector")
	}
	for _, c := range s.Features.Columns {
		switch c.Kind {
		case task.Numeric:
			row.Fields = append(row.Fields, strconv.FormatFloat(number.Draw(t, "number"), 'g', -1, 64))
		case task.Categorical:
			row.Fields = append(row.Fields, rapid.SampledFrom([]string{"red", "green", "<b>", "é", "elsewhere", ""}).Draw(t, "word"))
		default:
			row.Fields = append(row.Fields, rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "hashed"))
		}
	}
	return row
}

// labelText is a label that every task of its loss accepts.
func labelText(s *task.Spec) string {
	switch {
	case len(s.Label.Positive) > 0:
		return s.Label.Positive[0]
	case len(s.Label.Classes) > 0:
		return s.Label.Classes[0]
	}
	return "0"
}

// mapped is a row as the model sees it, and whether it is valid.
func mapped(t fataler, p Predictor, row task.Row) (e convex.Example, valid bool) {
	t.Helper()
	err := p.Features.Map(row, &e)
	if err == nil {
		return e, true
	}
	if _, ok := err.(*task.RowError); !ok {
		t.Fatalf("%v", err)
	}
	return e, false
}
