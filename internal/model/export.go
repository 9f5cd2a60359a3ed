package model

import (
	"fmt"
	"math"
	"strconv"

	"github.com/panlearn/panlearn/internal/model/onnx"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// ONNX returns the model as a graph that scores raw events as a device sees them: the declared columns go in,
// numbers as doubles and words as strings of shape [N, 1], or the vector as doubles of shape [N, dimension].
// A missing number is NaN, a missing word the empty string, beside the declared tokens. What Predict returns
// comes out. An event that is no valid row has the score NaN and the class "". The error names the first
// feature that ONNX cannot express.
func (s Snapshot) ONNX() ([]byte, error) {
	p, err := NewPredictor(s, "")
	if err != nil {
		return nil, err
	}
	graph := new(onnx.Graph)
	sources := &sourceExporter{graph: graph, inputs: map[string]onnx.Value{}, scaled: map[*task.Source]onnx.Value{},
		positions: map[*task.Source]onnx.Value{}}
	e := exporter{Predictor: p, graph: graph, sources: sources,
		public: publicExporter{sourceExporter: sources, model: p.spec.Features.Public.Model(),
			reads: p.Features.PublicSources()}}
	if err := sources.declare(p.spec); err != nil {
		return nil, fmt.Errorf("export to ONNX: %w", err)
	}
	if err := e.features(); err != nil {
		return nil, fmt.Errorf("export to ONNX: %w", err)
	}
	if e.spec.Label.Offset { // its faults count too
		e.added = e.public.outputsOf(e.spec.Features.Public.Model().Offset)
	}
	e.outputs(e.scores())
	header, err := s.header()
	if err != nil {
		return nil, err
	}
	return graph.Marshal(header)
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
			"round": strconv.FormatUint(s.Round, 10), "model_version": strconv.FormatUint(s.ModelVersion, 10),
			"privacy": string(privacy),
		},
	}, nil
}

// An exporter turns a predictor into a graph. The feature vector is never built: every group of coordinates adds
// its terms to the scores and its squares to the norm.
type exporter struct {
	Predictor
	graph   *onnx.Graph
	sources *sourceExporter
	public  publicExporter

	terms   []onnx.Value // [N, scores], summands of the scores before the features are scaled down, the intercept left out
	squares []onnx.Value // [N, 1], summands of the square of the features' norm in units of its bound
	added   onnx.Value   // [N, 1], the offset of the label; empty for none
}

// scores returns a value of shape [N, scores]: the parameters times the features, scaled down to the norm
// bound, and the intercept.
func (e *exporter) scores() onnx.Value {
	g := e.graph
	norm := g.Node("Sqrt", "norm", []onnx.Value{g.Node("Sum", "squared_norm", e.squares)})
	shrink := g.Node("Max", "shrink", []onnx.Value{norm, g.Double("one", 1)})
	shrunk := g.Node("Div", "shrunk", []onnx.Value{g.Node("Sum", "unshrunk", e.terms), shrink})
	summands := append([]onnx.Value{shrunk}, e.sources.faults...)
	if dim, inputs := e.Features.Dim(), len(e.Features.Coordinates()); inputs < dim { // the intercept is a coordinate too
		last := make([]float64, e.Features.Outputs())
		for k := range last {
			last[k] = e.Theta[(k+1)*dim-1] * e.spec.Intercept
		}
		summands = append(summands, g.Doubles("intercept", last, 1, len(last)))
	}
	return g.Node("Sum", "linear", summands)
}

