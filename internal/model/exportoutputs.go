package model

import (
	"github.com/panlearn/panlearn/internal/model/onnx"
	"github.com/panlearn/panlearn/learner/convex"
)

// outputs are score and, by the loss, probability, label or prediction.
func (e *exporter) outputs(score onnx.Value) {
	g := &e.graph
	output := func(v onnx.Value, name string, width int, doc string) {
		g.Output(v, name, onnx.TensorProto_DOUBLE, width, doc)
	}
	width := e.Features.Outputs()
	switch {
	case e.traits().Scores == convex.LogMean:
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
