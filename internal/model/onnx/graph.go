package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
)

// What models declare.
const (
	irVersion   = 7
	opsetStd    = 13
	opsetML     = 2
	domainML    = "ai.onnx.ml"
	opsetOwn    = 1
	domainOwn   = "com.microsoft"
	batchSymbol = "N" // the first dimension of every input and output: events scored at once
)

// A Value is the name of a tensor in a graph.
type Value string

// A Graph is a model in the making. The zero value is empty and ready.
type Graph struct {
	proto GraphProto
	taken map[string]bool
	own   bool // has operators of ONNX Runtime
}

// name makes a name that no tensor has yet.
func (g *Graph) name(hint string) string {
	if g.taken == nil {
		g.taken = map[string]bool{}
	}
	name := hint
	for i := 2; g.taken[name]; i++ {
		name = hint + "_" + strconv.Itoa(i)
	}
	g.taken[name] = true
	return name
}

// Input declares an input of shape [N, width]. Inputs keep their names, so they are declared before everything
// else; a name that is taken panics.
func (g *Graph) Input(name string, elem TensorProto_DataType, width int, doc string) Value {
	if got := g.name(name); got != name {
		panic(fmt.Sprintf("onnx: input %q is declared after a tensor of this name", name))
	}
	g.proto.Input = append(g.proto.Input, valueInfo(name, elem, width, doc))
	return Value(name)
}

// Output makes v an output of shape [N, width], under the given name or, if an input has it, under output_ and that
// name.
func (g *Graph) Output(v Value, name string, elem TensorProto_DataType, width int, doc string) Value {
	for _, in := range g.proto.Input {
		if in.Name == name {
			name = "output_" + name
		}
	}
	name = g.name(name)
	g.proto.Node = append(g.proto.Node, &NodeProto{OpType: "Identity", Name: name, Input: []string{string(v)},
		Output: []string{name}})
	g.proto.Output = append(g.proto.Output, valueInfo(name, elem, width, doc))
	return Value(name)
}

func valueInfo(name string, elem TensorProto_DataType, width int, doc string) *ValueInfoProto {
	return &ValueInfoProto{Name: name, DocString: doc, Type: &TypeProto{TensorType: &TypeProto_Tensor{
		ElemType: int32(elem), Shape: &TensorShapeProto{Dim: []*TensorShapeProto_Dimension{
			{Value: &TensorShapeProto_Dimension_DimParam{DimParam: batchSymbol}},
			{Value: &TensorShapeProto_Dimension_DimValue{DimValue: int64(width)}},
		}},
	}}}
}

// Doubles adds a constant of the given shape, in row-major order; no shape is a scalar.
func (g *Graph) Doubles(hint string, data []float64, shape ...int) Value {
	return g.constant(hint, &TensorProto{DataType: int32(TensorProto_DOUBLE), DoubleData: data}, len(data), shape)
}

// Double adds a scalar constant.
func (g *Graph) Double(hint string, x float64) Value { return g.Doubles(hint, []float64{x}) }

// Ints adds a constant of the given shape, in row-major order; no shape is a scalar.
func (g *Graph) Ints(hint string, data []int64, shape ...int) Value {
	return g.constant(hint, &TensorProto{DataType: int32(TensorProto_INT64), Int64Data: data}, len(data), shape)
}

// Int adds a scalar constant.
func (g *Graph) Int(hint string, i int64) Value { return g.Ints(hint, []int64{i}) }

// Strings adds a constant of the given shape, in row-major order; no shape is a scalar.
func (g *Graph) Strings(hint string, data []string, shape ...int) Value {
	return g.constant(hint, &TensorProto{DataType: int32(TensorProto_STRING), StringData: texts(data)}, len(data), shape)
}

func texts(data []string) [][]byte {
	out := make([][]byte, len(data))
	for i, s := range data {
		out[i] = []byte(s)
	}
	return out
}

func (g *Graph) constant(hint string, t *TensorProto, size int, shape []int) Value {
	want := 1
	for _, n := range shape {
		t.Dims = append(t.Dims, int64(n))
		want *= n
	}
	if size != want {
		panic(fmt.Sprintf("onnx: constant %q of shape %v has other than as many values", hint, shape))
	}
	t.Name = g.name(hint)
	g.proto.Initializer = append(g.proto.Initializer, t)
	return Value(t.Name)
}

// Node adds a node of the standard operators with one output.
func (g *Graph) Node(op, hint string, in []Value, attributes ...*AttributeProto) Value {
	return g.node("", op, hint, in, attributes)
}

// NodeML adds a node of the machine-learning operators with one output.
func (g *Graph) NodeML(op, hint string, in []Value, attributes ...*AttributeProto) Value {
	return g.node(domainML, op, hint, in, attributes)
}

// NodeRuntime adds a node of the operators that ONNX Runtime has beside the standard, with one output.
func (g *Graph) NodeRuntime(op, hint string, in []Value, attributes ...*AttributeProto) Value {
	g.own = true
	return g.node(domainOwn, op, hint, in, attributes)
}

func (g *Graph) node(domain, op, hint string, in []Value, attributes []*AttributeProto) Value {
	n := &NodeProto{OpType: op, Domain: domain, Attribute: attributes, Name: g.name(hint)}
	for _, v := range in {
		n.Input = append(n.Input, string(v))
	}
	n.Output = []string{n.Name}
	g.proto.Node = append(g.proto.Node, n)
	return Value(n.Name)
}

// Int returns an attribute of one whole number.
func Int(name string, i int64) *AttributeProto {
	return &AttributeProto{Name: name, Type: AttributeProto_INT, I: &i}
}

// Ints returns an attribute of whole numbers.
func Ints(name string, list []int64) *AttributeProto {
	return &AttributeProto{Name: name, Type: AttributeProto_INTS, Ints: list}
}

// Floats returns an attribute of numbers in single precision.
func Floats(name string, list []float32) *AttributeProto {
	return &AttributeProto{Name: name, Type: AttributeProto_FLOATS, Floats: list}
}

// Texts returns an attribute of strings.
func Texts(name string, list []string) *AttributeProto {
	return &AttributeProto{Name: name, Type: AttributeProto_STRINGS, Strings: texts(list)}
}

// A Header holds the names, version and metadata of a model.
type Header struct {
	Name, Producer, Doc string
	Version             int64             // of the model
	Metadata            map[string]string // written in the order of the keys
}

// Marshal ends the model. Equal graphs and headers give equal bytes.
func (g *Graph) Marshal(h Header) ([]byte, error) {
	g.proto.Name = h.Name
	m := &ModelProto{
		IrVersion: irVersion, ProducerName: h.Producer, ModelVersion: h.Version, DocString: h.Doc, Graph: &g.proto,
		OpsetImport: []*OperatorSetIdProto{{Version: opsetStd}, {Domain: domainML, Version: opsetML}},
	}
	if g.own {
		m.OpsetImport = append(m.OpsetImport, &OperatorSetIdProto{Domain: domainOwn, Version: opsetOwn})
	}
	for _, key := range slices.Sorted(maps.Keys(h.Metadata)) {
		m.MetadataProps = append(m.MetadataProps, &StringStringEntryProto{Key: key, Value: h.Metadata[key]})
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode the ONNX model: %w", err)
	}
	return data, nil
}
