package model

import (
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/internal/model/onnx"
	"github.com/panlearn/panlearn/learner/task"
)

// features walks over the coordinates, in groups that one operator can compute.
func (e *exporter) features() error {
	all := e.Features.Coordinates()
	for first := 0; first < len(all); {
		c, width := &all[first], 1
		switch c.Kind {
		case string(task.Numeric), string(task.Indicator):
			if c.Column == "" {
				width = e.spec.Features.Vector.Dimension
			}
			e.dense(e.sources.number(c.Sources[0]), first, width)
		case task.MissingOf:
			told := e.graph.Node("Cast", "told", []onnx.Value{e.sources.missing(c.Sources[0])},
				onnx.Int("to", int64(onnx.TensorProto_DOUBLE)))
			e.dense(told, first, width)
		case string(task.Categorical), string(task.Hashed), string(task.Bucketed), string(task.OneHot):
			width = c.Sources[0].Positions()
			e.indicators(e.sources.position(c.Sources[0]), first, width, nil)
		case string(task.Hats):
			width = c.Sources[0].Positions()
			e.dense(e.sources.hats(c.Sources[0]), first, width)
		case task.Crossed:
			width = e.cross(c, first)
		case task.Product:
			for first+width < len(all) && all[first+width].Kind == c.Kind && len(all[first+width].Sources) == len(c.Sources) {
				width++
			}
			e.dense(e.products(all[first:first+width]), first, width)
		case task.FourierOf:
			for first+width < len(all) && all[first+width].Kind == c.Kind {
				width++
			}
			e.dense(e.cosines(all[first:first+width]), first, width)
		case task.PublicOf:
			b := e.public.block(c.Derived.Block)
			width = b.Outputs
			e.dense(e.public.ranged(b), first, width)
		default:
			return fmt.Errorf("feature %q is of kind %s, which has no operator here: use the json or npy format", c.Name, c.Kind)
		}
		first += width
	}
	return nil
}

// scale returns the factor that turns the group's values into coordinate j.
func (e *exporter) scale(j int) float64 {
	switch c := &e.Features.Coordinates()[j]; c.Kind {
	case string(task.Numeric), string(task.Indicator):
		return c.Factor / c.Sources[0].Factor
	case task.FourierOf:
		return c.Factor * c.Max // the amplitude
	default:
		return c.Factor
	}
}

// weights returns the parameters of coordinates, times their scales, a row for each coordinate; lengths are
// the scales in units of the norm bound.
func (e *exporter) weights(first, width int) (weights, lengths []float64) {
	dim := e.Features.Dim()
	for j := first; j < first+width; j++ {
		scale := e.scale(j)
		for k := range e.Features.Outputs() {
			weights = append(weights, e.Theta[k*dim+j]*scale)
		}
		lengths = append(lengths, scale/e.Features.Longest())
	}
	return weights, lengths
}

// dense adds the coordinates first to first+width-1, whose values are v: [N, width].
func (e *exporter) dense(v onnx.Value, first, width int) {
	g := e.graph
	weights, lengths := e.weights(first, width)
	e.terms = append(e.terms, g.Node("MatMul", "terms", []onnx.Value{v, g.Doubles("weights", weights, width,
		e.Features.Outputs())}))
	part := g.Node("Mul", "part", []onnx.Value{v, g.Doubles("lengths", lengths, 1, width)})
	e.squares = append(e.squares, sum(e.graph, "square", g.Node("Mul", "squares", []onnx.Value{part, part})))
}

