package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/internal/model/onnx"
	"github.com/panlearn/panlearn/learner/task"
)

// The positions of what sets no indicator, and of a word that makes the row invalid.
const (
	nowhere = -1
	invalid = -2
)

// A sourceExporter makes the inputs of a graph, and of them the values of sources.
type sourceExporter struct {
	graph     *onnx.Graph
	inputs    map[string]onnx.Value       // by column; the vector is ""
	scaled    map[*task.Source]onnx.Value // scaled numbers, [N, 1], or [N, dimension] of the vector
	positions map[*task.Source]onnx.Value // int64 [N, 1], -1 for none
	faults    []onnx.Value                // [N, 1], 0 for a valid row and NaN for another
}

// sum adds up the columns of v: [N, width] to [N, 1].
func sum(g *onnx.Graph, hint string, v onnx.Value) onnx.Value {
	return g.Node("ReduceSum", hint, []onnx.Value{v, g.Ints("columns", []int64{1}, 1)}, onnx.Int("keepdims", 1))
}

// declare makes an input of every field that the features are made from.
func (e *sourceExporter) declare(spec *task.Spec) error {
	if v := spec.Features.Vector; v != nil {
		e.inputs[""] = e.graph.Input("vector", onnx.TensorProto_DOUBLE, v.Dimension, "the features, in the units of the data")
		return nil
	}
	words := map[string]bool{}
	for _, c := range spec.Features.Columns {
		if c.Part != "" {
			return fmt.Errorf("column %q is part of a date, which has no operator here: use the json or npy format", c.Name)
		}
		if c.Kind == task.Text && spec.Features.Public.Model() != nil {
			return fmt.Errorf("column %q is a text, which has no operator here: use the json or npy format", c.Name)
		}
		isWord := c.Kind == task.Categorical || c.Kind == task.Hashed || c.Kind == task.Text
		for _, name := range c.Fields() {
			if _, again := e.inputs[name]; !again {
				elem, doc := onnx.TensorProto_DOUBLE, "a number"
				if isWord {
					elem, doc = onnx.TensorProto_STRING, "text, without blanks around it"
				}
				words[name], e.inputs[name] = isWord, e.graph.Input(name, elem, 1, doc)
			}
			if words[name] != isWord {
				return fmt.Errorf(
					"column %q is a number and a word at once, and an input of ONNX has one type: use the json or npy format", name)
			}
		}
	}
	return nil
}

// number returns the scaled value of a numeric source, or of a whole vector.
func (e *sourceExporter) number(s *task.Source) onnx.Value {
	if v, ok := e.scaled[s]; ok {
		return v
	}
	g := e.graph
	v := e.inputs[s.Column]
	if s.Column != "" { // a vector has no missing values
		v = e.filled(s, s.Fill)
	}
	e.finite(v)
	if s.Kind == task.Indicator {
		set := g.Node("GreaterOrEqual", "set", []onnx.Value{v, g.Double("half", 0.5)})
		v = g.Node("Cast", "indicator", []onnx.Value{set}, onnx.Int("to", int64(onnx.TensorProto_DOUBLE)))
		e.scaled[s] = v
		return v
	}
	if s.Unit > 0 {
		v = e.logarithm(v, s.Unit)
	}
	if s.Factor != 1 || s.Offset != 0 {
		v = g.Node("Mul", "stretched", []onnx.Value{v, g.Double("factor", s.Factor)})
		v = g.Node("Add", "shifted", []onnx.Value{v, g.Double("offset", s.Offset)})
	}
	// The bounds come last. ONNX Runtime fuses a product with a constant and a product of matrices right after it
	// into one operator, with the constant in single precision.
	v = g.Node("Max", "bounded_below", []onnx.Value{v, g.Double("min", s.Factor*s.Min+s.Offset)})
	v = g.Node("Min", "scaled", []onnx.Value{v, g.Double("max", s.Factor*s.Max+s.Offset)})
	e.scaled[s] = v
	return v
}

// logarithm returns sign(v) ln(1 + |v|/unit).
func (e *sourceExporter) logarithm(v onnx.Value, unit float64) onnx.Value {
	g := e.graph
	ratio := g.Node("Div", "ratio", []onnx.Value{g.Node("Abs", "magnitude", []onnx.Value{v}), g.Double("unit", unit)})
	log := g.Node("Log", "logarithm",
		[]onnx.Value{g.Node("Add", "more_than_one", []onnx.Value{ratio, g.Double("one", 1)})})
	return g.Node("Mul", "signed", []onnx.Value{g.Node("Sign", "sign", []onnx.Value{v}), log})
}

