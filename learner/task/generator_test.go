package task

import (
	"math"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/schedule"
)

// drawSpec draws a valid task. Bounds are moderate, so that tests can compare to relative precision.
func drawSpec(t *rapid.T) *Spec {
	s := &Spec{Version: Version, Name: rapid.StringMatching(`[a-z0-9_-]{1,32}`).Draw(t, "name")}
	s.Intercept = rapid.SampledFrom([]float64{0, 1, 0.25, -2}).Draw(t, "intercept")
	s.Model = drawModel(t)
	s.Privacy = Privacy{
		Epsilon: rapid.Float64Range(0.01, 10).Draw(t, "epsilon"), Delta: rapid.Float64Range(1e-9, 0.1).Draw(t, "delta"),
	}
	honest := rapid.SampledFrom([]string{"1", "0.9", "2/3"}).Draw(t, "honest fraction")
	if err := s.Privacy.HonestFraction.UnmarshalText([]byte(honest)); err != nil {
		t.Fatal(err)
	}
	s.Schedule = drawSchedule(t, s.Model)
	s.Events.Format = rapid.SampledFrom(Formats()).Draw(t, "format")
	if s.Events.Format == LIBSVM || s.Events.Format == IDX {
		s.Features.Vector = drawVector(t)
	} else {
		s.Label.Column = "target"
		for i := range rapid.IntRange(1, 6).Draw(t, "columns") {
			s.Features.Columns = append(s.Features.Columns, drawColumn(t, "c"+strconv.Itoa(i)))
		}
		if rapid.IntRange(0, 3).Draw(t, "dated") == 0 {
			s.Features.Columns = append(s.Features.Columns, drawParts(t)...)
		}
		if rapid.IntRange(0, 3).Draw(t, "rates") == 0 {
			s.Features.Columns = append(s.Features.Columns, drawRatios(t)...)
		}
		if c := s.Features.Columns[0]; c.Kind.Number() && rapid.Bool().Draw(t, "twice") {
			again := Column{Name: c.Name, Kind: Bucketed, Edges: []float64{-50, 0, 25},
				Missing: Missing{Tokens: c.Missing.Tokens}, Marks: c.Marks}
			if rapid.Bool().Draw(t, "as hats") {
				again.Kind, again.Edges, again.Knots = Hats, nil, again.Edges
			}
			s.Features.Columns = append(s.Features.Columns, again)
		}
		s.Events.Header = s.Events.Format == CSV
	}
	drawLabel(t, s)
	s.SetDefaults()
	drawDerived(t, &s.Features)
	p := s.Features.Public.Model()
	if s.Model.traits().Labels == convex.Numbers && s.Label.Scale != Log && p != nil && p.Offset != nil {
		s.Label.Offset = rapid.Bool().Draw(t, "offset")
	}
	if rapid.Bool().Draw(t, "bounded") {
		s.NormBound = s.Features.declaredBound() * rapid.Float64Range(0.1, 1).Draw(t, "norm bound")
	}
	return s
}

// drawModel draws a loss with its parameters and a set.
func drawModel(t *rapid.T) Model {
	m := Model{
		Loss:     rapid.SampledFrom(convex.LossNames()).Draw(t, "loss"),
		Set:      rapid.SampledFrom(convex.SetKinds()).Draw(t, "set"),
		Ridge:    rapid.SampledFrom([]float64{0, 0, 1e-4, 1}).Draw(t, "ridge"),
		ClipNorm: rapid.Float64Range(0.1, 10).Draw(t, "clip norm"),
	}
	if m.Set == "box" {
		m.Min = rapid.Float64Range(-10, 0).Draw(t, "box min")
		m.Max = m.Min + rapid.Float64Range(1, 10).Draw(t, "box width")
	} else {
		m.Radius = rapid.Float64Range(0.1, 100).Draw(t, "radius")
	}
	loss := convex.TraitsOf(m.Loss)
	if loss.Takes("level") {
		m.Level = rapid.Float64Range(0.01, 0.99).Draw(t, "level")
	}
	if loss.Takes("width") {
		m.Width = rapid.Float64Range(0.01, 10).Draw(t, "width")
	}
	if loss.Takes("score_bound") {
		m.ScoreBound = rapid.Float64Range(0.1, 10).Draw(t, "score bound")
	}
	if loss.Labels == convex.TwoClasses && rapid.Bool().Draw(t, "weighted") {
		m.ClassWeights = []float64{rapid.Float64Range(0.2, 5).Draw(t, "negative weight"), 1}
	}
	if loss.Takes("label_noise") {
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
		c.Plan = rapid.SampledFrom([]string{schedule.Practical, schedule.Proved}).Draw(t, "plan")
		if convex.TraitsOf(m.Loss).Labels == convex.Counts {
			c.Plan = schedule.Proved
		}
		c.Continuous = rapid.SampledFrom(schedule.Continuous(c.Plan == schedule.Practical)).Draw(t, "continuous")
	case 3:
		if m.Ridge > 0 && convex.TraitsOf(m.Loss).Smooth {
			c.Algorithm = "pagd-restarts"
		}
	}
	return c
}

