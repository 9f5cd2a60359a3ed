package task

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
)

// A Source is a declared function of one field of an event, or of the fields of a one-hot group, before crosses,
// polynomials and Fourier features: a scaled number, or a position among indicators. Text has the blanks around it
// removed first.
type Source struct {
	Column string // the field, or the name of the group or part; empty for every value of a vector alike
	Kind   ColumnKind

	// Field is the field of a date whose Part is the number; empty for other sources. See datePart.
	Field string
	Part  Part

	// Over is the field that divides the number in Field; empty if the source is not a ratio. See ratio.
	Over string

	// Of numeric sources: x is moved into [Min, Max], then it is Factor*x + Offset. Where Unit is above 0, x is first
	// turned into sign(x) ln(1 + |x|/Unit). Of indicators it is 1 where x >= 1/2, else 0, and these are 0, 1, 1 and 0.
	Min, Max, Factor, Offset, Unit float64

	// Tokens mean a missing value, in addition to blanks; Numbers are the tokens that are numbers, which are compared as
	// such. A missing number is Fill, before the scale, and Told by a coordinate of its own where that was declared; a
	// missing word has the position Vacant, -1 for none. Missing values of other positions have no position, except hashed
	// ones, which are words.
	Tokens  []string
	Numbers []float64
	Fill    float64
	Told    bool
	Vacant  int

	// Of numbers: Marks are left out of the text, one after another, wherever they are, then the blanks around the rest.
	Marks []string

	// Of categorical sources: the position is the index of the word in Vocabulary. Words outside have the
	// position len(Vocabulary) if Unknown is other, none if it is drop, and make the event invalid if it is
	// invalid.
	Vocabulary []string
	Unknown    Unknown

	// Of texts, which have no position: coordinate j is 1/sqrt(n) where one of the first Words words has hash j, as of
	// hashed sources, and n is the number of those coordinates; else 0. See setWords for what a word is.
	Words int

	// Of hashed sources: the position is MurmurHash3 (x86, 32 bits) of the text in UTF-8 with this seed, modulo Buckets.
	Buckets int
	Seed    uint32

	// Of bucketed sources: the position is the number of edges that are at most x.
	Edges []float64

	// Of hats, which have no position: x is moved between the first and the last knot, and coordinate j is 1 at knot j, 0
	// at and beyond the next ones, and on a straight line between. All are 0 where x is missing.
	Knots []float64

	// Of one-hot groups: the position is the index of the field that is at least 1/2, none where there is none.
	// Two make the event invalid.
	Columns []string
}

// Positions returns the number of positions of a source of indicators, of coordinates of hats and texts,
// and 1 of a number.
func (s *Source) Positions() int {
	switch s.Kind {
	case Categorical:
		if s.Unknown == Other {
			return len(s.Vocabulary) + 1
		}
		return len(s.Vocabulary)
	case Hashed, Text:
		return s.Buckets
	case Bucketed:
		return len(s.Edges) + 1
	case Hats:
		return len(s.Knots)
	case OneHot:
		return len(s.Columns)
	}
	return 1
}

func (c *Column) source() *Source {
	s := &Source{Column: c.Name, Kind: c.Kind, Field: c.Field, Part: c.Part, Over: c.Over, Vocabulary: c.Vocabulary, Unknown: c.Unknown,
		Buckets: c.Buckets, Words: c.Words,
		Edges: c.Edges, Knots: c.Knots, Columns: c.Columns, Marks: c.Marks,
		Tokens: c.Missing.Tokens, Numbers: c.Missing.numbers(), Told: c.Missing.Indicator, Vacant: c.vacant()}
	if c.Missing.Fill != nil {
		s.Fill = *c.Missing.Fill
	}
	switch c.Kind {
	case Numeric, Indicator:
		s.setAffine(affineOf(c))
	case Hashed, Text:
		s.Seed = hashSeed(c.Name)
	}
	return s
}

func (s *Source) setAffine(f affine) {
	s.Min, s.Max, s.Factor, s.Offset, s.Unit = f.low, f.high, f.a, f.b, f.unit
}

// Fields returns the fields of an event that the column is read from.
func (c *Column) Fields() []string {
	if c.Kind == OneHot {
		return c.Columns
	}
	fields := []string{cmp.Or(c.Field, c.Name)}
	if c.Over != "" {
		fields = append(fields, c.Over)
	}
	return fields
}

// positions returns the number of indicators of a column, hidden or not, and 1 of a number.
func (c *Column) positions() int { return c.source().Positions() }

