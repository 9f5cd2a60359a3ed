package draft

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/draft/publicmodel"
	"github.com/panlearn/panlearn/learner/task/source"
)

// mostLabelled is the most rows that a public model is made of: every k-th where the sample has more.
const mostLabelled = 5000

// A labelled holds rows of the sample with their labels, as a task of some columns maps them.
type labelled struct {
	inputs []task.Coordinate
	scaled [][]float64 // of each row, as the task maps it
	raw    [][]float64 // of each input, a column: numbers in the units of the data, filled where they are missing
	labels publicmodel.Labels
	mean   float64 // of labels that are numbers, which are standardized
	std    float64
}

// read reads the rows of the sample by a task of the columns or the vector of a beginning, as if none was hidden.
func (m *modeller) read(b *beginning) (*labelled, error) {
	spec, err := task.Parse([]byte(m.bare(b, m.label, entry.shown)), nil)
	if err != nil {
		return nil, err
	}
	scaled, err := spec.Compile()
	if err != nil {
		return nil, err
	}
	plain := *spec
	plain.Features.Columns = append([]task.Column(nil), spec.Features.Columns...)
	for i := range plain.Features.Columns {
		if c := &plain.Features.Columns[i]; c.Kind == task.Numeric {
			c.Scale, c.Mean, c.Std, c.Clip, c.Unit = task.Raw, 0, 0, 0, 0
			c.Min, c.Max = -farFromAll, farFromAll
		}
	}
	if v := spec.Features.Vector; v != nil && v.Kind != task.Indicator {
		unscaled := *v
		unscaled.Scale, plain.Features.Vector = task.Raw, &unscaled
	}
	raw, err := plain.Compile()
	if err != nil {
		return nil, err
	}
	s := &labelled{inputs: scaled.Coordinates()}
	s.labels.Outputs = 1
	switch convex.TraitsOf(m.target.loss).Labels {
	case convex.TwoClasses:
		s.labels.Kind = publicmodel.Two
	case convex.ManyClasses:
		s.labels.Kind, s.labels.Outputs = publicmodel.Many, len(scaled.Classes())
	}
	if err := m.readRows(s, scaled, raw); err != nil {
		return nil, err
	}
	s.standardize()
	return s, nil
}

// farFromAll is a bound that no number of a sample reaches.
const farFromAll = 10 * mostMagnitude

func (m *modeller) readRows(s *labelled, scaled, raw *task.FeatureMap) error {
	s.raw = make([][]float64, len(s.inputs))
	var y convex.Example
	return m.eachRow(scaled, func(row task.Row, x convex.Example) {
		line := make([]float64, len(s.inputs)+1)
		x.AddTo(line[:scaled.Dim()], 1)
		s.scaled = append(s.scaled, line[:len(s.inputs)])
		line = make([]float64, len(s.inputs)+1)
		if raw.Map(row, &y) == nil { // as it could be mapped before
			y.AddTo(line[:raw.Dim()], 1)
		}
		for j := range s.inputs {
			s.raw[j] = append(s.raw[j], line[j])
		}
		s.addLabel(scaled, x.Label)
	})
}

// eachRow calls do with the rows of the sample that are valid and taken.
func (m *modeller) eachRow(features *task.FeatureMap, do func(row task.Row, x convex.Example)) error {
	rows, err := source.Open(m.path, features)
	if err != nil {
		return err
	}
	defer rows.Close()
	var x convex.Example
	for n := 0; ; {
		row, err := rows.Next()
		var bad *task.RowError
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &bad):
			continue
		case err != nil:
			return err
		}
		if features.Map(row, &x) != nil {
			continue
		}
		if n%m.every == 0 {
			do(row, x)
		}
		n++
	}
}

// addLabel takes the label as the package publicmodel has it.
func (s *labelled) addLabel(features *task.FeatureMap, label float64) {
	switch s.labels.Kind {
	case publicmodel.Numbers:
		label = features.InUnits(label)
	case publicmodel.Two:
		label = max(label, 0)
	}
	s.labels.Y = append(s.labels.Y, label)
}

func (s *labelled) standardize() {
	if s.labels.Kind != publicmodel.Numbers || len(s.labels.Y) == 0 {
		return
	}
	s.mean, s.std, _ = momentsOf(s.labels.Y)
	for i, y := range s.labels.Y {
		s.labels.Y[i] = (y - s.mean) / s.std
	}
}

// asked returns the places of the inputs that trees may ask about.
func (s *labelled) asked() (out []int) {
	for j, c := range s.inputs {
		if c.Kind != string(task.Hats) {
			out = append(out, j)
		}
	}
	return out
}

// bent returns the places of the inputs that are no numbers of columns: those have hats.
func (s *labelled) bent() (out []int) {
	for j, c := range s.inputs {
		if c.Kind != string(task.Numeric) || c.Column == "" {
			out = append(out, j)
		}
	}
	return out
}

// evened returns for each of some inputs the factor 1/sqrt(var + a hundredth of the mean var).
func (s *labelled) evened(inputs []int) []float64 {
	variance := make([]float64, len(inputs))
	mean := 0.0
	for i, j := range inputs {
		column := make([]float64, len(s.scaled))
		for r, row := range s.scaled {
			column[r] = row[j]
		}
		_, std, _ := momentsOf(column)
		if lowest(column) < highest(column) {
			variance[i] = std * std
		}
		mean += variance[i] / float64(len(inputs))
	}
	for i, v := range variance {
		variance[i] = 1 / math.Sqrt(v+0.01*mean+math.SmallestNonzeroFloat32)
	}
	return variance
}

// bare returns the text of a task that maps the sample, and of which nothing is planned.
func (m *modeller) bare(b *beginning, label []field, as func(e entry) entry) string {
	var out strings.Builder
	fmt.Fprintf(&out, "version: 1\nname: sample\nevents: %s\nfeatures:\n", mapping(m.events()))
	if b.vector != nil {
		fmt.Fprintf(&out, "  vector: %s\n", mapping(as(b.vector)))
	} else {
		out.WriteString("  columns:\n")
	}
	for _, c := range slices.Concat(b.entries...) {
		fmt.Fprintf(&out, "    - %s\n", mapping(as(c)))
	}
	fmt.Fprintf(&out, "label: %s\nmodel: %s\n", mapping(label), mapping(m.target.model))
	out.WriteString("privacy: {epsilon: 1, delta: 1e-6, trust: shuffle}\nschedule: {users: 1000}\n")
	return out.String()
}