// outputs adds the outputs: score and, by the loss, probability, label or prediction.
func (e *exporter) outputs(score onnx.Value) {
	g := e.graph
	output := func(v onnx.Value, name string, width int, doc string) {
		g.Output(v, name, onnx.TensorProto_DOUBLE, width, doc)
	}
	width := e.Features.Outputs()
	switch {
	case e.traits().Scores == convex.LogMean:
		bounded := g.Node("Min", "bounded_score", []onnx.Value{score, g.Double("score_bound", e.spec.Model.ScoreBound)})
		output(score, "score", 1, "logarithm of the expected count")
		output(e.within(g.Node("Exp", "expected", []onnx.Value{bounded})), "prediction", 1,
			"expected count, at most the largest declared one")
		return
	case !e.Features.Classification():
		value := e.invert(score)
		if e.spec.Label.Scale == task.Log {
			output(value, "score", 1, "linear score: the logarithm of scale log of the label")
			value = e.power(value)
		} else {
			output(e.offset(value), "score", 1, "linear score, in the units of the label")
		}
		output(e.offset(e.within(value)), "prediction", 1, "in the units of the label, cut to the declared range")
		return
	}
	output(score, "score", width, "linear score of each class, or of the last one of two")
	switch e.traits().Scores {
	case convex.LogOdds:
		output(g.Node("Sigmoid", "sigmoid", []onnx.Value{score}), "probability", width, "of the last of two classes")
	case convex.LogProbabilities:
		output(g.Node("Softmax", "softmax", []onnx.Value{score}, onnx.Int("axis", 1)), "probability", width, "of each class")
	}
	g.Output(e.label(score), "label", onnx.TensorProto_STRING, 1, "the predicted class; empty for a row that is not valid")
}

// label names the predicted class.
func (e *exporter) label(score onnx.Value) onnx.Value {
	g := e.graph
	names := e.Features.Classes()
	var class onnx.Value
	if e.Features.Outputs() == 1 {
		positive := g.Node("Greater", "positive", []onnx.Value{score, g.Double("zero", 0)})
		class = g.Node("Where", "class", []onnx.Value{positive, g.Strings("class_1", names[1:]),
			g.Strings("class_0", names[:1])})
	} else {
		best := g.Node("ArgMax", "best", []onnx.Value{score}, onnx.Int("axis", 1), onnx.Int("keepdims", 1))
		class = g.Node("Gather", "class", []onnx.Value{g.Strings("classes", names, len(names)), best}, onnx.Int("axis", 0))
	}
	invalid := g.Node("IsNaN", "invalid", []onnx.Value{sum(g, "any_score", score)})
	return g.Node("Where", "valid_class", []onnx.Value{invalid, g.Strings("no_class", []string{""}), class})
}

// invert turns scores into the units of the label, of scale log into its logarithm.
func (e *exporter) invert(score onnx.Value) onnx.Value {
	g := e.graph
	zero, one := e.Features.InLabel(0), e.Features.InLabel(1)
	return g.Node("Add", "in_units", []onnx.Value{
		g.Node("Mul", "stretched", []onnx.Value{score, g.Double("unit", one-zero)}), g.Double("origin", zero)})
}

// power turns the logarithms of scale log into labels.
func (e *exporter) power(value onnx.Value) onnx.Value {
	g := e.graph
	power := g.Node("Exp", "power", []onnx.Value{g.Node("Abs", "exponent", []onnx.Value{value})})
	size := g.Node("Mul", "size", []onnx.Value{g.Node("Sub", "growth", []onnx.Value{power, g.Double("one", 1)}),
		g.Double("unit", e.spec.Label.Unit)})
	return g.Node("Mul", "number", []onnx.Value{g.Node("Sign", "sign", []onnx.Value{value}), size})
}

// within cuts predictions of valid rows to the declared range of the label.
func (e *exporter) within(value onnx.Value) onnx.Value {
	g, label := e.graph, e.spec.Label
	above := g.Node("Max", "at_least", []onnx.Value{value, g.Double("least", label.Min)})
	cut := g.Node("Min", "at_most", []onnx.Value{above, g.Double("most", label.Max)})
	return g.Node("Sum", "within", append([]onnx.Value{cut}, e.sources.faults...))
}

// offset adds the offset of the label, where it has one.
func (e *exporter) offset(v onnx.Value) onnx.Value {
	if e.added == "" {
		return v
	}
	return e.graph.Node("Add", "with_offset", []onnx.Value{v, e.added})
}