// filled returns the number that a source reads, and fill where it is missing.
func (e *sourceExporter) filled(s *task.Source, fill float64) onnx.Value {
	v, missing := e.quantity(s)
	return e.graph.Node("Where", "filled", []onnx.Value{missing, e.graph.Double("fill", fill), v})
}

// quantity returns the number that a source reads, and whether it is missing.
func (e *sourceExporter) quantity(s *task.Source) (v, missing onnx.Value) {
	g, v := e.graph, e.inputs[cmp.Or(s.Field, s.Column)]
	missing = e.blank(s, v)
	if s.Over == "" {
		return v, missing
	}
	y := e.inputs[s.Over]
	either := g.Node("Or", "is_missing", []onnx.Value{missing, e.blank(s, y)})
	e.finite(g.Node("Where", "filled", []onnx.Value{missing, g.Double("fill", 0), v}))
	e.finite(g.Node("Where", "filled", []onnx.Value{e.blank(s, y), g.Double("fill", 0), y}))
	v = g.Node("Div", "ratio", []onnx.Value{v, y})
	zero := g.Node("Equal", "is_zero", []onnx.Value{y, g.Double("zero", 0)})
	beyond := g.Node("Greater", "is_beyond", []onnx.Value{g.Node("Abs", "magnitude", []onnx.Value{v}),
		g.Double("largest", math.MaxFloat64)})
	return v, g.Node("Or", "is_missing", []onnx.Value{either, g.Node("Or", "is_none", []onnx.Value{zero, beyond})})
}

// missing returns whether the number of a source is missing.
func (e *sourceExporter) missing(s *task.Source) onnx.Value {
	_, missing := e.quantity(s)
	return missing
}

// blank returns whether an input of a source is missing: NaN, or one of the tokens that are numbers.
func (e *sourceExporter) blank(s *task.Source, in onnx.Value) onnx.Value {
	g := e.graph
	v := g.Node("IsNaN", "is_missing", []onnx.Value{in})
	for _, x := range s.Numbers {
		v = g.Node("Or", "is_missing", []onnx.Value{v, g.Node("Equal", "is_token", []onnx.Value{in, g.Double("token", x)})})
	}
	return v
}

// finite makes a row invalid that has a number in it which is none, or infinite.
func (e *sourceExporter) finite(in onnx.Value) {
	e.faults = append(e.faults, sum(e.graph, "check", e.graph.Node("Sub", "itself", []onnx.Value{in, in})))
}

// position returns the position of the indicator that a source sets.
func (e *sourceExporter) position(s *task.Source) onnx.Value {
	if v, ok := e.positions[s]; ok {
		return v
	}
	g := e.graph
	in := e.inputs[s.Column]
	var v onnx.Value
	switch s.Kind {
	case task.OneHot:
		v = e.member(s)
	case task.Categorical:
		v = e.word(in, s)
	case task.Hashed:
		v = e.bucket(in, s.Seed, s.Buckets)
	default: // bucketed
		missing := e.missing(s)
		in = e.filled(s, 0)
		e.finite(in)
		reached := g.Node("GreaterOrEqual", "reached", []onnx.Value{in, g.Doubles("edges", s.Edges, 1, len(s.Edges))})
		v = sum(e.graph, "interval", g.Node("Cast", "edge", []onnx.Value{reached}, onnx.Int("to", int64(onnx.TensorProto_INT64))))
		v = g.Node("Where", "position", []onnx.Value{missing, g.Int("nowhere", nowhere), v})
	}
	e.positions[s] = v
	return v
}

