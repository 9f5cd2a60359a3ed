package task

import (
	"math"
	"strconv"

	"pgregory.net/rapid"
)

// drawSpec draws a valid task. Bounds are moderate, so that tests can compare to relative precision.
func drawSpec(t *rapid.T) *Spec {
	s := &Spec{Version: Version, Name: rapid.StringMatching(`[a-z0-9_-]{1,32}`).Draw(t, "name")}
	s.Intercept = rapid.SampledFrom([]float64{0, 1, 0.25, -2}).Draw(t, "intercept")
	s.Model = drawModel(t)
	s.Privacy = Privacy{
		Epsilon: rapid.Float64Range(0.01, 10).Draw(t, "epsilon"), Delta: rapid.Float64Range(1e-9, 0.1).Draw(t, "delta"),
		HonestFraction: rapid.SampledFrom([]string{"1", "0.9", "2/3"}).Draw(t, "honest fraction"),
	}
	s.Schedule = drawSchedule(t, s.Model)
	s.Events.Format = rapid.SampledFrom([]Format{LIBSVM, CSV, JSONL, IDX, Parquet}).Draw(t, "format")
	if s.Events.Format == LIBSVM || s.Events.Format == IDX {
		s.Features.Vector = drawVector(t)
	} else {
		s.Label.Column = "target"
		for i := range rapid.IntRange(1, 6).Draw(t, "columns") {
			s.Features.Columns = append(s.Features.Columns, drawColumn(t, "c"+strconv.Itoa(i)))
		}
		s.Events.Header = s.Events.Format == CSV
	}
	drawLabel(t, s)
	s.SetDefaults()
	if rapid.Bool().Draw(t, "bounded") {
		s.NormBound = s.declaredBound() * rapid.Float64Range(0.1, 1).Draw(t, "norm bound")
	}
	return s
}

// drawModel draws a loss with its parameters and a set.
func drawModel(t *rapid.T) Model {
	m := Model{
		Loss:     rapid.SampledFrom(lossNames[:]).Draw(t, "loss"),
		Set:      rapid.SampledFrom([]string{Ball, Box, Nonnegative, Simplex, L1}).Draw(t, "set"),
		Ridge:    rapid.SampledFrom([]float64{0, 0, 1e-4, 1}).Draw(t, "ridge"),
		ClipNorm: rapid.Float64Range(0.1, 10).Draw(t, "clip norm"),
	}
	if m.Set == Box {
		m.Min = rapid.Float64Range(-10, 0).Draw(t, "box min")
		m.Max = m.Min + rapid.Float64Range(1, 10).Draw(t, "box width")
	} else {
		m.Radius = rapid.Float64Range(0.1, 100).Draw(t, "radius")
	}
	switch traits := traitsOf(m.Loss); {
	case traits.level:
		m.Level = rapid.Float64Range(0.01, 0.99).Draw(t, "level")
	case traits.width:
		m.Width = rapid.Float64Range(0.01, 10).Draw(t, "width")
	case traits.scoreBound:
		m.ScoreBound = rapid.Float64Range(0.1, 10).Draw(t, "score bound")
	}
	if traitsOf(m.Loss).label == twoClasses && rapid.Bool().Draw(t, "weighted") {
		m.ClassWeights = []float64{rapid.Float64Range(0.2, 5).Draw(t, "negative weight"), 1}
	}
	if m.Loss == "logistic" {
		m.LabelNoise = rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "label noise")
	}
	return m
}

// drawSchedule draws one of the kinds of schedule; the algorithm is left to the defaults.
func drawSchedule(t *rapid.T, m Model) Schedule {
	c := Schedule{Users: rapid.IntRange(1, 1e6).Draw(t, "users")}
	switch rapid.IntRange(0, 3).Draw(t, "kind of schedule") {
	case 1:
		c.Interactive = true
	case 2:
		c.Continuous = rapid.SampledFrom([]string{ConstantStep, DecayingStep, Epochs}).Draw(t, "continuous")
	case 3:
		if m.Ridge > 0 && traitsOf(m.Loss).smooth {
			c.Algorithm = "pagd-restarts"
		}
	}
	return c
}

