package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// A Schema draws rows that fit a task's declaration where there are no data: a rough guide to what a task would do,
// and no evidence. It knows of the data what is declared, and makes up the rest: a number is normal around a centre
// of its column's own, within its bounds; a word is more frequent the earlier it is in an order of its column's
// own; one hidden factor moves all fields of a row. The label follows a planted linear model of the declared
// features, with noise. So rows of a Schema cannot tell whether features are missing: the model that was planted
// has none but the declared ones.
type Schema struct {
	spec     *task.Spec
	features *task.FeatureMap // of the declaration that the model is planted in
	columns  []column
	groups   []group
	vector   []column // of a vector: its values
	weights  []float64
	offsets  []float64 // of the scores, one for each output
}

const (
	schemaPilot = 2000 // rows that the planted model's scores are centred on
	schemaScale = 2.0  // standard deviation of the planted scores of classes
	schemaShare = 0.25 // of a number's range, or of a count's logarithm: one standard deviation of its score
)

// NewSchema plants a population for a declaration. Equal seeds give equal populations.
func NewSchema(spec *task.Spec, seed uint64) (*Schema, error) {
	features, err := spec.Compile()
	if err != nil {
		return nil, err
	}
	s := &Schema{spec: spec, features: features}
	r := rand.New(Entropy(seed, "schema"))
	for i, name := range features.Schema().Columns {
		one, err := newColumn(r, spec, name, features.Schema().Kinds[i])
		if err != nil {
			return nil, err
		}
		s.columns = append(s.columns, one)
	}
	for _, c := range spec.Features.Columns {
		if c.Kind != task.OneHot {
			continue
		}
		one := group{column: column{loading: 0.8 * (2*r.Float64() - 1)}}
		for i, name := range c.Columns {
			one.fields = append(one.fields, slices.Index(features.Schema().Columns, name))
			one.words = append(one.words, strconv.Itoa(i))
		}
		one.rank(r)
		s.groups = append(s.groups, one)
	}
	if v := spec.Features.Vector; v != nil {
		s.plantVector(r, v)
	}
	return s, s.plant(r)
}

func (s *Schema) plantVector(r *rand.Rand, v *task.Vector) {
	share := float64(v.MaxNonzeros) / float64(v.Dimension)
	for range v.Dimension {
		one := column{low: v.Min, high: v.Max, loading: 0.8 * (2*r.Float64() - 1), present: 1}
		one.place(r, s.spec.Intercept == 0)
		if share < 1 || v.Min == 0 || v.Kind == task.Indicator { // sparse: few values are frequent, most are rare
			one.present = min(1, 2*share*math.Pow(r.Float64(), 3))
		}
		if v.Kind == task.Indicator {
			one.low, one.high, one.middle, one.spread = 0, 1, 1, 0
		}
		s.vector = append(s.vector, one)
	}
}

// draw fills a row's fields or values.
func (s *Schema) draw(r *rand.Rand, row *task.Row) {
	factor := r.NormFloat64()
	row.Fields = row.Fields[:0]
	for i := range s.columns {
		row.Fields = append(row.Fields, s.columns[i].field(r, factor))
	}
	for i := range s.groups {
		g := &s.groups[i]
		hot := g.field(r, factor)
		for at, field := range g.fields {
			row.Fields[field] = "0"
			if strconv.Itoa(at) == hot {
				row.Fields[field] = "1"
			}
		}
	}
	if s.vector == nil {
		return
	}
	row.Index, row.Value = row.Index[:0], row.Value[:0]
	most := s.spec.Features.Vector.MaxNonzeros
	for i := range s.vector {
		if c := &s.vector[i]; r.Float64() < c.present && len(row.Value) < most {
			row.Index, row.Value = append(row.Index, int32(i)), append(row.Value, c.number(r, factor))
		}
	}
}