// indicators adds the coordinates first to first+width-1, of which the one at position p, if any, is set: to 1, or to
// the scaled value of a source.
func (e *exporter) indicators(p onnx.Value, first, width int, to *task.Source) {
	g := e.graph
	weights, lengths := e.weights(first, width)
	outputs := e.Features.Outputs()
	// A last row of zeros is for no position: -1 counts from the end.
	rows := g.Doubles("weights", append(weights, make([]float64, outputs)...), width+1, outputs)
	chosen := g.Node("Gather", "chosen", []onnx.Value{rows, p}, onnx.Int("axis", 0)) // [N, 1, outputs]
	terms := g.Node("Squeeze", "terms", []onnx.Value{chosen, g.Ints("columns", []int64{1}, 1)})
	part := g.Node("Gather", "part", []onnx.Value{g.Doubles("lengths", append(lengths, 0), width+1), p},
		onnx.Int("axis", 0))
	if to != nil {
		value := e.sources.number(to)
		terms = g.Node("Mul", "terms", []onnx.Value{terms, value})
		part = g.Node("Mul", "part", []onnx.Value{part, value})
	}
	e.terms = append(e.terms, terms)
	e.squares = append(e.squares, g.Node("Mul", "square", []onnx.Value{part, part}))
}

// cross adds the indicators of combinations and returns how many they are.
func (e *exporter) cross(c *task.Coordinate, first int) (width int) {
	g := e.graph
	all := make([]onnx.Value, len(c.Sources))
	width = 1
	for i, s := range c.Sources {
		all[i] = e.sources.position(s)
		width *= s.Positions()
	}
	number := all[0]
	for i, s := range c.Sources[1:] {
		number = g.Node("Mul", "shifted", []onnx.Value{number, g.Int("positions", int64(s.Positions()))})
		number = g.Node("Add", "combination", []onnx.Value{number, all[i+1]})
	}
	if c.Derived.Buckets > 0 {
		width = c.Derived.Buckets
		narrow := g.Node("Cast", "combination_uint32", []onnx.Value{number}, onnx.Int("to", int64(onnx.TensorProto_UINT32)))
		number = e.sources.bucket(narrow, c.Derived.Seed, width)
	}
	lowest := g.Node("Min", "lowest", all)
	missing := g.Node("Less", "is_missing", []onnx.Value{lowest, g.Int("nil", 0)})
	e.indicators(g.Node("Where", "position", []onnx.Value{missing, g.Int("nowhere", nowhere), number}), first, width,
		c.Derived.Scaled)
	return width
}

// products returns a value of shape [N, len(list)], the products of scaled values, each of the same number of
// factors.
func (e *exporter) products(list []task.Coordinate) onnx.Value {
	g := e.graph
	var sources []*task.Source
	for _, c := range list {
		for _, s := range c.Sources {
			if !slices.Contains(sources, s) {
				sources = append(sources, s)
			}
		}
	}
	values := e.beside(sources)
	var product onnx.Value
	for i := range list[0].Sources {
		at := make([]int64, len(list))
		for j, c := range list {
			at[j] = int64(slices.Index(sources, c.Sources[i]))
		}
		factor := g.Node("Gather", "factor", []onnx.Value{values, g.Ints("factors", at, len(at))}, onnx.Int("axis", 1))
		if i == 0 {
			product = factor
		} else {
			product = g.Node("Mul", "product", []onnx.Value{product, factor})
		}
	}
	return product
}

// cosines returns the Fourier features without their amplitude: [N, len(list)].
func (e *exporter) cosines(list []task.Coordinate) onnx.Value {
	g := e.graph
	values := e.beside(list[0].Sources)
	n := len(list[0].Derived.Frequencies)
	frequencies, phases := make([]float64, n*len(list)), make([]float64, len(list))
	for i, c := range list {
		phases[i] = c.Derived.Phase
		for j, w := range c.Derived.Frequencies {
			frequencies[j*len(list)+i] = w
		}
	}
	angle := g.Node("MatMul", "angle", []onnx.Value{values, g.Doubles("frequencies", frequencies, n, len(list))})
	shifted := g.Node("Add", "shifted_angle", []onnx.Value{angle, g.Doubles("phases", phases, 1, len(list))})
	return g.Node("Cos", "cosine", []onnx.Value{shifted})
}

// beside puts the scaled values of sources side by side.
func (e *exporter) beside(sources []*task.Source) onnx.Value {
	values := make([]onnx.Value, len(sources))
	for i, s := range sources {
		values[i] = e.sources.number(s)
	}
	if len(values) == 1 {
		return values[0]
	}
	return e.graph.Node("Concat", "values", values, onnx.Int("axis", 1))
}