// width returns the number of coordinates of a column.
func (c *Column) width() int {
	if c.Hidden {
		return 0
	}
	if c.Missing.Indicator {
		return 2
	}
	return c.positions()
}

// input is a compiled source.
type input struct {
	*Source
	fields []int // positions in Row.Fields: one field, the two of a ratio, or the fields of a group
	first  int   // first coordinate, or -1 if hidden
	affine affine
	index  map[string]int // of Vocabulary
}

// inputs are the columns that features are made from, in the order of the declaration.
type inputs []input

// find returns the positions of columns by their names, among those that are read as numbers, or among the others.
func (all inputs) find(names []string, number bool) (out []int) {
	for _, name := range names {
		out = append(out, slices.IndexFunc(all, func(in input) bool {
			return in.Column == name && in.Kind.Number() == number
		}))
	}
	return out
}

// sources returns the sources of the inputs at the positions and the names of their columns.
func (all inputs) sources(at []int) (sources []*Source, columns []string) {
	for _, i := range at {
		sources = append(sources, all[i].Source)
		columns = append(columns, all[i].Column)
	}
	return sources, columns
}

// none is the position of a field that sets no indicator.
const none = -1

// value returns the scaled number of a field, its position, its place for hats, or none for a text, and whether it is
// missing. An error never shows the field.
func (in *input) value(fields []string) (v float64, missing bool, err error) {
	field := strings.TrimSpace(fields[in.fields[0]])
	switch in.Kind {
	case OneHot:
		v, err = in.position(fields)
		return v, false, err
	case Categorical:
		return in.word(field)
	case Text:
		return none, field == "" || slices.Contains(in.Tokens, field), nil
	case Hashed:
		return float64(murmur3(field, in.Seed) % uint32(in.Buckets)), false, nil
	}
	x, missing, err := in.quantity(fields)
	switch {
	case err != nil:
		return 0, false, err
	case (in.Kind == Bucketed || in.Kind == Hats) && missing:
		return none, true, nil
	case in.Kind == Hats:
		return in.place(x), false, nil
	case in.Kind == Bucketed:
		at, found := slices.BinarySearch(in.Edges, x)
		if found {
			at++
		}
		return float64(at), false, nil
	case missing:
		x = in.Fill
	}
	return convex.Normal(in.affine.apply(x)), missing, nil
}

// position returns the index of the field of a group that is 1. It always reads every field.
func (in *input) position(fields []string) (float64, error) {
	at, set := none, 0
	for i, f := range in.fields {
		x, missing, err := in.number(strings.TrimSpace(fields[f]))
		if err != nil {
			return 0, fmt.Errorf("%w in column %s", err, shorten(in.Columns[i]))
		}
		if !missing && x >= 0.5 {
			at = i
			set++
		}
	}
	if set > 1 {
		return 0, errors.New("several columns of the group are 1")
	}
	return float64(at), nil
}

// word returns the position of a word in its vocabulary.
func (in *input) word(field string) (v float64, missing bool, err error) {
	at, ok := in.index[field]
	switch {
	case ok:
		return float64(at), false, nil
	case field == "" || slices.Contains(in.Tokens, field):
		return float64(in.Vacant), true, nil
	case in.Unknown == Other:
		return float64(len(in.Vocabulary)), false, nil
	case in.Unknown == Drop:
		return none, false, nil
	}
	return 0, false, fmt.Errorf("not in the vocabulary")
}

// murmur3 returns MurmurHash3 by Austin Appleby in its variant of 32 bits for x86, which
// sklearn.utils.murmurhash3_32 and the operator MurmurHash3 of ONNX Runtime compute as well. It spreads words
// over buckets and hides nothing: with a public seed anybody can find words that share a bucket, which costs
// accuracy and no privacy.
func murmur3[T string | []byte](data T, seed uint32) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h := seed
	whole := len(data) &^ 3
	for i := 0; i < whole; i += 4 {
		k := uint32(data[i]) | uint32(data[i+1])<<8 | uint32(data[i+2])<<16 | uint32(data[i+3])<<24
		h ^= bits.RotateLeft32(k*c1, 15) * c2
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	var k uint32
	for i := len(data) - 1; i >= whole; i-- {
		k = k<<8 | uint32(data[i])
	}
	h ^= bits.RotateLeft32(k*c1, 15) * c2
	h ^= uint32(len(data))
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// hashSeed returns the seed of a hashed column, or of a hashed cross of several: the hash of the names one
// after another, each seeded by the one before, from 0. So equal words in two columns share no bucket but by
// accident.
func hashSeed(names ...string) uint32 {
	var seed uint32
	for _, n := range names {
		seed = murmur3(n, seed)
	}
	return seed
}
