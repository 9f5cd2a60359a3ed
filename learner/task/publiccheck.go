package task

import (
	"fmt"
	"math"
)

// publicPath begins the names of a PublicModel's fields in refusals.
const publicPath = "features.public"

// validate refuses a model that is incomplete, contradictory or out of range, with a *FieldError for the first such
// field. It does not compare the inputs with a task's.
func (p *PublicModel) validate() error {
	switch {
	case p.Version != PublicVersion:
		return refuse(publicPath+".version", p.Version, "%d", PublicVersion)
	case p.Sample.Rows < 1 || p.Sample.Rows > maxCount:
		return refuse(publicPath+".sample.rows", p.Sample.Rows, "a whole number from 1 to 2^53")
	case p.Sample.Leaf < 0 || p.Sample.Leaf > p.Sample.Rows:
		return refuse(publicPath+".sample.leaf", p.Sample.Leaf, "a whole number from 0 to sample.rows (%d)", p.Sample.Rows)
	case len(p.Inputs) == 0 || len(p.Inputs) > maxDimension:
		return refuse(publicPath+".inputs", fmt.Sprintf("%d names", len(p.Inputs)), "from 1 to %d", maxDimension)
	case len(p.Blocks) == 0 && p.Offset == nil:
		return refuse(publicPath+".blocks", "", "at least one block, or an offset")
	}
	names, outputs := map[string]bool{}, 0
	for i := range p.Blocks {
		b := &p.Blocks[i]
		path := fmt.Sprintf("%s.blocks.%d", publicPath, i)
		if !namePattern.MatchString(b.Name) || b.Name == "fourier" || names[b.Name] {
			return refuse(path+".name", b.Name, "1 to 32 of a-z, 0-9, _ and -, of no other block, and not fourier")
		}
		names[b.Name] = true
		if b.Outputs < 1 || b.Outputs > maxPublicOutputs-outputs {
			return refuse(path+".outputs", b.Outputs, "from 1, and at most %d in all blocks", maxPublicOutputs)
		}
		outputs += b.Outputs
		if !(b.Range >= 1/maxPublicNumber && b.Range <= maxPublicNumber) {
			return refuse(path+".range", b.Range, "a number > 0, from %g to %g", 1/maxPublicNumber, maxPublicNumber)
		}
		if err := b.validate(path, len(p.Inputs)); err != nil {
			return err
		}
	}
	if b := p.Offset; b != nil {
		path := publicPath + ".offset"
		switch {
		case b.Name != "":
			return refuse(path+".name", b.Name, "nothing: an offset is no coordinate")
		case b.Outputs != 1:
			return refuse(path+".outputs", b.Outputs, "1")
		case b.Range != 0:
			return refuse(path+".range", b.Range, "nothing: an offset is in the units of the label")
		}
		return b.validate(path, len(p.Inputs))
	}
	return nil
}

func (b *PublicBlock) validate(path string, inputs int) error {
	if len(b.Bias) > 0 && len(b.Bias) != b.Outputs {
		return refuse(path+".bias", fmt.Sprintf("%d numbers", len(b.Bias)), "%d, one an output", b.Outputs)
	}
	for i, v := range b.Bias {
		if err := validatePublicNumber(fmt.Sprintf("%s.bias.%d", path, i), v); err != nil {
			return err
		}
	}
	if b.Weights == nil && len(b.Trees) == 0 && b.Forest == nil {
		return refuse(path, "", "weights, trees or a forest")
	}
	if b.Weights != nil {
		if err := b.Weights.validate(path+".weights", b.Outputs, inputs); err != nil {
			return err
		}
	}
	for i := range b.Trees {
		t := &b.Trees[i]
		at := fmt.Sprintf("%s.trees.%d", path, i)
		if t.Output < 0 || t.Output >= b.Outputs {
			return refuse(at+".output", t.Output, "a whole number from 0 to %d", b.Outputs-1)
		}
		if err := t.validate(at, inputs); err != nil {
			return err
		}
		if len(t.Leaf) != len(t.Feature)+1 {
			return refuse(at+".leaf", fmt.Sprintf("%d numbers", len(t.Leaf)), "%d, one a leaf", len(t.Feature)+1)
		}
		for j, v := range t.Leaf {
			if err := validatePublicNumber(fmt.Sprintf("%s.leaf.%d", at, j), float64(v)); err != nil {
				return err
			}
		}
	}
	if b.Forest == nil {
		return nil
	}
	return b.Forest.validate(path+".forest", b.Outputs, inputs)
}