func drawLabel(t *rapid.T, s *Spec) {
	switch s.Model.traits().Labels {
	case convex.TwoClasses:
		s.Label.Positive, s.Label.Negative = []string{"1", ">50K"}, []string{"-1"}
	case convex.ManyClasses:
		s.Label.Classes = []string{"3", "1", "two", ">50K"}[:rapid.IntRange(2, 4).Draw(t, "classes")]
	case convex.Counts:
		s.Label.Max = float64(rapid.IntRange(1, 1000).Draw(t, "largest count"))
	default:
		s.Label.Min, s.Label.Max = drawRange(t)
		if s.Label.Scale = drawScale(t); rapid.IntRange(0, 3).Draw(t, "log label") == 0 {
			s.Label.Scale, s.Label.Unit = Log, rapid.Float64Range(0.01, 100).Draw(t, "label unit")
		}
	}
}

func drawVector(t *rapid.T) *Vector {
	v := &Vector{Dimension: rapid.IntRange(1, 20).Draw(t, "dimension")}
	v.MaxNonzeros = rapid.IntRange(1, v.Dimension).Draw(t, "max nonzeros")
	if v.Kind = rapid.SampledFrom([]ColumnKind{Numeric, Indicator}).Draw(t, "vector kind"); v.Kind == Indicator {
		return v
	}
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
	c := Column{Name: name, Kind: rapid.SampledFrom([]ColumnKind{Numeric, Indicator, Categorical, Hashed, Bucketed,
		Hats, Text, OneHot}).Draw(t, "kind")}
	switch c.Kind {
	case Numeric:
		if rapid.IntRange(0, 3).Draw(t, "standard") == 0 {
			c.Scale, c.Mean = Standard, rapid.Float64Range(-100, 100).Draw(t, "mean")
			c.Std = rapid.Float64Range(0.5, 50).Draw(t, "std")
			c.Clip = rapid.Float64Range(0.5, 4).Draw(t, "clip")
			if rapid.Bool().Draw(t, "log") {
				c.Scale, c.Unit = Log, rapid.Float64Range(0.01, 100).Draw(t, "unit")
				c.Mean, c.Std = c.Mean/50, c.Std/50
			}
			break
		}
		c.Min, c.Max = drawRange(t)
		c.Scale = drawScale(t)
	case Bucketed:
		c.Edges = []float64{-10, 0, 0.5, 1e3}[:rapid.IntRange(1, 4).Draw(t, "edges")]
	case Hats:
		c.Knots = []float64{-10, 0, 0.5, 1e3}[:rapid.IntRange(2, 4).Draw(t, "knots")]
	case Categorical:
		c.Vocabulary = []string{"red", "green", "<b>", "é"}[:rapid.IntRange(1, 4).Draw(t, "words")]
		c.Unknown = rapid.SampledFrom([]Unknown{Invalid, Drop, Other}).Draw(t, "unknown")
	case OneHot:
		c.Columns = []string{name + "a", name + "b", name + "c"}[:rapid.IntRange(2, 3).Draw(t, "group")]
	case Text:
		c.Buckets, c.Words = rapid.IntRange(1, 8).Draw(t, "buckets"), rapid.IntRange(1, 8).Draw(t, "words")
	case Hashed:
		c.Buckets = rapid.IntRange(1, 8).Draw(t, "buckets")
	}
	if c.Missing = drawMissing(t, &c); c.Kind != OneHot && c.Kind != Categorical && c.Kind != Hashed && c.Kind != Text {
		c.Marks = rapid.SampledFrom([][]string{nil, nil, {"$"}, {"$", ",", " kg"}}).Draw(t, "marks")
	}
	return c
}

// drawParts draws two columns that are made of one date.
func drawParts(t *rapid.T) []Column {
	part := rapid.SampledFrom(allParts())
	return []Column{
		{Name: "hour", Field: "when", Part: part.Draw(t, "part"), Kind: Hats, Knots: []float64{1, 6, 20}},
		{Name: "other", Field: "when", Part: part.Draw(t, "other part"), Kind: Numeric, Min: 0, Max: 3000,
			Missing: Missing{Indicator: rapid.Bool().Draw(t, "told")}},
	}
}

