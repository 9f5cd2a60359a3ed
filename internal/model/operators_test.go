package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/model/onnx"
)

// An array is a tensor in row-major order, of one kind of entries. Booleans are whole numbers.
type array struct {
	dims    []int
	doubles []float64
	ints    []int64
	texts   []string
}

func (a array) size() int {
	n := 1
	for _, d := range a.dims {
		n *= d
	}
	return n
}

// pick returns an array of the entries at these places.
func (a array) pick(dims []int, at []int) array {
	out := array{dims: dims}
	for _, i := range at {
		switch {
		case a.doubles != nil:
			out.doubles = append(out.doubles, a.doubles[i])
		case a.ints != nil:
			out.ints = append(out.ints, a.ints[i])
		default:
			out.texts = append(out.texts, a.texts[i])
		}
	}
	return out
}

// broadcast stretches arrays to their common shape, as ONNX and NumPy do.
func broadcast(in ...array) []array {
	rank := 0
	for _, a := range in {
		rank = max(rank, len(a.dims))
	}
	dims := make([]int, rank)
	for d := range dims {
		dims[d] = 1
		for _, a := range in {
			if k := d - rank + len(a.dims); k >= 0 && a.dims[k] != 1 {
				if dims[d] != 1 && dims[d] != a.dims[k] {
					panic(fmt.Sprintf("shapes do not go together: %v", a.dims))
				}
				dims[d] = a.dims[k]
			}
		}
	}
	out := make([]array, len(in))
	for j, a := range in {
		at := make([]int, array{dims: dims}.size())
		for i := range at {
			rest, stride := i, 1
			for d := rank - 1; d >= 0; d-- {
				here := rest % dims[d]
				rest /= dims[d]
				if k := d - rank + len(a.dims); k >= 0 {
					if a.dims[k] != 1 {
						at[i] += here * stride
					}
					stride *= a.dims[k]
				}
			}
		}
		out[j] = a.pick(dims, at)
	}
	return out
}

func pairwise[T, U any](a, b []T, f func(T, T) U) []U {
	out := make([]U, len(a))
	for i := range a {
		out[i] = f(a[i], b[i])
	}
	return out
}

func each[T, U any](a []T, f func(T) U) []U {
	out := make([]U, len(a))
	for i := range a {
		out[i] = f(a[i])
	}
	return out
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// interpret runs a model by the definitions of its operators (ONNX 1.8, operator set 13), in double precision and
// without fusing any. What Max and Min make of NaN is left open there: blind says that they pass it over.
func interpret(model []byte, inputs map[string]array, blind bool) map[string]array {
	var m onnx.ModelProto
	if err := proto.Unmarshal(model, &m); err != nil {
		panic(err)
	}
	known := map[string]array{}
	for name, a := range inputs {
		known[name] = a
	}
	for _, c := range m.Graph.Initializer {
		a := array{doubles: c.DoubleData, ints: c.Int64Data, texts: each(c.StringData,
			func(b []byte) string { return string(b) })}
		for _, n := range c.Dims {
			a.dims = append(a.dims, int(n))
		}
		known[c.Name] = a
	}
	for _, n := range m.Graph.Node {
		in := each(n.Input, func(name string) array { return known[name] })
		known[n.Output[0]] = operator{n, blind}.apply(in)
	}
	out := map[string]array{}
	for _, o := range m.Graph.Output {
		out[o.Name] = known[o.Name]
	}
	return out
}

type operator struct {
	*onnx.NodeProto
	blind bool
}

func (o operator) attribute(name string) *onnx.AttributeProto {
	for _, a := range o.Attribute {
		if a.Name == name {
			return a
		}
	}
	panic(fmt.Sprintf("%s without %s", o.OpType, name))
}

func (o operator) extreme(a, b float64, f func(a, b float64) float64) float64 {
	switch {
	case o.blind && math.IsNaN(a):
		return b
	case o.blind && math.IsNaN(b):
		return a
	}
	return f(a, b)
}

var arithmetic = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b }, "Sum": func(a, b float64) float64 { return a + b },
	"Sub": func(a, b float64) float64 { return a - b }, "Mul": func(a, b float64) float64 { return a * b },
	"Div": func(a, b float64) float64 { return a / b }, "Max": math.Max, "Min": math.Min,
}

