package task

import (
	"fmt"
	"slices"
	"strings"
)

// A Source is a declared function of one field of an event, before crosses, polynomials and Fourier features: a scaled number, or a
// position among indicators. Text has the blanks around it removed first.
type Source struct {
	Column string // the field; empty for every value of a vector alike
	Kind   ColumnKind

	// Of numeric sources: x is moved into [Min, Max], then it is Factor*x + Offset.
	Min, Max, Factor, Offset float64

	// Of categorical sources: the position is that of the word. Words outside have the position len(Vocabulary) if Unknown is
	// other, none if it is drop, and make the event invalid if it is invalid.
	Vocabulary []string
	Unknown    Unknown

	// Of hashed sources: the position is MurmurHash3 (x86, 32 bits) of the text in UTF-8 with this seed, modulo Buckets.
	Buckets int
	Seed    uint32

	// Of bucketed sources: the position is the number of edges that are at most x.
	Edges []float64
}

// Positions is the number of positions of a source of indicators, and 1 of a numeric one.
func (s *Source) Positions() int {
	switch s.Kind {
	case Categorical:
		if s.Unknown == Other {
			return len(s.Vocabulary) + 1
		}
		return len(s.Vocabulary)
	case Hashed:
		return s.Buckets
	case Bucketed:
		return len(s.Edges) + 1
	}
	return 1
}

func (c *Column) source() *Source {
	s := &Source{Column: c.Name, Kind: c.Kind, Vocabulary: c.Vocabulary, Unknown: c.Unknown, Buckets: c.Buckets, Edges: c.Edges}
	switch c.Kind {
	case Numeric:
		s.setAffine(affineOf(c))
	case Hashed:
		s.Seed = hashSeed(c.Name)
	}
	return s
}

func (s *Source) setAffine(f affine) { s.Min, s.Max, s.Factor, s.Offset = f.low, f.high, f.a, f.b }

// positions is the number of indicators of a column, hidden or not, and 1 of a numeric one.
func (c *Column) positions() int { return c.source().Positions() }

// width is the number of coordinates of a column.
func (c *Column) width() int {
	if c.Hidden {
		return 0
	}
	return c.positions()
}

// input is a compiled source.
type input struct {
	*Source
	field  int // position in Row.Fields
	first  int // first coordinate, or -1 if hidden
	affine affine
	index  map[string]int // of Vocabulary
}

// none is the position of a field that sets no indicator.
const none = -1

// value is the scaled number of a field, or its position. An error never shows the field.
func (in *input) value(field string) (float64, error) {
	field = strings.TrimSpace(field)
	switch in.Kind {
	case Categorical:
		at, ok := in.index[field]
		switch {
		case ok:
			return float64(at), nil
		case in.Unknown == Other:
			return float64(len(in.Vocabulary)), nil
		case in.Unknown == Drop:
			return none, nil
		}
		return 0, fmt.Errorf("not in the vocabulary")
	case Hashed:
		return float64(murmur3(field, in.Seed) % uint32(in.Buckets)), nil
	}
	x, err := parseFinite(field)
	if err != nil {
		return 0, err
	}
	if in.Kind == Bucketed {
		at, found := slices.BinarySearch(in.Edges, x)
		if found {
			at++
		}
		return float64(at), nil
	}
	return in.affine.apply(x), nil
}
