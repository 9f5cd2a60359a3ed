package task

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"pgregory.net/rapid"
)

// odd are fields that are at the edge of what can be read, or beyond it.
var odd = []string{"", "-0", "5e-324", "-5e-324", "1.7976931348623157e308", "-1.7976931348623157e308", "1e400", "NaN",
	"-inf", "3.4028236e38", "-3.5e38", "1e-45", "1e100", "-1e100", "0x1p3", "?", "-999", "$1,000", "0.5", "1", "33.3",
	"-20",
	"2024-12-31T23:59:59.5", "9999-12-31", "0000-01-01T00:00", "\xff\xfe a b c d", "red", strings.Repeat("a1 b", 500)}

// drawOdd returns a field: odd, or any number that there is.
func drawOdd(r *rand.Rand) string {
	if r.IntN(3) == 0 {
		return strconv.FormatFloat(math.Float64frombits(r.Uint64()), 'g', -1, 64)
	}
	return odd[r.IntN(len(odd))]
}

// stretch moves numbers of a declaration by many powers of ten. It need not be valid then.
func stretch(s *Spec, r *rand.Rand) {
	far := func(most int) float64 { return (2*r.Float64() - 1) * math.Pow(10, float64(r.IntN(2*most)-most)) }
	for i := range s.Features.Columns {
		switch c := &s.Features.Columns[i]; {
		case r.IntN(2) == 0 || c.Kind != Numeric && c.Kind != Hats:
		case c.Kind == Hats:
			first, width := far(100), math.Abs(far(100))
			for j := range c.Knots {
				c.Knots[j] = first + width*float64(j)
			}
		case c.Scale == Log:
			c.Unit, c.Mean, c.Std, c.Missing.Fill = math.Abs(far(100)), far(3), math.Abs(far(90)), nil
		case c.Scale == Standard:
			c.Mean, c.Std, c.Missing.Fill = far(100), math.Abs(far(100)), nil
		default:
			c.Min, c.Missing.Fill = far(100), nil
			c.Max = c.Min + math.Abs(far(100))
		}
	}
	if l := &s.Label; s.Model.traits().Labels == convex.Numbers && r.IntN(2) == 0 {
		l.Min = far(100)
		if l.Max = l.Min + math.Abs(far(100)); l.Scale == Log {
			l.Unit = math.Abs(far(100))
		}
	}
	p := s.Features.Public.Model()
	if p == nil || r.IntN(2) == 0 {
		return
	}
	for _, b := range append(p.Blocks[:len(p.Blocks):len(p.Blocks)], PublicBlock{}) {
		if b.Weights != nil {
			b.Weights.Scale[0] = math.Abs(far(29))
		}
	}
	p.Blocks[0].Range = math.Abs(far(29))
	if p.Offset != nil && p.Offset.Weights != nil {
		p.Offset.Weights.Scale[0] = math.Abs(far(29))
	}
	if public, err := NewPublic(p); err == nil {
		s.Features.Public = public
	}
}

// TestExtremesAreBounded: no declaration with numbers of any size, and no row of any texts, makes a vector that is
// longer than the bound, a label outside its range, or an offset that is not finite.
func TestExtremesAreBounded(t *testing.T) {
	declarations := rapid.Custom(drawSpec)
	compiled, mapped := 0, 0
	for seed := range 1500 {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		s := declarations.Example(seed)
		stretch(s, r)
		s.SetDefaults()
		m, err := s.Compile()
		if err != nil {
			continue
		}
		compiled++
		labels := m.Labels()
		var e convex.Example
		for range 40 {
			row := Row{Label: drawOdd(r)}
			for range m.Schema().Columns {
				row.Fields = append(row.Fields, drawOdd(r))
			}
			for s.Features.Vector != nil && len(row.Value) < s.Features.Vector.Dimension {
				row.Value = append(row.Value, math.Float64frombits(r.Uint64()))
			}
			if m.Map(row, &e) != nil {
				continue
			}
			mapped++
			if err := e.Validate(m.Dim()); err != nil || e.Norm() > m.Bound() {
				t.Errorf("seed %d: norm %v above the bound %v: %v", seed, e.Norm(), m.Bound(), err)
			}
			if e.Label < labels[0] || e.Label > labels[len(labels)-1] || math.IsNaN(e.Offset) || math.IsInf(e.Offset, 0) {
				t.Errorf("seed %d: label %v and offset %v, of labels from %v to %v", seed, e.Label, e.Offset, labels[0],
					labels[len(labels)-1])
			}
		}
	}
	if compiled < 500 || mapped < 5000 {
		t.Errorf("%d declarations and %d rows: want more that are valid", compiled, mapped)
	}
	t.Logf("%d declarations, %d rows", compiled, mapped)
}