// drawRatios draws two columns that are made of the same two fields.
func drawRatios(t *rapid.T) []Column {
	marks := rapid.SampledFrom([][]string{nil, {"$"}}).Draw(t, "marks of a ratio")
	return []Column{
		{Name: "steps", Field: "debt", Over: "income", Kind: Hats, Knots: []float64{-1, 0.5, 2}, Marks: marks},
		{Name: "rate", Field: "debt", Over: "income", Kind: Numeric, Min: -1, Max: 4, Marks: marks,
			Missing: Missing{Indicator: rapid.Bool().Draw(t, "rate told"), Tokens: []string{"?", "-999"}}},
	}
}

// drawRatio draws the two fields of a ratio.
func drawRatio(t *rapid.T) (divided, divisor string) {
	some := rapid.SampledFrom([]string{"", "0", "-0", "1", "3", "-7.5", "$2", "1e300", "1e-300", "5e-324", "-999", "NaN"})
	return some.Draw(t, "divided"), some.Draw(t, "divisor")
}

// drawDate draws a date, with a time or without, or none.
func drawDate(t *rapid.T) string {
	at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "moment"), 0).UTC()
	return rapid.SampledFrom([]string{at.Format(time.DateOnly), at.Format(time.DateTime), at.Format("2006-01-02T15:04"),
		at.Format("2006-01-02 15:04:05.25"), at.Format(time.RFC3339), at.Format("2006-01-02T15:04:05-07:00"), ""}).Draw(t,
		"date")
}

// drawMissing draws what becomes of missing values; the fill of a number lies within its bounds.
func drawMissing(t *rapid.T, c *Column) (m Missing) {
	if c.Kind == Hashed || rapid.Bool().Draw(t, "plain missing") {
		return m
	}
	m.Tokens = []string{"", "?", "-999", "NA"}[:rapid.IntRange(0, 4).Draw(t, "tokens")]
	if c.Kind == Categorical && rapid.Bool().Draw(t, "missing word") {
		m.Word = c.Vocabulary[0]
	}
	if !c.Kind.Number() {
		return m
	}
	m.Indicator = rapid.Bool().Draw(t, "told")
	if rapid.Bool().Draw(t, "filled") {
		a := affineOf(c)
		fill := a.raw(a.low)
		if !a.within(fill) { // by rounding
			fill = a.raw(a.low/2 + a.high/2)
		}
		m.Fill = &fill
	}
	return m
}

