package model

import (
	"github.com/panlearn/panlearn/internal/model/onnx"
	"github.com/panlearn/panlearn/learner/task"
)

// A publicExporter makes the outputs of the public model, which reads sources.
type publicExporter struct {
	*sourceExporter
	model         *task.PublicModel
	reads         []*task.Source
	public, asked onnx.Value // [N, inputs] of the model, as doubles and as trees compare them
}

// block returns the block of the public model that has a name.
func (e *publicExporter) block(name string) *task.PublicBlock {
	for i := range e.model.Blocks {
		if b := &e.model.Blocks[i]; b.Name == name {
			return b
		}
	}
	return nil
}

// ranged returns the coordinates of a block: [N, outputs].
func (e *publicExporter) ranged(b *task.PublicBlock) onnx.Value {
	g := e.graph
	v := g.Node("Div", "in_range", []onnx.Value{e.outputsOf(b), g.Double("range", b.Range)})
	v = g.Node("Max", "above_range", []onnx.Value{v, g.Double("lowest_output", -1)})
	return g.Node("Min", "public", []onnx.Value{v, g.Double("highest_output", 1)})
}

// outputsOf returns the outputs of a block before they are divided and cut: [N, outputs].
func (e *publicExporter) outputsOf(b *task.PublicBlock) onnx.Value {
	g := e.graph
	e.publicInputs()
	bias := b.Bias
	if len(bias) == 0 {
		bias = make([]float64, b.Outputs)
	}
	parts := []onnx.Value{g.Doubles("bias", bias, 1, b.Outputs)}
	if w := b.Weights; w != nil {
		parts = append(parts, g.Node("MatMul", "directions", []onnx.Value{e.public,
			g.Doubles("public_weights", byColumns(w), w.Cols, w.Rows)}))
	}
	if len(b.Trees) > 0 {
		parts = append(parts, e.trees(b))
	}
	if f := b.Forest; f != nil {
		values := g.Node("Gather", "leaf_values", []onnx.Value{g.Doubles("leaves", byColumns(f.Leaves), f.Leaves.Cols, b.Outputs),
			e.leaves(f.Trees)}, onnx.Int("axis", 0)) // [N, trees, outputs]
		parts = append(parts, g.Node("ReduceSum", "forest", []onnx.Value{values, g.Ints("trees", []int64{1}, 1)},
			onnx.Int("keepdims", 0)))
	}
	// Every row has outputs, also where the bias is all that there is; and one that is no valid row has other faults.
	return g.Node("Sum", "outputs", parts)
}

// trees returns what the boosted trees of a block add to its outputs: [N, outputs].
func (e *publicExporter) trees(b *task.PublicBlock) onnx.Value {
	g := e.graph
	var values []float64
	targets := make([]float64, len(b.Trees)*b.Outputs)
	for i := range b.Trees {
		for _, v := range b.Trees[i].Leaf {
			values = append(values, float64(v))
		}
		targets[i*b.Outputs+b.Trees[i].Output] = 1
	}
	reached := g.Node("Gather", "leaf_values", []onnx.Value{g.Doubles("leaves", values, len(values)), e.leaves(b.Trees)},
		onnx.Int("axis", 0))
	return g.Node("MatMul", "boosted", []onnx.Value{reached, g.Doubles("targets", targets, len(b.Trees), b.Outputs)})
}

// leaves returns the number of the leaf that each tree ends in, among the leaves of all of them: int64 [N, trees]. The
// operator adds up values in single precision, so it says which leaf it is, and values are gathered in double.
func (e *publicExporter) leaves(trees []task.Tree) onnx.Value {
	g := e.graph
	var tree, node, feature, yes, no, leafTree, leafNode []int64
	var modes []string
	var thresholds, numbers []float32
	first, count := make([]int64, len(trees)), int64(0)
	for i := range trees {
		t := &trees[i]
		n := len(t.Feature)
		first[i] = count
		count += int64(n) + 1
		to := func(branch int) int64 {
			if branch < 0 {
				return int64(n - branch - 1)
			}
			return int64(branch)
		}
		for j := range 2*n + 1 {
			tree, node = append(tree, int64(i)), append(node, int64(j))
			if j < n {
				modes, feature, thresholds = append(modes, "BRANCH_LEQ"), append(feature, int64(t.Feature[j])),
					append(thresholds, t.Threshold[j])
				yes, no = append(yes, to(t.Left[j])), append(no, to(t.Right[j]))
				continue
			}
			modes, feature, thresholds = append(modes, "LEAF"), append(feature, 0), append(thresholds, 0)
			yes, no = append(yes, 0), append(no, 0)
			leafTree, leafNode, numbers = append(leafTree, int64(i)), append(leafNode, int64(j)), append(numbers, float32(j-n))
		}
	}
	own := g.NodeML("TreeEnsembleRegressor", "reached", []onnx.Value{e.asked},
		onnx.Ints("nodes_treeids", tree), onnx.Ints("nodes_nodeids", node), onnx.Ints("nodes_featureids", feature),
		onnx.Texts("nodes_modes", modes), onnx.Floats("nodes_values", thresholds), onnx.Ints("nodes_truenodeids", yes),
		onnx.Ints("nodes_falsenodeids", no), onnx.Ints("target_treeids", leafTree), onnx.Ints("target_nodeids", leafNode),
		onnx.Ints("target_ids", leafTree), onnx.Floats("target_weights", numbers), onnx.Int("n_targets", int64(len(trees))))
	whole := g.Node("Cast", "leaf_of_tree", []onnx.Value{own}, onnx.Int("to", int64(onnx.TensorProto_INT64)))
	return g.Node("Add", "leaf", []onnx.Value{whole, g.Ints("first_leaves", first, 1, len(first))})
}

// publicInputs makes the inputs of the public model.
func (e *publicExporter) publicInputs() {
	if e.public != "" {
		return
	}
	g := e.graph
	var scaled, asked []onnx.Value
	double := func(v onnx.Value) onnx.Value {
		return g.Node("Cast", "indicators", []onnx.Value{v}, onnx.Int("to", int64(onnx.TensorProto_DOUBLE)))
	}
	both := func(v onnx.Value) { scaled, asked = append(scaled, v), append(asked, v) }
	for _, s := range e.reads {
		if s.Kind == task.Hats {
			both(e.hats(s)) // no tree splits on them
			continue
		}
		if !s.Kind.Number() {
			n := s.Positions()
			both(double(g.Node("Equal", "is_position", []onnx.Value{e.position(s), g.Ints("positions", counting(n), 1, n)})))
			continue
		}
		v := e.number(s)
		if s.Kind == task.Indicator {
			both(v)
		} else {
			raw := e.inputs[s.Column]
			if s.Column != "" {
				raw = e.filled(s, s.Fill)
			}
			scaled, asked = append(scaled, v), append(asked, raw)
		}
		if s.Told {
			both(double(e.missing(s)))
		}
	}
	together := func(hint string, list []onnx.Value) onnx.Value {
		if len(list) == 1 {
			return list[0]
		}
		return g.Node("Concat", hint, list, onnx.Int("axis", 1))
	}
	e.public = together("public_inputs", scaled)
	e.asked = g.Node("Cast", "public_asked", []onnx.Value{together("public_raw", asked)},
		onnx.Int("to", int64(onnx.TensorProto_FLOAT)))
}

// byColumns returns the entries of a matrix, column by column.
func byColumns(m *task.Matrix) []float64 {
	list := make([]float64, 0, m.Rows*m.Cols)
	for j := range m.Cols {
		for k := range m.Rows {
			list = append(list, m.At(k, j))
		}
	}
	return list
}