// hats returns the hats of a source, [N, knots]: the lesser of the lines that rise to each knot and fall from it, where
// that is above 0.
func (e *sourceExporter) hats(s *task.Source) onnx.Value {
	g := e.graph
	last := len(s.Knots) - 1
	missing := e.missing(s)
	in := e.filled(s, s.Knots[0])
	e.finite(in)
	in = g.Node("Max", "bounded_below", []onnx.Value{in, g.Double("min", s.Knots[0])})
	in = g.Node("Min", "bounded", []onnx.Value{in, g.Double("max", s.Knots[last])})
	// Each line has a knot at which it is 0, and a width. None rises to the first knot or falls from the last: a line
	// that is 1 there, and between them no less.
	rise, fall, steps := slices.Concat(s.Knots[:1], s.Knots[:last]), slices.Concat(s.Knots[1:], s.Knots[last:]),
		[]float64{1}
	for i := range last {
		steps = append(steps, s.Knots[i+1]-s.Knots[i])
	}
	ends := func(at int) []float64 {
		out := make([]float64, last+1)
		out[at] = 1
		return out
	}
	row := func(hint string, x []float64) onnx.Value { return g.Doubles(hint, x, 1, len(x)) }
	line := func(distance onnx.Value, steps []float64, end int) onnx.Value {
		slope := g.Node("Div", "slope", []onnx.Value{distance, row("steps", steps)})
		return g.Node("Add", "line", []onnx.Value{slope, row("end", ends(end))})
	}
	rising := line(g.Node("Sub", "distance", []onnx.Value{in, row("rise", rise)}), steps, 0)
	falling := line(g.Node("Sub", "distance", []onnx.Value{row("fall", fall), in}), append(steps[1:], 1), last)
	hat := g.Node("Max", "hat", []onnx.Value{g.Node("Min", "lesser", []onnx.Value{rising, falling}), g.Double("zero", 0)})
	return g.Node("Where", "hats", []onnx.Value{missing, g.Double("none", 0), hat})
}

// member returns the position of the one field of a group that is 1.
func (e *sourceExporter) member(s *task.Source) onnx.Value {
	g := e.graph
	all := make([]onnx.Value, len(s.Columns))
	for i, name := range s.Columns {
		in := e.inputs[name]
		filled := g.Node("Where", "filled", []onnx.Value{e.blank(s, in), g.Double("fill", 0), in})
		e.finite(filled)
		all[i] = filled
	}
	set := g.Node("GreaterOrEqual", "set", []onnx.Value{g.Node("Concat", "group", all, onnx.Int("axis", 1)),
		g.Double("half", 0.5)})
	ones := g.Node("Cast", "ones", []onnx.Value{set}, onnx.Int("to", int64(onnx.TensorProto_INT64)))
	several := g.Node("Less", "several", []onnx.Value{g.Int("one", 1), sum(e.graph, "count", ones)})
	e.faults = append(e.faults, g.Node("Where", "check", []onnx.Value{several, g.Double("nan", math.NaN()),
		g.Double("valid", 0)}))
	// Counted from 1, so that none is 0; with several the row is invalid, and its position no more than within the
	// group.
	number := sum(e.graph, "number", g.Node("Mul", "numbers", []onnx.Value{ones, g.Ints("places", counting(len(all) + 1)[1:], 1,
		len(all))}))
	number = g.Node("Where", "number", []onnx.Value{several, g.Int("nothing", 0), number})
	return g.Node("Add", "position", []onnx.Value{number, g.Int("nowhere", nowhere)})
}

// word returns the position of a word in its vocabulary, or the vacant position for a missing one.
func (e *sourceExporter) word(in onnx.Value, s *task.Source) onnx.Value {
	g := e.graph
	unknown := int64(nowhere)
	switch s.Unknown {
	case task.Other:
		unknown = int64(len(s.Vocabulary))
	case task.Invalid:
		unknown = invalid
	}
	words, positions := append(slices.Clone(s.Vocabulary), ""), append(counting(len(s.Vocabulary)), int64(s.Vacant))
	for _, token := range s.Tokens {
		words, positions = append(words, token), append(positions, int64(s.Vacant))
	}
	v := g.NodeML("LabelEncoder", "word", []onnx.Value{in}, onnx.Texts("keys_strings", words),
		onnx.Ints("values_int64s", positions), onnx.Int("default_int64", unknown))
	if s.Unknown == task.Invalid {
		unfit := g.Node("Less", "is_unknown", []onnx.Value{v, g.Int("nowhere", nowhere)})
		e.faults = append(e.faults, g.Node("Where", "check", []onnx.Value{unfit, g.Double("nan", math.NaN()),
			g.Double("valid", 0)}))
	}
	return v
}

// bucket returns the hash of a text, or of a whole number in 4 bytes, modulo the number of buckets. The
// operator is ONNX Runtime's own.
func (e *sourceExporter) bucket(in onnx.Value, seed uint32, buckets int) onnx.Value {
	g := e.graph
	hash := g.NodeRuntime("MurmurHash3", "hash", []onnx.Value{in}, onnx.Int("seed", int64(seed)), onnx.Int("positive", 1))
	wide := g.Node("Cast", "hash_int64", []onnx.Value{hash}, onnx.Int("to", int64(onnx.TensorProto_INT64)))
	return g.Node("Mod", "bucket", []onnx.Value{wide, g.Int("buckets", int64(buckets))})
}

// counting returns the numbers 0 to n-1.
func counting(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}