var wholeArithmetic = map[string]func(a, b int64) int64{
	"Add": func(a, b int64) int64 { return a + b }, "Mul": func(a, b int64) int64 { return a * b },
	"Min": func(a, b int64) int64 { return min(a, b) },
	"Mod": func(a, b int64) int64 { return ((a % b) + b) % b }, "Or": func(a, b int64) int64 { return a | b },
	"Less": func(a, b int64) int64 { return truth(a < b) },
}

var comparisons = map[string]func(a, b float64) bool{
	"Greater": func(a, b float64) bool { return a > b }, "GreaterOrEqual": func(a, b float64) bool { return a >= b },
	"Less": func(a, b float64) bool { return a < b }, "Equal": func(a, b float64) bool { return a == b },
}

var functions = map[string]func(float64) float64{"Sqrt": math.Sqrt, "Exp": math.Exp, "Cos": math.Cos,
	"Log": math.Log, "Abs": math.Abs, "Sign": func(x float64) float64 { return float64(truth(x > 0) - truth(x < 0)) },
	"Sigmoid": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }}

func (o operator) apply(in []array) array {
	a := in[0]
	switch o.OpType {
	case "Identity":
		return a
	case "IsNaN":
		return array{dims: a.dims, ints: each(a.doubles, func(x float64) int64 { return truth(math.IsNaN(x)) })}
	case "Where":
		all := broadcast(in...)
		at, both := make([]int, all[0].size()), all[2]
		both.doubles, both.ints, both.texts = slices.Concat(both.doubles, all[1].doubles), slices.Concat(both.ints,
			all[1].ints), slices.Concat(both.texts, all[1].texts)
		for i := range at {
			at[i] = i + len(at)*int(all[0].ints[i])
		}
		return both.pick(all[0].dims, at)
	case "MatMul":
		rows, inner, columns := a.dims[0], a.dims[1], in[1].dims[1]
		out := array{dims: []int{rows, columns}, doubles: make([]float64, rows*columns)}
		for i := range out.doubles {
			for k := range inner {
				out.doubles[i] += a.doubles[i/columns*inner+k] * in[1].doubles[k*columns+i%columns]
			}
		}
		return out
	case "ReduceSum", "ArgMax", "Softmax": // of rows
		return o.rows(a)
	case "Gather":
		return o.gather(a, in[1])
	case "Squeeze":
		a.dims = slices.Delete(slices.Clone(a.dims), int(in[1].ints[0]), int(in[1].ints[0])+1)
		return a
	case "Concat":
		out := array{dims: []int{a.dims[0], 0}}
		for _, b := range in {
			out.dims[1] += b.dims[1]
		}
		for i := range a.dims[0] {
			for _, b := range in {
				out.doubles = append(out.doubles, b.doubles[i*b.dims[1]:(i+1)*b.dims[1]]...)
			}
		}
		return out
	case "Cast":
		if to := onnx.TensorProto_DataType(*o.attribute("to").I); to == onnx.TensorProto_DOUBLE {
			return array{dims: a.dims, doubles: each(a.ints, func(i int64) float64 { return float64(i) })}
		}
		return a // between whole numbers that are not negative
	case "LabelEncoder":
		keys, values := o.attribute("keys_strings").Strings, o.attribute("values_int64s").Ints
		return array{dims: a.dims, ints: each(a.texts, func(word string) int64 {
			if i := slices.IndexFunc(keys, func(k []byte) bool { return string(k) == word }); i >= 0 {
				return values[i]
			}
			return *o.attribute("default_int64").I
		})}
	case "MurmurHash3":
		seed := uint32(*o.attribute("seed").I)
		if a.texts != nil {
			return array{dims: a.dims, ints: each(a.texts, func(s string) int64 { return murmur(seed, []byte(s)) })}
		}
		return array{dims: a.dims,
			ints: each(a.ints, func(i int64) int64 { return murmur(seed, binary.LittleEndian.AppendUint32(nil, uint32(i))) })}
	}
	if f, ok := functions[o.OpType]; ok {
		return array{dims: a.dims, doubles: each(a.doubles, f)}
	}
	all := broadcast(in...)
	for out := all[0]; ; out = all[0] {
		if len(all) == 1 {
			return out
		}
		next := all[1]
		switch f, g, h := arithmetic[o.OpType], wholeArithmetic[o.OpType], comparisons[o.OpType]; {
		case out.doubles != nil && h != nil:
			next = array{dims: out.dims, ints: pairwise(out.doubles, next.doubles,
				func(a, b float64) int64 { return truth(h(a, b)) })}
		case out.doubles != nil && f != nil && (o.OpType == "Max" || o.OpType == "Min"):
			next.doubles = pairwise(out.doubles, next.doubles, func(a, b float64) float64 { return o.extreme(a, b, f) })
		case out.doubles != nil && f != nil:
			next.doubles = pairwise(out.doubles, next.doubles, f)
		case out.ints != nil && g != nil:
			next.ints = pairwise(out.ints, next.ints, g)
		default:
			panic("no operator " + o.OpType + " of these")
		}
		all = append([]array{next}, all[2:]...)
	}
}

