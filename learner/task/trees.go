package task

// A walker walks through trees whose questions and leaves are nodes of one array. A leaf leads to itself, so a walk
// takes as many steps as the longest one of its tree, whatever the event is.
type walker struct {
	nodes []walk
	trees []walkedTree
}

// A walk is a node, with its successors for small and large values of its input.
type walk struct {
	threshold float64
	input     int32
	to        [2]int32 // left, right
	leaf      int32    // number of the leaf among the leaves of all trees
}

type walkedTree struct {
	root   int32
	depth  int32
	output int32
}

// newWalker compiles trees. Leaves are numbered tree by tree.
func newWalker(trees []Tree) walker {
	var w walker
	leaves := int32(0)
	for i := range trees {
		t := &trees[i]
		root, n := int32(len(w.nodes)), int32(len(t.Feature))
		to := func(branch int) int32 {
			if branch < 0 {
				return root + n + int32(-branch-1)
			}
			return root + int32(branch)
		}
		for j := range t.Feature {
			w.nodes = append(w.nodes, walk{threshold: float64(t.Threshold[j]), input: int32(t.Feature[j]),
				to: [2]int32{to(t.Left[j]), to(t.Right[j])}})
		}
		for j := range n + 1 {
			at := root + n + j
			w.nodes = append(w.nodes, walk{to: [2]int32{at, at}, leaf: leaves + j})
		}
		leaves += n + 1
		w.trees = append(w.trees, walkedTree{root: root, depth: int32(t.depth()), output: int32(t.Output)})
	}
	return w
}

// leaf returns the number of the leaf that an event reaches in a tree. asked are its inputs as trees compare them.
func (w *walker) leaf(t *walkedTree, asked []float64) int32 {
	at := t.root
	for range t.depth {
		node := &w.nodes[at]
		right := 0 // without a jump: one that a processor foresees for some rows takes longer for others
		if asked[node.input] > node.threshold {
			right = 1
		}
		at = node.to[right&1]
	}
	return w.nodes[at].leaf
}
