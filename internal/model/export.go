package model

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/panlearn/panlearn/internal/model/onnx"
	"github.com/panlearn/panlearn/learner/task"
)

// ONNX is the model as a graph that scores raw events as a device sees them: the declared columns go in, numbers as doubles
// and words as strings of shape [N, 1], or the vector as doubles of shape [N, dimension]. What Predict answers comes out. An event
// that is no valid row has the score NaN and the class "". The error names the first feature that ONNX cannot express.
func (s Snapshot) ONNX() ([]byte, error) {
	p, err := NewPredictor(s, "")
	if err != nil {
		return nil, err
	}
	e := exporter{Predictor: p}
	if err := e.features(); err != nil {
		return nil, fmt.Errorf("export to ONNX: %w", err)
	}
	e.outputs(e.scores())
	header, err := s.header()
	if err != nil {
		return nil, err
	}
	return e.graph.Marshal(header)
}

// header carries the privacy statement, as JSON for programs and as a sentence for people.
func (s Snapshot) header() (onnx.Header, error) {
	privacy, err := plainJSON(s.Privacy, "")
	if err != nil {
		return onnx.Header{}, fmt.Errorf("export to ONNX: %w", err)
	}
	classes, err := plainJSON(s.Classes, "")
	if err != nil {
		return onnx.Header{}, fmt.Errorf("export to ONNX: %w", err)
	}
	return onnx.Header{
		Name: s.Task, Producer: "panlearn", Version: int64(min(s.ModelVersion, math.MaxInt64)), Doc: s.Privacy.String(),
		Metadata: map[string]string{
			"format_version": strconv.Itoa(s.FormatVersion), "task": s.Task, "task_hash": s.TaskHash.String(), "loss": s.Loss,
			"classes": string(classes), "probabilities": string(s.Probabilities),
			"round": strconv.FormatUint(s.Round, 10), "model_version": strconv.FormatUint(s.ModelVersion, 10), "privacy": string(privacy),
		},
	}, nil
}

// An exporter turns a predictor into a graph.
type exporter struct {
	Predictor
	graph  onnx.Graph
	blocks []onnx.Value // coordinates [N, width], side by side the feature vector without its intercept
	faults []onnx.Value // [N, 1], 0 for a valid row and NaN for another
}

// scores is [N, number of scores]: the feature vector, scaled down to the norm bound, times the parameters.
func (e *exporter) scores() onnx.Value {
	g := &e.graph
	x := e.blocks[0]
	if len(e.blocks) > 1 {
		x = g.Node("Concat", "features", e.blocks, onnx.Int("axis", 1))
	}
	// In units of the bound nothing overflows that is near it, and the norm is never divided by.
	bound, constant := e.Features.Bound(), e.intercept()
	units := g.Node("Div", "features_in_bounds", []onnx.Value{x, g.Double("norm_bound", bound)})
	squares := e.sum("squared_norm", g.Node("Mul", "squares", []onnx.Value{units, units}))
	with := g.Node("Add", "squared_norm_with_intercept", []onnx.Value{squares, g.Double("squared_intercept", constant/bound*constant/bound)})
	norm := g.Node("Sqrt", "norm", []onnx.Value{with})
	shrink := g.Node("Max", "shrink", []onnx.Value{norm, g.Double("one", 1)})

	dim, scores := e.Features.Dim(), e.Features.Outputs()
	inputs := len(e.Features.Coordinates())
	weights, constants := make([]float64, inputs*scores), make([]float64, scores)
	for c := range scores {
		theta := e.Theta[c*dim : (c+1)*dim]
		for j := range inputs {
			weights[j*scores+c] = theta[j]
		}
		if inputs < dim {
			constants[c] = theta[dim-1] * constant
		}
	}
	product := g.Node("MatMul", "product", []onnx.Value{x, g.Doubles("weights", weights, inputs, scores)})
	raw := g.Node("Add", "unshrunk", []onnx.Value{product, g.Doubles("intercept", constants, 1, scores)})
	return g.Node("Sum", "linear", append([]onnx.Value{g.Node("Div", "shrunk", []onnx.Value{raw, shrink})}, e.faults...))
}

// intercept is the constant coordinate, 0 if there is none.
func (e *exporter) intercept() float64 { return e.spec.Intercept }

// sum adds up the columns of v: [N, width] to [N, 1].
func (e *exporter) sum(hint string, v onnx.Value) onnx.Value {
	return e.graph.Node("ReduceSum", hint, []onnx.Value{v, e.graph.Ints("columns", []int64{1}, 1)}, onnx.Int("keepdims", 1))
}

// outputs are score and, by the loss, probability, label or prediction.
func (e *exporter) outputs(score onnx.Value) {
	g := &e.graph
	output := func(v onnx.Value, name string, width int, doc string) {
		g.Output(v, name, onnx.TensorProto_DOUBLE, width, doc)
	}
	width := e.Features.Outputs()
	switch {
	case e.Loss.Name() == poisson:
		bounded := g.Node("Min", "bounded_score", []onnx.Value{score, g.Double("score_bound", e.spec.Model.ScoreBound)})
		output(score, "score", 1, "logarithm of the expected count")
		output(g.Node("Exp", "expected", []onnx.Value{bounded}), "prediction", 1, "expected count")
		return
	case !e.Features.Classification():
		value := e.invert(score)
		output(value, "score", 1, "linear score, in the units of the label")
		output(value, "prediction", 1, "in the units of the label")
		return
	}
	output(score, "score", width, "linear score of each class, or of the last one of two")
	switch e.Loss.Name() {
	case logistic:
		output(g.Node("Sigmoid", "sigmoid", []onnx.Value{score}), "probability", width, "of the last of two classes")
	case softmax:
		output(g.Node("Softmax", "softmax", []onnx.Value{score}, onnx.Int("axis", 1)), "probability", width, "of each class")
	}
	g.Output(e.label(score), "label", onnx.TensorProto_STRING, 1, "the predicted class; empty for a row that is not valid")
}

