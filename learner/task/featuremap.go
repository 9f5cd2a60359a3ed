package task

import (
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
)

// A FeatureMap turns rows into the vectors of a task, and vectors into scores; its LabelMap turns scores into
// predictions. It is made from the declaration alone, is immutable, and safe for concurrent use.
type FeatureMap struct {
	LabelMap

	schema     Schema
	vector     *vectorMap // libsvm, idx
	inputs     inputs     // csv, jsonl, parquet
	crosses    []cross
	products   [][]int // of inputs
	fourier    *fourierMap
	public     *publicMap
	scales     []float64 // of coordinates; nil: all 1
	coordinate []Coordinate
	intercept  float64
	dim        int
	longest    float64 // norm that features are scaled down to, the intercept left out
	bound      float64 // the same with the intercept
	dense      bool    // every event sets every coordinate
	shrinks    bool    // vectors within the declared bounds may be scaled down
	most       int     // values that an event of columns can set
}

// Compile validates the declaration and makes its feature map.
func (s *Spec) Compile() (*FeatureMap, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Features.unread() {
		return nil, s.Features.Public.absent()
	}
	m := &FeatureMap{schema: s.Schema(), LabelMap: compileLabel(s), intercept: s.Intercept,
		longest: s.Features.bound(s.NormBound)}
	m.shrinks = m.longest < s.Features.declaredBound()
	if m.bound = convex.Norm([]float64{m.longest, m.intercept}); !m.shrinks {
		// The sum of squares is taken without an intermediate root: rounding is monotone, so no row within the declared
		// bounds exceeds the same sum of the bounds.
		m.bound = math.Sqrt(s.Features.squaredBound() + m.intercept*m.intercept)
	}
	if v := s.Features.Vector; v != nil {
		m.vector = newVectorMap(v)
		if m.dense = v.Hidden; !v.Hidden {
			m.coordinate = m.vector.coordinates()
		}
	} else {
		m.compileColumns(s.Features.Columns)
	}
	m.compileDerived(&s.Features)
	if s.Features.Public != nil {
		m.compilePublic(&s.Features, s.Label.Offset)
	}
	if s.Features.Scales != nil || s.Features.Precondition != nil {
		m.scales = make([]float64, len(m.coordinate))
		for j := range m.scales {
			m.scales[j] = s.Features.scale(j)
			m.coordinate[j].Factor *= m.scales[j]
			m.coordinate[j].Offset *= m.scales[j]
		}
	}
	m.dim = len(m.coordinate)
	if m.intercept != 0 {
		m.dim++
		m.most++
	}
	return m, nil
}

func (m *FeatureMap) compileColumns(columns []Column) {
	m.dense = true
	for i := range columns {
		c := &columns[i]
		in := input{Source: c.source(), first: none}
		for _, name := range c.Fields() {
			in.fields = append(in.fields, slices.Index(m.schema.Columns, name))
		}
		switch c.Kind {
		case Numeric, Indicator:
			in.affine = affineOf(c)
		case Categorical:
			in.index = make(map[string]int, len(c.Vocabulary))
			for at, w := range c.Vocabulary {
				in.index[w] = at
			}
		}
		if !c.Hidden {
			in.first = len(m.coordinate)
			m.coordinate = append(m.coordinate, ofSource(in.Source)...)
			m.dense = m.dense && c.Kind.Number()
			m.most += max(1, c.Words)
			if c.Missing.Indicator || c.Kind == Hats {
				m.most++
			}
		}
		m.inputs = append(m.inputs, in)
	}
}

func (m *FeatureMap) compileDerived(f *Features) {
	for _, x := range f.Crosses {
		c := cross{first: len(m.coordinate), inputs: m.inputs.find(x.Columns, false), buckets: x.Buckets, number: none,
			seed: hashSeed(x.Columns...)}
		if x.Number != "" {
			c.number = m.inputs.find([]string{x.Number}, true)[0]
		}
		for _, in := range c.inputs {
			c.widths = append(c.widths, m.inputs[in].Positions())
		}
		m.crosses = append(m.crosses, c)
		m.coordinate = append(m.coordinate, m.inputs.ofCross(&c)...)
		m.dense = false
		m.most++
	}
	if p := f.Polynomial; p != nil {
		inputs := m.inputs.find(p.Columns, true)
		for _, product := range products(len(inputs), p.Degree) {
			for i, at := range product {
				product[i] = inputs[at]
			}
			m.products = append(m.products, product)
			m.coordinate = append(m.coordinate, m.inputs.ofProduct(product))
			m.most++
		}
	}
	if r := f.Fourier; r != nil {
		at := m.inputs.find(r.Columns, true)
		sources, columns := m.inputs.sources(at)
		n := len(at)
		if m.vector != nil {
			sources, n = []*Source{m.vector.source}, m.vector.dimension
		}
		m.fourier = newFourierMap(r, n)
		m.fourier.inputs = at
		m.coordinate = append(m.coordinate, m.fourier.coordinates(sources, columns)...)
		m.most += r.Dimension
	}
}

