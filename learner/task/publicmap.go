package task

import (
	"fmt"
	"strings"
)

// PublicOf is the kind of the coordinates that are outputs of a public model.
const PublicOf = "public"

// validatePublic refuses a public model that was made for other inputs. The task may have more of them than fit into
// memory: no more are looked at than the model has.
func (f *Features) validatePublic() error {
	p := f.Public.model
	at, asked := 0, make([]bool, len(p.Inputs))
	var err error
	f.eachInput(func(name string, may bool) bool {
		if at >= len(p.Inputs) || p.Inputs[at] != name {
			found := ""
			if at < len(p.Inputs) {
				found = p.Inputs[at]
			}
			err = refuse(fmt.Sprintf("%s.inputs.%d", publicPath, at), found, "%s, as the task's columns have it", shorten(name))
			return false
		}
		asked[at] = may
		at++
		return true
	})
	if err == nil && at < len(p.Inputs) {
		err = refuse(fmt.Sprintf("%s.inputs.%d", publicPath, at), p.Inputs[at], "no more than the task's %d inputs", at)
	}
	if err != nil {
		return err
	}
	return p.eachTree(func(path string, t *Tree) error {
		for i, at := range t.Feature {
			if !asked[at] {
				return refuse(fmt.Sprintf("%s.feature.%d", path, i), at, "a number or an indicator, not input %s",
					shorten(p.Inputs[at]))
			}
		}
		return nil
	})
}

// eachInput yields the names of the inputs of a public model, and whether trees may ask about them: the coordinates of
// all columns, hidden ones too, or the values of the vector.
func (f *Features) eachInput(yield func(name string, asked bool) bool) {
	if f.Vector != nil {
		for i := range f.Vector.Dimension {
			if !yield(vectorName(i), true) {
				return
			}
		}
	}
	for i := range f.Columns {
		s := f.Columns[i].source()
		if s.Kind.Number() {
			for _, c := range ofSource(s) {
				if !yield(c.Name, true) {
					return
				}
			}
			continue
		}
		for j := range s.Positions() {
			if !yield(indicatorName(s, j), s.Kind != Hats && s.Kind != Text) {
				return
			}
		}
	}
}

