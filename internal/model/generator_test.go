package model

import (
	"math"
	"strconv"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

var losses = convex.LossNames()

// drawTask draws a task and its parameters. Bounds are moderate, so that tests can compare to relative precision.
func drawTask(t *rapid.T) (*task.Spec, []float64) {
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
			s.Features.Columns = append(s.Features.Columns, drawColumn(t, columnNames[i]))
		}
		if c := s.Features.Columns[0]; c.Kind.Number() && rapid.Bool().Draw(t, "twice") {
			s.Features.Columns = append(s.Features.Columns, task.Column{Name: c.Name, Kind: task.Bucketed,
				Edges: []float64{-50, 0, 25}})
		}
		if c := s.Features.Columns[0]; c.Kind.Number() && rapid.Bool().Draw(t, "ratio") {
			s.Features.Columns = append(s.Features.Columns, drawRatios(t, c.Name)...)
		}
	}
	s.SetDefaults()
	drawDerived(t, &s.Features)
	if p := s.Features.Public.Model(); p != nil && p.Offset != nil && s.Label.Scale != task.Log &&
		convex.TraitsOf(s.Model.Loss).Labels == convex.Numbers {
		s.Label.Offset = rapid.Bool().Draw(t, "label offset")
	}
	features, err := s.Compile()
	if err == nil && rapid.IntRange(0, 2).Draw(t, "scaled") == 0 {
		n := len(features.Coordinates())
		s.Features.Scales = rapid.SliceOfN(rapid.Float64Range(0.1, 10), n, n).Draw(t, "scales")
		features, err = s.Compile()
	}
	if err == nil && rapid.Bool().Draw(t, "bounded") {
		s.NormBound = features.Longest() * rapid.Float64Range(0.1, 1).Draw(t, "norm bound")
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
	loss := convex.TraitsOf(s.Model.Loss)
	switch loss.Labels {
	case convex.TwoClasses:
		s.Label.Positive, s.Label.Negative = []string{">50K", "1"}, []string{"<=50K"}
	case convex.ManyClasses:
		s.Label.Classes = []string{"3", "1", "two", "<4>"}[:rapid.IntRange(2, 4).Draw(t, "classes")]
	case convex.Counts:
		s.Label.Max = 100
	default:
		s.Label.Min, s.Label.Max = drawRange(t)
		if s.Label.Scale = drawScale(t); rapid.IntRange(0, 3).Draw(t, "log label") == 0 {
			s.Label.Scale, s.Label.Unit = task.Log, rapid.Float64Range(0.01, 100).Draw(t, "label unit")
		}
	}
	if loss.Takes("score_bound") {
		s.Model.ScoreBound = rapid.Float64Range(0.1, 5).Draw(t, "score bound")
	}
	if loss.Takes("width") {
		s.Model.Width = 0.5
	}
	if loss.Takes("level") {
		s.Model.Level = 0.9
	}
}

func drawVector(t *rapid.T) *task.Vector {
	v := &task.Vector{Dimension: rapid.IntRange(1, 20).Draw(t, "dimension")}
	v.MaxNonzeros = rapid.IntRange(1, v.Dimension).Draw(t, "max nonzeros")
	if v.Kind = rapid.SampledFrom([]task.ColumnKind{task.Numeric, task.Indicator}).Draw(t,
		"vector kind"); v.Kind == task.Indicator {
		return v
	}
	v.Max = rapid.Float64Range(0.1, 100).Draw(t, "max")
	switch v.Scale = drawScale(t); v.Scale {
	case task.Raw:
		v.Min = -rapid.Float64Range(0, 100).Draw(t, "min")
	case task.Symmetric:
		v.Min = -v.Max
	}
	return v
}

func drawColumn(t *rapid.T, name string) task.Column {
	c := task.Column{Name: name, Kind: rapid.SampledFrom([]task.ColumnKind{task.Numeric, task.Indicator, task.Categorical,
		task.Hashed, task.Bucketed, task.Hats, task.OneHot}).Draw(t, "kind")}
	switch c.Kind {
	case task.Numeric:
		if rapid.IntRange(0, 3).Draw(t, "standard") == 0 {
			c.Scale, c.Mean = task.Standard, rapid.Float64Range(-100, 100).Draw(t, "mean")
			c.Std, c.Clip = rapid.Float64Range(0.5, 50).Draw(t, "std"), rapid.Float64Range(0.5, 4).Draw(t, "clip")
			if rapid.Bool().Draw(t, "log") {
				c.Scale, c.Unit = task.Log, rapid.Float64Range(0.01, 100).Draw(t, "unit")
				c.Mean, c.Std = c.Mean/50, c.Std/50
			}
			break
		}
		c.Min, c.Max = drawRange(t)
		c.Scale = drawScale(t)
	case task.Categorical:
		c.Vocabulary = []string{"red", "green", "<b>", "é"}[:rapid.IntRange(1, 4).Draw(t, "words")]
		c.Unknown = rapid.SampledFrom([]task.Unknown{task.Invalid, task.Drop, task.Other}).Draw(t, "unknown")
	case task.OneHot:
		c.Columns = []string{name + " a", name + "/b", name + "c"}[:rapid.IntRange(2, 3).Draw(t, "group")]
	case task.Hashed:
		c.Buckets = rapid.IntRange(1, 8).Draw(t, "buckets")
	case task.Hats:
		c.Knots = []float64{-10, 0, 0.5, 1e3}[:rapid.IntRange(2, 4).Draw(t, "knots")]
	case task.Bucketed:
		c.Edges = []float64{-10, 0, 0.5, 1e3}[:rapid.IntRange(1, 4).Draw(t, "edges")]
	}
	if c.Kind != task.Hashed {
		c.Missing.Tokens = []string{"-100", "?", "7"}[:rapid.IntRange(0, 3).Draw(t, "tokens")]
		c.Missing.Indicator = c.Kind.Number() && rapid.Bool().Draw(t, "told")
	}
	if c.Kind == task.Categorical && rapid.Bool().Draw(t, "missing word") {
		c.Missing.Word = c.Vocabulary[0]
	}
	return c
}