// Unlabelled returns the map for scoring events whose labels may be missing. The label of a mapped event is 0 and has
// no meaning.
func (m *FeatureMap) Unlabelled() *FeatureMap {
	out := *m
	out.schema.Unlabelled, out.schema.User = true, "" // scoring needs no column of persons
	return &out
}

// Schema returns the properties of this task's data that a reader needs.
func (m *FeatureMap) Schema() Schema { return m.schema }

// Dim returns d, the length of a feature vector. The intercept, if the task has one, is the last coordinate.
func (m *FeatureMap) Dim() int { return m.dim }

// Bound returns X, the bound on the norm of every feature vector, intercept included.
func (m *FeatureMap) Bound() float64 { return m.bound }

// Longest returns the norm that features are scaled down to, the intercept left out.
func (m *FeatureMap) Longest() float64 { return m.longest }

// Coordinates describes the coordinates in order, without the intercept. The caller must not change them.
func (m *FeatureMap) Coordinates() []Coordinate { return m.coordinate }

// Names returns the names of the coordinates, in order. The intercept is not among them.
func (m *FeatureMap) Names() []string {
	names := make([]string, len(m.coordinate))
	for i, c := range m.coordinate {
		names[i] = c.Name
	}
	return names
}

// Scores overwrites dst with the scores of a mapped event, the inner products with the blocks of theta, and returns it.
// It grows dst to length Outputs where it is shorter.
func (m *FeatureMap) Scores(dst, theta []float64, e convex.Example) []float64 {
	dst = slices.Grow(dst[:0], m.Outputs())[:m.Outputs()]
	for k := range dst {
		dst[k] = e.Dot(theta[k*m.dim : (k+1)*m.dim])
	}
	return dst
}

// Undo converts the parameters of one score, a block of length Dim, into weights and an intercept in the units of the
// data, so that for a row within the declared bounds (that is not scaled down)
//
//	sum_j weights[j] base_j + intercept
//
// is the score of a classifier (the log odds of the positive class under logistic loss, the log probability of a class
// up to a constant under softmax), the logarithm of the expected count, or, for a number, the prediction in the units
// of the label (for scale log, its logarithm sign(y) ln(1 + |y|/Unit)). weights[j] belongs to Coordinates()[j], which
// defines base_j: for a numeric column the value of the field itself, for scale log its logarithm.
func (m *FeatureMap) Undo(theta []float64) (weights []float64, intercept float64, err error) {
	if len(theta) != m.dim {
		return nil, 0, fmt.Errorf("undo feature map: %d parameters, want %d", len(theta), m.dim)
	}
	weights = make([]float64, len(m.coordinate))
	if m.intercept != 0 {
		intercept = theta[m.dim-1] * m.intercept
	}
	for j, c := range m.coordinate {
		weights[j] = theta[j] * c.Factor
		intercept += theta[j] * c.Offset
	}
	if m.LabelMap.kind == convex.Numbers {
		for j := range weights {
			weights[j] /= m.LabelMap.affine.a
		}
		intercept = m.LabelMap.affine.invert(intercept)
	}
	for _, v := range append(weights[:len(weights):len(weights)], intercept) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, 0, fmt.Errorf("undo feature map: a weight is not finite in the units of the data")
		}
	}
	return weights, intercept, nil
}

// Redo is the inverse of Undo: it returns the parameters that score mapped rows as the weights score raw ones. Rows
// outside the bounds are treated as on a device. Without an intercept coordinate the intercept must equal the one that
// Undo returns.
func (m *FeatureMap) Redo(weights []float64, intercept float64) ([]float64, error) {
	if len(weights) != len(m.coordinate) {
		return nil, fmt.Errorf("redo feature map: %d weights, want %d", len(weights), len(m.coordinate))
	}
	factor := 1.0
	rest := intercept
	if m.LabelMap.kind == convex.Numbers {
		factor = m.LabelMap.affine.a
		rest = intercept*m.LabelMap.affine.a + m.LabelMap.affine.b
	}
	theta := make([]float64, m.dim)
	for j, c := range m.coordinate {
		theta[j] = weights[j] * factor / c.Factor
		rest -= theta[j] * c.Offset
	}
	if m.intercept != 0 {
		theta[m.dim-1] = rest / m.intercept
	}
	for _, v := range theta {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("redo feature map: a parameter is not finite in the coordinates of the map")
		}
	}
	return theta, nil
}