// plant chooses the model: weights of one size in coordinates of mean 0 and variance 1, with scores of the same.
func (s *Schema) plant(r *rand.Rand) error {
	m, outputs := s.features.Unlabelled(), s.features.Outputs()
	pilot, rows := rand.New(rand.NewPCG(r.Uint64(), r.Uint64())), make([]convex.Example, schemaPilot)
	mean, square := make([]float64, m.Dim()), make([]float64, m.Dim())
	var row task.Row
	for i := range rows {
		s.draw(pilot, &row)
		if err := m.Map(row, &rows[i]); err != nil {
			return fmt.Errorf("synthetic rows: %w", err)
		}
		each(rows[i], func(j int, x float64) { mean[j] += x / schemaPilot; square[j] += x * x / schemaPilot })
	}
	for range outputs {
		for j := range m.Dim() {
			w := r.NormFloat64()
			if v := square[j] - mean[j]*mean[j]; v > 1e-9 {
				w /= math.Sqrt(v + 0.01)
			} else {
				w = 0
			}
			s.weights = append(s.weights, w)
		}
	}
	var scores []float64
	sum, squares := make([]float64, outputs), make([]float64, outputs)
	for _, e := range rows {
		scores = m.Scores(scores, s.weights, e)
		for k, z := range scores {
			sum[k] += z / schemaPilot
			squares[k] += z * z / schemaPilot
		}
	}
	for k := range outputs {
		sd := math.Sqrt(max(squares[k]-sum[k]*sum[k], 1e-12))
		for j := range m.Dim() {
			s.weights[k*m.Dim()+j] /= sd
		}
		s.offsets = append(s.offsets, -sum[k]/sd)
	}
	return nil
}

func each(e convex.Example, f func(j int, x float64)) {
	for i, x := range e.Value {
		if e.Index != nil {
			f(int(e.Index[i]), x)
		} else {
			f(i, x)
		}
	}
}

// Rows draws n rows, mapped by the features of a declaration with the same columns and label, such as one with
// other crosses or another norm bound. Equal seeds give equal rows under every map.
func (s *Schema) Rows(features *task.FeatureMap, n int, seed uint64) ([]convex.Example, error) {
	r, out := rand.New(Entropy(seed, "rows of a schema")), make([]convex.Example, n)
	var (
		row    task.Row
		plain  convex.Example
		scores []float64
		own    = s.features.Unlabelled()
	)
	for i := range out {
		s.draw(r, &row)
		if err := own.Map(row, &plain); err != nil {
			return nil, fmt.Errorf("synthetic rows: %w", err)
		}
		scores = own.Scores(scores, s.weights, plain)
		for k := range scores {
			scores[k] += s.offsets[k]
		}
		row.Label = s.label(r, scores, plain.Offset)
		if err := features.Map(row, &out[i]); err != nil {
			return nil, fmt.Errorf("synthetic rows: %w", err)
		}
	}
	return out, nil
}

// label draws one of the planted model, as a file would have it.
func (s *Schema) label(r *rand.Rand, scores []float64, offset float64) string {
	l := s.spec.Label
	switch convex.TraitsOf(s.spec.Model.Loss).Labels {
	case convex.TwoClasses:
		logit := schemaScale * scores[0]
		if s.spec.Intercept != 0 {
			logit-- // about 35 % are positive
		}
		if r.Float64() < 1/(1+math.Exp(-logit)) {
			return l.Positive[0]
		}
		return l.Negative[0]
	case convex.ManyClasses:
		best, at := math.Inf(-1), 0
		for k, z := range scores { // the largest of scores with Gumbel noise has the softmax distribution
			if z = schemaScale*z - 0.3*float64(k) - math.Log(r.ExpFloat64()); z > best {
				best, at = z, k
			}
		}
		return l.Classes[at]
	case convex.Counts:
		// The mean count is a tenth of the largest, so that few are cut.
		return strconv.FormatFloat(min(l.Max, poisson(r, 0.1*l.Max*math.Exp(schemaShare*2*scores[0]))), 'f', 0, 64)
	}
	at := 2*(0.4+schemaShare*(0.6*scores[0]+0.4*r.NormFloat64())) - 1 // from -1 to 1, most of them
	return strconv.FormatFloat(min(max(s.inUnits(at), l.Min), l.Max)+offset, 'g', 12, 64)
}

// inUnits returns the label that lies at a place between the bounds of a number, -1 and 1, as the loss sees them.
func (s *Schema) inUnits(at float64) float64 {
	bounds := s.features.Labels()
	return s.features.InUnits(bounds[0] + (bounds[1]-bounds[0])*(at+1)/2)
}

// poisson draws by its gaps for small means, and by the normal distribution, rounded, for large ones: enough for a
// label.
func poisson(r *rand.Rand, mean float64) float64 {
	if mean > 30 {
		return max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64()))
	}
	n := -1.0
	for at := 0.0; at < mean; n++ {
		at += r.ExpFloat64()
	}
	return max(0, n)
}