// drawRatios draws two columns that divide a field by another.
func drawRatios(t *rapid.T, field string) []task.Column {
	missing := task.Missing{Tokens: []string{"7", "?"}, Indicator: rapid.Bool().Draw(t, "ratio told")}
	return []task.Column{
		{Name: "share", Field: field, Over: "whole", Kind: task.Numeric, Min: -2, Max: 3, Missing: missing},
		{Name: "steps", Field: field, Over: "whole", Kind: task.Hats, Knots: []float64{-1, 0, 0.5, 4}},
		{Name: "level", Field: field, Over: "whole", Kind: task.Bucketed, Edges: []float64{-1, 0.25}},
	}
}

// drawDerived adds what can be made from the columns or the vector, and scales.
func drawDerived(t *rapid.T, f *task.Features) {
	var numbers, indicators []string
	for _, c := range f.Columns {
		if c.Kind.Number() {
			numbers = append(numbers, c.Name)
		} else if c.Kind != task.Hats {
			indicators = append(indicators, c.Name)
		}
	}
	hidden := false
	if len(indicators) > 1 && rapid.Bool().Draw(t, "crossed") {
		f.Crosses = []task.Cross{{Columns: indicators[:rapid.IntRange(2, min(3, len(indicators))).Draw(t,
			"crossed columns")]}}
		if rapid.Bool().Draw(t, "hashed cross") {
			f.Crosses[0].Buckets = rapid.IntRange(1, 8).Draw(t, "cross buckets")
		}
	}
	if len(numbers) > 0 && len(indicators) > 0 && rapid.Bool().Draw(t, "slopes") {
		f.Crosses = append(f.Crosses, task.Cross{Columns: indicators[:1], Number: numbers[0],
			Buckets: rapid.SampledFrom([]int{0, 3}).Draw(t, "slope buckets")})
	}
	if len(numbers) > 0 && rapid.Bool().Draw(t, "polynomial") {
		f.Polynomial = &task.Polynomial{Columns: numbers, Degree: rapid.IntRange(2, 3).Draw(t, "degree")}
		hidden = rapid.Bool().Draw(t, "hidden")
	}
	if (len(numbers) > 0 || f.Vector != nil) && rapid.Bool().Draw(t, "fourier") {
		f.Fourier = &task.Fourier{Columns: numbers, Dimension: rapid.IntRange(1, 6).Draw(t, "fourier dimension"),
			Gamma: rapid.Float64Range(1e-6, 1).Draw(t, "gamma"), Seed: rapid.IntRange(0, 1000).Draw(t, "seed")}
		hidden = rapid.Bool().Draw(t, "hidden")
		if f.Vector != nil {
			f.Vector.Hidden = hidden
		}
	}
	if rapid.Bool().Draw(t, "public") {
		f.Public = drawPublic(t, f)
		hidden = rapid.Bool().Draw(t, "hidden")
		if f.Vector != nil {
			f.Vector.Hidden = hidden
		}
	}
	for i := range f.Columns {
		f.Columns[i].Hidden = hidden && (f.Columns[i].Kind.Number() || f.Public != nil) && !f.Columns[i].Missing.Indicator
	}
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
	number := rapid.OneOf(rapid.Float64Range(-200, 200), rapid.Float64Range(-200, 200),
		rapid.SampledFrom([]float64{0, 0.5, 1, 1e-200, -100, 7, math.MaxFloat64, math.NaN(), math.Inf(-1)}))
	row := task.Row{Line: 1, Label: labelText(s)}
	if v := s.Features.Vector; v != nil {
		row.Value = rapid.SliceOfN(number, v.Dimension, v.Dimension).Draw(t, "vector")
	}
	kinds := map[string]task.ColumnKind{}
	for _, c := range s.Features.Columns {
		for _, name := range c.Fields() {
			kinds[name] = c.Kind
		}
	}
	for _, name := range s.Schema().Columns {
		switch kinds[name] {
		case task.OneHot:
			row.Fields = append(row.Fields, rapid.SampledFrom([]string{"0", "0", "0", "1", "NaN", "-100", "7"}).Draw(t,
				"member"))
		case task.Numeric, task.Indicator, task.Bucketed, task.Hats:
			row.Fields = append(row.Fields, strconv.FormatFloat(number.Draw(t, "number"), 'g', -1, 64))
		case task.Categorical:
			row.Fields = append(row.Fields, rapid.SampledFrom([]string{"red", "green", "<b>", "é", "elsewhere", "", "?",
				"-100"}).Draw(t, "word"))
		default:
			row.Fields = append(row.Fields, rapid.StringMatching(`[a-zé]{0,8}`).Draw(t, "hashed"))
		}
	}
	return row
}

// labelText returns a label that every task of its loss accepts.
func labelText(s *task.Spec) string {
	switch {
	case len(s.Label.Positive) > 0:
		return s.Label.Positive[0]
	case len(s.Label.Classes) > 0:
		return s.Label.Classes[0]
	}
	return "0"
}

// mapped returns a row as the model sees it, and whether it is valid.
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