// label names the predicted class.
func (e *exporter) label(score onnx.Value) onnx.Value {
	g := &e.graph
	names := e.Features.Classes()
	var class onnx.Value
	if e.Features.Outputs() == 1 {
		positive := g.Node("Greater", "positive", []onnx.Value{score, g.Double("zero", 0)})
		class = g.Node("Where", "class", []onnx.Value{positive, g.Strings("class_1", names[1:]), g.Strings("class_0", names[:1])})
	} else {
		best := g.Node("ArgMax", "best", []onnx.Value{score}, onnx.Int("axis", 1), onnx.Int("keepdims", 1))
		class = g.Node("Gather", "class", []onnx.Value{g.Strings("classes", names, len(names)), best}, onnx.Int("axis", 0))
	}
	invalid := g.Node("IsNaN", "invalid", []onnx.Value{e.sum("any_score", score)})
	return g.Node("Where", "valid_class", []onnx.Value{invalid, g.Strings("no_class", []string{""}), class})
}

// invert turns scores into the units of the label.
func (e *exporter) invert(score onnx.Value) onnx.Value {
	g := &e.graph
	zero, one := e.Features.Decide(0), e.Features.Decide(1)
	return g.Node("Add", "in_units", []onnx.Value{
		g.Node("Mul", "stretched", []onnx.Value{score, g.Double("unit", one-zero)}), g.Double("origin", zero)})
}

// features builds the blocks in the order of the coordinates.
func (e *exporter) features() error {
	if f := e.spec.Features; len(f.Crosses) > 0 || f.Polynomial != nil || f.Fourier != nil || f.Scales != nil || f.Precondition != nil {
		return errors.New("derived features cannot be exported yet: use the json or npy format")
	}
	if v := e.spec.Features.Vector; v != nil {
		in := e.graph.Input("vector", onnx.TensorProto_DOUBLE, v.Dimension, "the features, in the units of the data")
		e.blocks = append(e.blocks, e.scaled(in, v.Min, v.Max, v.Scale))
		e.faults = append(e.faults, e.finite(in))
		return nil
	}
	inputs := make([]onnx.Value, len(e.spec.Features.Columns))
	for i, c := range e.spec.Features.Columns {
		switch c.Kind {
		case task.Numeric:
			inputs[i] = e.graph.Input(c.Name, onnx.TensorProto_DOUBLE, 1, "a number")
		case task.Categorical:
			inputs[i] = e.graph.Input(c.Name, onnx.TensorProto_STRING, 1, "a word, without blanks around it")
		default:
			return fmt.Errorf("feature %q is of kind %s, for which ONNX has no operator: use the json or npy format", c.Name, c.Kind)
		}
	}
	for i, c := range e.spec.Features.Columns {
		if c.Kind == task.Numeric {
			e.blocks = append(e.blocks, e.scaled(inputs[i], c.Min, c.Max, c.Scale))
			e.faults = append(e.faults, e.finite(inputs[i]))
		} else {
			e.categorical(inputs[i], c)
		}
	}
	return nil
}

// finite is 0 where every number of a row is finite, and NaN elsewhere.
func (e *exporter) finite(in onnx.Value) onnx.Value {
	return e.sum("check", e.graph.Node("Sub", "itself", []onnx.Value{in, in}))
}

// scaled moves numbers into the bounds and scales them as the feature map does.
func (e *exporter) scaled(in onnx.Value, low, high float64, scale task.Scale) onnx.Value {
	g := &e.graph
	lowest, highest := g.Double("min", low), g.Double("max", high)
	x := g.Node("Min", "bounded", []onnx.Value{g.Node("Max", "bounded_below", []onnx.Value{in, lowest}), highest})
	if scale == task.Raw {
		return x
	}
	above, width := g.Node("Sub", "above_min", []onnx.Value{x, lowest}), g.Double("width", high-low)
	if scale == task.Symmetric {
		above = g.Node("Sub", "around_middle", []onnx.Value{above, g.Node("Sub", "below_max", []onnx.Value{highest, x})})
	}
	// The last operator before a product must not be a division by a constant: ONNX Runtime fuses the two, with the constant in
	// single precision.
	return g.Node("Min", "scaled", []onnx.Value{g.Node("Div", "fraction", []onnx.Value{above, width}), g.Double("most", 1)})
}

// categorical makes one indicator a word.
func (e *exporter) categorical(in onnx.Value, c task.Column) {
	g := &e.graph
	const outside = -1
	width, unknown := len(c.Vocabulary), int64(outside)
	if c.Unknown == task.Other {
		unknown = int64(width)
		width++
	}
	numbers := make([]int64, width)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	index := g.NodeML("LabelEncoder", "word", []onnx.Value{in}, onnx.Texts("keys_strings", c.Vocabulary),
		onnx.Ints("values_int64s", numbers[:len(c.Vocabulary)]), onnx.Int("default_int64", unknown))
	same := g.Node("Equal", "is_word", []onnx.Value{index, g.Ints("words", numbers, 1, width)})
	e.blocks = append(e.blocks, g.Node("Cast", "indicator", []onnx.Value{same}, onnx.Int("to", int64(onnx.TensorProto_DOUBLE))))
	if c.Unknown == task.Invalid {
		missing := g.Node("Equal", "is_unknown", []onnx.Value{index, g.Ints("unknown", []int64{outside})})
		e.faults = append(e.faults, g.Node("Where", "check", []onnx.Value{missing, g.Double("nan", math.NaN()), g.Double("nil", 0)}))
	}
}