// drawDerived adds what can be made from the columns or the vector, and scales.
func drawDerived(t *rapid.T, f *Features) {
	var numbers, indicators []string
	for _, c := range f.Columns {
		if c.Kind.Number() {
			numbers = append(numbers, c.Name)
		} else if c.Kind != Hats && c.Kind != Text {
			indicators = append(indicators, c.Name)
		}
	}
	if len(indicators) > 1 && rapid.Bool().Draw(t, "crossed") {
		f.Crosses = []Cross{{Columns: indicators[:rapid.IntRange(2, min(3, len(indicators))).Draw(t, "crossed columns")]}}
		if rapid.Bool().Draw(t, "hashed cross") {
			f.Crosses[0].Buckets = rapid.IntRange(1, 8).Draw(t, "cross buckets")
		}
		f.Crosses = append(f.Crosses, Cross{Columns: []string{indicators[1], indicators[0]}})
	}
	if len(numbers) > 0 && len(indicators) > 0 && rapid.Bool().Draw(t, "slopes") {
		f.Crosses = append(f.Crosses, Cross{Columns: indicators[:1], Number: numbers[len(numbers)-1],
			Buckets: rapid.SampledFrom([]int{0, 3}).Draw(t, "slope buckets")})
	}
	if len(numbers) > 0 && rapid.Bool().Draw(t, "polynomial") {
		f.Polynomial = &Polynomial{Columns: numbers, Degree: rapid.IntRange(2, 3).Draw(t, "degree")}
	}
	if (len(numbers) > 0 || f.Vector != nil) && rapid.Bool().Draw(t, "fourier") {
		f.Fourier = &Fourier{Columns: numbers, Dimension: rapid.IntRange(1, 6).Draw(t, "fourier dimension"),
			Gamma: rapid.Float64Range(1e-6, 10).Draw(t, "gamma"), Seed: rapid.IntRange(0, 1000).Draw(t, "seed")}
	}
	if rapid.Bool().Draw(t, "public") {
		f.Public = drawPublic(t, f)
	}
	for i := range f.Columns {
		if c := &f.Columns[i]; f.uses(c) {
			c.Hidden = !c.Missing.Indicator && rapid.Bool().Draw(t, "hidden")
		}
	}
	if f.Vector != nil && (f.Fourier != nil || f.Public != nil) {
		f.Vector.Hidden = rapid.Bool().Draw(t, "hidden vector")
	}
	numbersOf := func(low, high float64, what string) []float64 {
		return rapid.SliceOfN(rapid.Float64Range(low, high), f.width(), f.width()).Draw(t, what)
	}
	switch rapid.IntRange(0, 3).Draw(t, "scaled") {
	case 1:
		f.Scales = numbersOf(0.1, 10, "scales")
	case 2:
		f.Precondition = &precondition{SecondMoments: numbersOf(0, 1, "second moments"), Damping: 0.01}
	}
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
	switch s.Model.traits().Labels {
	case convex.ManyClasses:
		row.Label = rapid.SampledFrom(s.Label.Classes).Draw(t, "class")
	case convex.Counts:
		row.Label = text(math.Trunc(math.Abs(number(0, s.Label.Max))))
	case convex.TwoClasses:
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
				a := v.affine()
				row.Value = append(row.Value, number(a.low, a.high))
			}
		}
		return row
	}
	fields := map[string]string{}
	for i := range s.Features.Columns {
		if c := &s.Features.Columns[i]; c.Kind == OneHot {
			drawGroup(t, c, fields)
		} else {
			fields[c.Name] = drawField(t, &s.Features, c.Name, inside)
		}
	}
	if s.Features.column("hour", false) != nil {
		fields["when"] = drawDate(t)
	}
	if c := s.Features.column("rate", true); c != nil {
		fields["debt"], fields["income"] = drawRatio(t)
		if c.Marks == nil {
			fields["debt"], fields["income"] = strings.Trim(fields["debt"], "$"), strings.Trim(fields["income"], "$")
		}
	}
	for _, name := range s.Schema().Columns {
		row.Fields = append(row.Fields, fields[name])
	}
	return row
}

// drawGroup draws the fields of a group, of which at most one is 1.
func drawGroup(t *rapid.T, c *Column, fields map[string]string) {
	low := append([]string{"0", "-3", "0.4", "", "NaN"}, c.Missing.Tokens...)
	for _, name := range c.Columns {
		fields[name] = rapid.SampledFrom(low).Draw(t, "not the one")
	}
	if at := rapid.IntRange(0, len(c.Columns)).Draw(t, "the one"); at < len(c.Columns) {
		fields[c.Columns[at]] = rapid.SampledFrom([]string{"1", "0.5", "1e9"}).Draw(t, "one")
	}
}

// drawField draws the text of a field: a number where any feature needs one.
func drawField(t *rapid.T, f *Features, name string, inside bool) string {
	c := f.column(name, true)
	if c == nil {
		c = f.column(name, false)
	}
	if c.Kind != Hashed && rapid.IntRange(0, 3).Draw(t, "missing") == 0 {
		return rapid.SampledFrom(append([]string{"", " "}, c.Missing.Tokens...)).Draw(t, "missing token")
	}
	switch c.Kind {
	case Numeric, Indicator:
		a := affineOf(c)
		return marked(c, drawNumber(t, a.raw(a.low), a.raw(a.high), inside))
	case Bucketed, Hats:
		return marked(c, drawNumber(t, -1e4, 1e4, inside))
	case Hashed:
		return rapid.String().Draw(t, "hashed")
	case Text:
		return rapid.OneOf(rapid.String(), rapid.StringMatching(`([a-cA-C1é]{1,3}[ ,.]{1,2}){0,12}`)).Draw(t, "text")
	}
	words := c.Vocabulary
	if c.Unknown != Invalid {
		words = append([]string{"elsewhere"}, words...)
	}
	return rapid.SampledFrom(words).Draw(t, "word")
}

// drawNumber draws a number within bounds, or any.
func drawNumber(t *rapid.T, low, high float64, inside bool) string {
	if !inside {
		low, high = -math.MaxFloat64, math.MaxFloat64
	}
	return strconv.FormatFloat(rapid.Float64Range(low, high).Draw(t, "number"), 'g', -1, 64)
}

// marked puts a column's marks around a number.
func marked(c *Column, number string) string {
	for _, m := range c.Marks {
		number += m
	}
	return number
}