// rows applies what makes one entry, or as many, of each row.
func (o operator) rows(a array) array {
	width := a.dims[1]
	out := array{dims: []int{a.dims[0], 1}}
	for i := range a.dims[0] {
		switch {
		case o.OpType == "ReduceSum" && a.ints != nil:
			sum := int64(0)
			for _, v := range a.ints[i*width : (i+1)*width] {
				sum += v
			}
			out.ints = append(out.ints, sum)
		case o.OpType == "ReduceSum":
			sum := 0.0
			for _, v := range a.doubles[i*width : (i+1)*width] {
				sum += v
			}
			out.doubles = append(out.doubles, sum)
		case o.OpType == "ArgMax":
			best := 0
			for k, v := range a.doubles[i*width : (i+1)*width] {
				if v > a.doubles[i*width+best] {
					best = k
				}
			}
			out.ints = append(out.ints, int64(best))
		default: // Softmax
			row := a.doubles[i*width : (i+1)*width]
			powers, sum := each(row, func(z float64) float64 { return math.Exp(z - slices.Max(row)) }), 0.0
			for _, p := range powers {
				sum += p
			}
			out.dims[1] = width
			out.doubles = append(out.doubles, each(powers, func(p float64) float64 { return p / sum })...)
		}
	}
	return out
}

// gather picks slices of a along an axis, 0 or 1; -1 is the last.
func (o operator) gather(a, indices array) array {
	axis := int(*o.attribute("axis").I)
	before, length, after := 1, a.dims[axis], 1
	for d, n := range a.dims {
		if d < axis {
			before *= n
		} else if d > axis {
			after *= n
		}
	}
	var at []int
	for b := range before {
		for _, index := range indices.ints {
			if index < int64(-length) || index >= int64(length) {
				panic(fmt.Sprintf("no entry %d of %d", index, length))
			}
			k := (int(index) + length) % length
			for i := range after {
				at = append(at, (b*length+k)*after+i)
			}
		}
	}
	return a.pick(slices.Concat(a.dims[:axis], indices.dims, a.dims[axis+1:]), at)
}

// murmur returns the MurmurHash3 x86_32 (Appleby).
func murmur(seed uint32, data []byte) int64 {
	h, n := seed, len(data)
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
	for ; len(data) >= 4; data = data[4:] {
		h = bits.RotateLeft32(h^mix(binary.LittleEndian.Uint32(data)), 13)*5 + 0xe6546b64
	}
	h ^= mix(binary.LittleEndian.Uint32(append(slices.Clone(data), 0, 0, 0, 0)))
	h ^= uint32(n)
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return int64(h ^ h>>16)
}