// eachTree calls do for every tree.
func (p *PublicModel) eachTree(do func(path string, t *Tree) error) error {
	of := func(path string, b *PublicBlock) error {
		for i := range b.Trees {
			if err := do(fmt.Sprintf("%s.trees.%d", path, i), &b.Trees[i]); err != nil {
				return err
			}
		}
		for i := 0; b.Forest != nil && i < len(b.Forest.Trees); i++ {
			if err := do(fmt.Sprintf("%s.forest.trees.%d", path, i), &b.Forest.Trees[i]); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range p.Blocks {
		if err := of(fmt.Sprintf("%s.blocks.%d", publicPath, i), &p.Blocks[i]); err != nil {
			return err
		}
	}
	if p.Offset == nil {
		return nil
	}
	return of(publicPath+".offset", p.Offset)
}

// publicMap is a compiled PublicModel.
type publicMap struct {
	sources []*Source // of the inputs, in order
	inputs  int
	blocks  []publicBlock
	offset  *publicBlock // of a label with an offset
	first   int          // coordinate
	width   int          // coordinates
}

// publicBlock is a compiled PublicBlock.
type publicBlock struct {
	outputs int
	span    float64 // the range
	bias    []float64
	weights []float64 // outputs x inputs, or nil
	trees   walker
	leaf    []float64 // of trees
	forest  walker
	leaves  []float64 // leaves x outputs
}

func newPublicBlock(b *PublicBlock) publicBlock {
	out := publicBlock{outputs: b.Outputs, span: b.Range, bias: b.Bias, trees: newWalker(b.Trees)}
	if len(out.bias) == 0 {
		out.bias = make([]float64, b.Outputs)
	}
	if w := b.Weights; w != nil {
		for k := range w.Rows {
			for j := range w.Cols {
				out.weights = append(out.weights, w.At(k, j))
			}
		}
	}
	for i := range b.Trees {
		for _, v := range b.Trees[i].Leaf {
			out.leaf = append(out.leaf, float64(v))
		}
	}
	if f := b.Forest; f != nil {
		out.forest = newWalker(f.Trees)
		for j := range f.Leaves.Cols {
			for k := range f.Leaves.Rows {
				out.leaves = append(out.leaves, f.Leaves.At(k, j))
			}
		}
	}
	return out
}

// compilePublic adds the coordinates of the public model.
func (m *FeatureMap) compilePublic(f *Features, offset bool) {
	p := f.Public.model
	var sources []*Source
	for i := range m.inputs {
		sources = append(sources, m.inputs[i].Source)
	}
	if m.vector != nil {
		sources = []*Source{m.vector.source}
	}
	m.public = &publicMap{sources: sources, inputs: len(p.Inputs), first: len(m.coordinate), width: p.width()}
	for i := range p.Blocks {
		b := &p.Blocks[i]
		m.public.blocks = append(m.public.blocks, newPublicBlock(b))
		for k := range b.Outputs {
			m.coordinate = append(m.coordinate, Coordinate{Name: fmt.Sprintf("%s~%d", b.Name, k+1), Kind: PublicOf, Min: -1,
				Max: 1, Factor: 1, Position: k, Sources: sources, Derived: &Derived{Block: b.Name, Public: p}})
		}
	}
	if offset {
		b := newPublicBlock(p.Offset)
		m.public.offset = &b
	}
	m.most += m.public.width
}

// scratch returns the number of float64 values of scratch memory that a row needs in addition to its coordinates.
func (p *publicMap) scratch() int {
	if p == nil {
		return 0
	}
	most := 1
	for i := range p.blocks {
		most = max(most, p.blocks[i].outputs)
	}
	return 2*p.inputs + most
}

// addPublic appends the outputs of the public model and sets the offset of the row, which was found to be sound.
func (w *writer) addPublic(row Row) {
	p := w.public
	scaled, asked, sums := w.scratch[:p.inputs], w.scratch[p.inputs:2*p.inputs], w.scratch[2*p.inputs:]
	if w.vector != nil {
		w.vectorInputs(row, scaled, asked)
	} else {
		w.columnInputs(row.Fields, scaled, asked)
	}
	at := p.first
	for i := range p.blocks {
		b := &p.blocks[i]
		for _, o := range b.apply(sums, scaled, asked) {
			w.set(at, min(max(o/b.span, -1), 1))
			at++
		}
	}
	if p.offset != nil {
		w.offset = p.offset.apply(sums, scaled, asked)[0]
	}
}

// apply overwrites dst with the outputs of a block, before division and cutting, and returns it.
func (b *publicBlock) apply(dst, scaled, asked []float64) []float64 {
	dst = dst[:b.outputs]
	copy(dst, b.bias)
	if b.weights != nil {
		for k := range dst {
			sum := dst[k]
			for j, weight := range b.weights[k*len(scaled) : (k+1)*len(scaled)] {
				sum += float64(weight * scaled[j]) // in two steps on every machine
			}
			dst[k] = sum
		}
	}
	for i := range b.trees.trees {
		t := &b.trees.trees[i]
		dst[t.output] += b.leaf[b.trees.leaf(t, asked)]
	}
	for i := range b.forest.trees {
		first := int(b.forest.leaf(&b.forest.trees[i], asked)) * b.outputs
		for k, v := range b.leaves[first : first+b.outputs] {
			dst[k] += v
		}
	}
	return dst
}

// columnInputs writes the inputs of the public model, scaled and as trees ask about them. The sources are there.
func (w *writer) columnInputs(fields []string, scaled, asked []float64) {
	at := 0
	for i := range w.inputs {
		in := &w.inputs[i]
		if in.Kind.Number() {
			x, missing, _ := in.quantity(fields) // was read without an error
			if missing {
				x = in.Fill
			}
			scaled[at], asked[at] = w.sources[i], askedOf(in.Kind, x, w.sources[i])
			at++
			if in.Told {
				scaled[at] = 0
				if missing {
					scaled[at] = 1
				}
				asked[at] = scaled[at]
				at++
			}
			continue
		}
		n := in.Positions()
		clear(scaled[at : at+n])
		clear(asked[at : at+n])
		switch p := w.sources[i]; {
		case in.Kind == Text:
			if _, missing, _ := in.value(fields); !missing {
				in.wordInputs(strings.TrimSpace(fields[in.fields[0]]), scaled[at:at+n])
			}
		case p == none:
		case in.Kind == Hats:
			hat := min(int(p), n-2)
			upper := p - float64(hat)
			scaled[at+hat], scaled[at+hat+1] = 1-upper, upper
		default:
			scaled[at+int(p)], asked[at+int(p)] = 1, 1
		}
		at += n
	}
}

// askedOf returns the value that trees compare for a number of the data.
func askedOf(kind ColumnKind, raw, scaled float64) float64 {
	if kind == Indicator {
		return scaled
	}
	return float64(float32(raw))
}

// vectorInputs works like columnInputs, for a vector.
func (w *writer) vectorInputs(row Row, scaled, asked []float64) {
	if row.Index != nil {
		clear(scaled)
		clear(asked)
	}
	for k, v := range w.sources {
		at := k
		if row.Index != nil {
			at = int(row.Index[k])
		}
		scaled[at], asked[at] = v, askedOf(w.vector.source.Kind, row.Value[k], v)
	}
}

// validateOffset refuses an offset without a public model that has one.
func (l *Label) validateOffset(f *Features) error {
	if l.Scale == Log {
		return refuse("label.offset", true, "false with scale log: an offset is in the units of the label")
	}
	if f.Public == nil || !f.unread() && f.Public.model.Offset == nil {
		return refuse("label.offset", true, "false, or features.public with an offset")
	}
	return nil
}

// NewPublic returns a public model together with its file, for Features.Public.
func NewPublic(p *PublicModel) (*Public, error) {
	data, err := p.Encode()
	if err != nil {
		return nil, err
	}
	out := &Public{File: File{hash: hashText(data), data: data}}
	out.model, err = parsePublic(data)
	return out, err
}

// PublicInputs returns the required names of the inputs of a public model.
func (f *Features) PublicInputs() []string {
	var out []string
	for name := range f.eachInput {
		out = append(out, name)
	}
	return out
}

// Origin returns the parameters that predict the offset alone; nil if labels have no offset.
func (m *FeatureMap) Origin() []float64 {
	if !m.HasOffset() {
		return nil
	}
	theta, err := m.Redo(make([]float64, len(m.coordinate)), 0)
	if err != nil {
		return nil
	}
	return theta
}

// HasOffset reports whether the model learns a number minus an offset, which mapped events carry.
func (m *FeatureMap) HasOffset() bool { return m.public != nil && m.public.offset != nil }

// PublicMemory returns the number of float64 values of scratch memory that Map needs for the public model.
func (m *FeatureMap) PublicMemory() int { return m.public.scratch() }

// PublicSources returns the sources from which the inputs of the public model come, in order; nil without one.
func (m *FeatureMap) PublicSources() []*Source {
	if m.public == nil {
		return nil
	}
	return m.public.sources
}