func (f *Forest) validate(path string, outputs, inputs int) error {
	leaves := 0
	for i := range f.Trees {
		t := &f.Trees[i]
		at := fmt.Sprintf("%s.trees.%d", path, i)
		if t.Output != 0 {
			return refuse(at+".output", t.Output, "nothing in a forest, whose leaves have a value for every output")
		}
		if len(t.Leaf) > 0 {
			return refuse(at+".leaf", fmt.Sprintf("%d numbers", len(t.Leaf)), "nothing in a forest, which has leaves")
		}
		if err := t.validate(at, inputs); err != nil {
			return err
		}
		leaves += len(t.Feature) + 1
	}
	switch {
	case len(f.Trees) == 0:
		return refuse(path+".trees", "", "at least one tree")
	case f.Leaves == nil:
		return refuse(path+".leaves", "", "a matrix of %d x %d", outputs, leaves)
	}
	return f.Leaves.validate(path+".leaves", outputs, leaves)
}

// validate refuses what is no tree: every question and every leaf has to be the branch of exactly one question before.
func (t *Tree) validate(path string, inputs int) error {
	n := len(t.Feature)
	if n < 1 || n > MaxPublic {
		return refuse(path+".feature", fmt.Sprintf("%d questions", n), "at least one")
	}
	for _, list := range [...]struct {
		key string
		len int
	}{{"threshold", len(t.Threshold)}, {"left", len(t.Left)}, {"right", len(t.Right)}} {
		if list.len != n {
			return refuse(path+"."+list.key, fmt.Sprintf("%d numbers", list.len), "%d, one a question", n)
		}
	}
	depth, leaf := make([]int, n), make([]bool, n+1)
	depth[0] = 1 // questions on the way, this one too
	for i := range n {
		if f := t.Feature[i]; f < 0 || f >= inputs {
			return refuse(fmt.Sprintf("%s.feature.%d", path, i), f, "a whole number from 0 to %d", inputs-1)
		}
		if v := float64(t.Threshold[i]); math.IsNaN(v) || math.IsInf(v, 0) {
			return refuse(fmt.Sprintf("%s.threshold.%d", path, i), v, "a finite number")
		}
		for side, branch := range [...]int{t.Left[i], t.Right[i]} {
			at := fmt.Sprintf("%s.%s.%d", path, [...]string{"left", "right"}[side], i)
			switch {
			case branch >= 0 && (branch <= i || branch >= n || depth[branch] > 0):
				return refuse(at, branch, "a question after this one and to %d, that is no other's branch", n-1)
			case branch >= 0:
				depth[branch] = depth[i] + 1
			case branch < -n-1 || leaf[-branch-1]:
				return refuse(at, branch, "-1 to %d, a leaf that is no other's branch", -n-1)
			default:
				leaf[-branch-1] = true
			}
		}
		// Where every question is led to, that leaves as many branches as there are leaves.
		if depth[i] < 1 || depth[i] > maxTreeDepth {
			return refuse(fmt.Sprintf("%s.left.%d", path, i), t.Left[i], "a question that one before leads to, at most %d deep",
				maxTreeDepth)
		}
	}
	return nil
}

// depth returns the most questions on the way to a leaf.
func (t *Tree) depth() int {
	depth, most := make([]int, len(t.Feature)), 1
	for i := range t.Feature {
		for _, branch := range [...]int{t.Left[i], t.Right[i]} {
			if branch >= 0 {
				depth[branch] = depth[i] + 1
				most = max(most, depth[branch]+1)
			}
		}
	}
	return most
}

func (m *Matrix) validate(path string, rows, cols int) error {
	switch {
	case m.Rows != rows:
		return refuse(path+".rows", m.Rows, "%d, one an output", rows)
	case m.Cols != cols:
		return refuse(path+".cols", m.Cols, "%d", cols)
	case m.Bits != 8 && m.Bits != 16:
		return refuse(path+".bits", m.Bits, "8 or 16")
	case len(m.Scale) != rows:
		return refuse(path+".scale", fmt.Sprintf("%d numbers", len(m.Scale)), "%d, one a row", rows)
	case len(m.Values) != rows*cols*m.Bits/8:
		return refuse(path+".values", fmt.Sprintf("%d bytes", len(m.Values)), "%d in base64", rows*cols*m.Bits/8)
	}
	for i, v := range m.Scale {
		if err := validatePublicNumber(fmt.Sprintf("%s.scale.%d", path, i), v); err != nil || v < 0 {
			return refuse(fmt.Sprintf("%s.scale.%d", path, i), v, "a number from 0 to %g", maxPublicNumber)
		}
	}
	return nil
}

func validatePublicNumber(path string, v float64) error {
	if !(math.Abs(v) <= maxPublicNumber) {
		return refuse(path, v, "a number of magnitude at most %g", maxPublicNumber)
	}
	return nil
}