func drawLabel(t *rapid.T, s *Spec) {
	switch traitsOf(s.Model.Loss).label {
	case twoClasses:
		s.Label.Positive, s.Label.Negative = []string{"1", ">50K"}, []string{"-1"}
	case manyClasses:
		s.Label.Classes = []string{"3", "1", "two", ">50K"}[:rapid.IntRange(2, 4).Draw(t, "classes")]
	case count:
		s.Label.Max = float64(rapid.IntRange(1, 1000).Draw(t, "largest count"))
	default:
		s.Label.Min, s.Label.Max = drawRange(t)
		s.Label.Scale = drawScale(t)
	}
}

func drawVector(t *rapid.T) *Vector {
	v := &Vector{Dimension: rapid.IntRange(1, 20).Draw(t, "dimension")}
	v.MaxNonzeros = rapid.IntRange(1, v.Dimension).Draw(t, "max nonzeros")
	v.Max = rapid.Float64Range(0.1, 100).Draw(t, "max")
	switch v.Scale = drawScale(t); v.Scale {
	case Raw:
		v.Min = -rapid.Float64Range(0, 100).Draw(t, "min")
	case Symmetric:
		v.Min = -v.Max
	}
	return v
}

func drawColumn(t *rapid.T, name string) Column {
	c := Column{Name: name, Kind: rapid.SampledFrom([]ColumnKind{Numeric, Categorical, Hashed}).Draw(t, "kind")}
	switch c.Kind {
	case Numeric:
		c.Min, c.Max = drawRange(t)
		c.Scale = drawScale(t)
	case Categorical:
		c.Vocabulary = []string{"red", "green", "<b>", "é"}[:rapid.IntRange(1, 4).Draw(t, "words")]
		c.Unknown = rapid.SampledFrom([]Unknown{Invalid, Drop, Other}).Draw(t, "unknown")
	case Hashed:
		c.Buckets = rapid.IntRange(1, 8).Draw(t, "buckets")
	}
	return c
}

func drawRange(t *rapid.T) (low, high float64) {
	low = rapid.Float64Range(-100, 100).Draw(t, "low")
	return low, low + rapid.Float64Range(1, 100).Draw(t, "width")
}

func drawScale(t *rapid.T) Scale {
	return rapid.SampledFrom([]Scale{Raw, Unit, Symmetric}).Draw(t, "scale")
}

// drawRow draws a row that is valid for the task, with numbers inside the bounds if inside, else anywhere.
func drawRow(t *rapid.T, s *Spec, inside bool) Row {
	number := func(low, high float64) float64 {
		if inside {
			return rapid.Float64Range(low, high).Draw(t, "number")
		}
		return rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "wild number")
	}
	text := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	row := Row{Line: 1, Label: "1"}
	switch traitsOf(s.Model.Loss).label {
	case manyClasses:
		row.Label = rapid.SampledFrom(s.Label.Classes).Draw(t, "class")
	case count:
		row.Label = text(math.Trunc(math.Abs(number(0, s.Label.Max))))
	case twoClasses:
	default:
		row.Label = text(number(s.Label.Min, s.Label.Max))
	}
	if v := s.Features.Vector; v != nil {
		row.Index = []int32{}
		most := v.Dimension
		if inside {
			most = v.MaxNonzeros
		}
		for i := range v.Dimension {
			if len(row.Index) < most && rapid.Bool().Draw(t, "present") {
				row.Index = append(row.Index, int32(i))
				row.Value = append(row.Value, number(v.Min, v.Max))
			}
		}
		return row
	}
	for _, c := range s.Features.Columns {
		switch c.Kind {
		case Numeric:
			row.Fields = append(row.Fields, text(number(c.Min, c.Max)))
		case Categorical:
			words := c.Vocabulary
			if c.Unknown != Invalid {
				words = append([]string{"elsewhere"}, words...)
			}
			row.Fields = append(row.Fields, rapid.SampledFrom(words).Draw(t, "word"))
		default:
			row.Fields = append(row.Fields, rapid.String().Draw(t, "hashed"))
		}
	}
	return row
}
