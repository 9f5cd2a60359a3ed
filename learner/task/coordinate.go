package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Coordinate describes one coordinate of a feature vector in terms of the data, so that another program can compute
// it. The intercept is not among them. Its value is Factor*base + Offset, where base depends on Kind:
//
//	numeric      the field x, or the declared fill where it is missing, moved into [Min, Max]; where Unit is above 0,
//	             sign(x) ln(1 + |x|/Unit) of it, moved there
//	indicator    1 if the field, or the fill where it is missing, is at least 1/2, else 0
//	missing      1 if the number of Sources[0] is missing, else 0
//	categorical  1 if the position of Sources[0] is Position, else 0; likewise hashed, bucketed and onehot-group
//	hats         the hat of knot Position of Sources[0], 0 where the number is missing: see Source
//	text         1/sqrt(n) if a word of Sources[0] falls into bucket Position, else 0: see Source
//	cross        1, or the scaled value of Derived.Scaled, if the combination of the positions of Sources is Position,
//	             else 0: see Derived
//	polynomial   the product of the scaled values of Sources, in which one may occur more than once
//	fourier      sqrt(2/D) cos(<Frequencies, s> + Phase) of the scaled values s of Sources: see Derived
//	public       output Position of the block of the public model, in [-1, 1]: see PublicModel
//
// Factor and Offset include the scale of Features.Scales or Features.Precondition.
type Coordinate struct {
	// unique within the map: age, job=Private, url#17, x3, 25<=age<35, age@25, age~missing, job=Private&sex=Male, age^2,
	// fourier~1, stage~1
	Name   string `json:"name"`
	Column string `json:"column,omitempty"` // the field of the event; empty for vectors and where there are several
	// numeric, indicator, categorical, hashed, bucketed, hats, text, onehot-group, missing, cross, polynomial, fourier or
	// public
	Kind   string  `json:"kind"`
	Word   string  `json:"word,omitempty"` // of categorical; empty for the words outside the vocabulary
	Min    float64 `json:"min"`            // of base
	Max    float64 `json:"max"`
	Factor float64 `json:"factor"`
	Offset float64 `json:"offset"`
	Unit   float64 `json:"unit,omitempty"` // of numeric columns of scale log
	Part   Part    `json:"part,omitempty"` // of a date in the field; x is then this part
	Over   string  `json:"over,omitempty"` // the field that x is divided by
	// Position is the index of the indicator within its column or cross, or of the knot, from 0.
	Position int `json:"position,omitempty"`
	// Sources are the inputs of the coordinate. They follow from the declaration, which every model contains.
	Sources []*Source `json:"-"`
	// Derived is set for cross, polynomial, fourier and public.
	Derived *Derived `json:"derived,omitempty"`
}

// The kinds of coordinates that are made from several fields. All other kinds are kinds of columns.
const (
	Crossed   = "cross"
	Product   = "polynomial"
	FourierOf = "fourier"
)

// Derived holds the additional fields of a Coordinate that is made from several fields.
type Derived struct {
	Columns []string `json:"columns,omitempty"` // names of the sources; empty for a vector

	// Of a cross, the combination of the positions p_i of sources with n_i positions is the number (..(p_1 n_2 + p_2) n_3
	// + p_3)..: Positions are those p_i. Where it is hashed, Position is instead MurmurHash3 (x86, 32 bits) with the Seed
	// of this number in 4 bytes, little-endian, modulo Buckets. If a source has no position, none of the indicators is
	// set.
	Positions []int `json:"positions,omitempty"`
	Buckets   int   `json:"buckets,omitempty"` // 0 if it is not hashed
	// Number is the column of a cross with a number, and Scaled its source; empty and nil for others.
	Number string  `json:"number,omitempty"`
	Scaled *Source `json:"-"`
	Seed   uint32  `json:"seed,omitempty"`

	// Of public: the name of the block, and the model, whose inputs come from Sources in order.
	Block  string       `json:"block,omitempty"`
	Public *PublicModel `json:"-"`

	// Of fourier: one number for each source; or, if the only source has no column, one for each value of the vector. They
	// follow from the declared seed, see Fourier.
	Frequencies []float64 `json:"-"`
	Phase       float64   `json:"-"`
}

// quoteName returns a part of a coordinate's name that comes from the declaration. It quotes a part that contains a
// separator of coordinate names, so that names are unique.
func quoteName(s string) string {
	if strings.ContainsAny(s, `=#&<>^~@"`+"*") {
		return strconv.Quote(s)
	}
	return s
}

// indicatorName names position at of a source.
func indicatorName(s *Source, at int) string {
	name := quoteName(s.Column)
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	switch {
	case s.Kind == OneHot:
		return name + "=" + quoteName(s.Columns[at])
	case s.Kind == Hats:
		return hatName(s, at)
	case s.Kind == Hashed, s.Kind == Text:
		return name + "#" + strconv.Itoa(at)
	case s.Kind == Bucketed && at == 0:
		return name + "<" + number(s.Edges[0])
	case s.Kind == Bucketed && at == len(s.Edges):
		return name + ">=" + number(s.Edges[at-1])
	case s.Kind == Bucketed:
		return number(s.Edges[at-1]) + "<=" + name + "<" + number(s.Edges[at])
	case at == len(s.Vocabulary):
		return name + "=" + otherWord
	}
	return name + "=" + quoteName(s.Vocabulary[at])
}

// ofSource describes the coordinates of a column.
func ofSource(s *Source) []Coordinate {
	if s.Kind.Number() {
		out := []Coordinate{{Name: quoteName(s.Column), Column: s.field(), Part: s.Part, Over: s.Over, Kind: string(s.Kind), Min: s.Min,
			Max:    s.Max,
			Factor: s.Factor, Offset: s.Offset, Unit: s.Unit, Sources: []*Source{s}}}
		if s.Told {
			out = append(out, ofMissing(s))
		}
		return out
	}
	out := make([]Coordinate, s.Positions())
	sources := []*Source{s}
	for i := range out {
		out[i] = Coordinate{Name: indicatorName(s, i), Column: s.field(), Part: s.Part, Over: s.Over, Kind: string(s.Kind), Max: 1,
			Factor: 1, Position: i,
			Sources: sources}
		if i < len(s.Vocabulary) {
			out[i].Word = s.Vocabulary[i]
		}
		if s.Kind == OneHot {
			out[i].Column = s.Columns[i]
		}
	}
	return out
}

// vectorName names a value of a vector. Indices count from 1, as in the data.
func vectorName(at int) string { return "x" + strconv.Itoa(at+1) }

func (m *vectorMap) coordinates() []Coordinate {
	out, s := make([]Coordinate, m.dimension), m.source
	for i := range out {
		out[i] = Coordinate{Name: vectorName(i), Kind: string(s.Kind), Min: s.Min, Max: s.Max, Factor: s.Factor,
			Offset:  s.Offset,
			Sources: []*Source{s}}
	}
	return out
}

func (all inputs) ofCross(c *cross) []Coordinate {
	sources, columns := all.sources(c.inputs)
	names := make([]string, len(sources))
	begin, number, low, high := "", "", 0.0, 1.0
	var scaled *Source
	if c.number != none {
		in := &all[c.number]
		bounds := in.affine.bounds()
		scaled, number, low, high = in.Source, in.Column, min(0, bounds[0]), max(0, bounds[1])
		begin = quoteName(number) + "*"
	}
	if c.buckets > 0 {
		for i, column := range columns {
			names[i] = quoteName(column)
		}
		out := make([]Coordinate, c.buckets)
		shared := &Derived{Columns: columns, Buckets: c.buckets, Seed: c.seed, Number: number, Scaled: scaled}
		for i := range out {
			out[i] = Coordinate{Name: fmt.Sprintf("%s%s#%d", begin, strings.Join(names, "&"), i), Kind: Crossed, Min: low,
				Max: high, Factor: 1, Position: i, Sources: sources, Derived: shared}
		}
		return out
	}
	n := 1
	for _, w := range c.widths {
		n *= w
	}
	out := make([]Coordinate, n)
	for i := range out {
		at := c.unrank(i)
		for j, s := range sources {
			names[j] = indicatorName(s, at[j])
		}
		out[i] = Coordinate{Name: begin + strings.Join(names, "&"), Kind: Crossed, Min: low, Max: high, Factor: 1,
			Position: i, Sources: sources,
			Derived: &Derived{Columns: columns, Positions: at, Number: number, Scaled: scaled}}
	}
	return out
}

func (all inputs) ofProduct(product []int) Coordinate {
	sources, columns := all.sources(product)
	c := Coordinate{Kind: Product, Min: 1, Max: 1, Factor: 1, Sources: sources, Derived: &Derived{Columns: columns}}
	var names []string
	for i := 0; i < len(product); {
		power := 1
		for i+power < len(product) && product[i+power] == product[i] {
			power++
		}
		name := quoteName(columns[i])
		if power > 1 {
			name += "^" + strconv.Itoa(power)
		}
		names = append(names, name)
		i += power
		c.Min, c.Max = powerRange(all[product[i-1]].affine.bounds(), power, c.Min, c.Max)
	}
	c.Name = strings.Join(names, "*")
	return c
}

// powerRange returns the range of x^power y for x in the interval and y in [low, high].
func powerRange(x [2]float64, power int, low, high float64) (float64, float64) {
	a, b := x[0], x[1]
	for range power - 1 {
		a, b = a*x[0], b*x[1]
	}
	if power == 2 {
		if a, b = min(a, b), max(a, b); x[0] < 0 && x[1] > 0 {
			a = 0
		}
	}
	ends := [...]float64{a * low, a * high, b * low, b * high}
	return slices.Min(ends[:]), slices.Max(ends[:])
}

func (f *fourierMap) coordinates(sources []*Source, columns []string) []Coordinate {
	n := len(f.frequencies) / len(f.phases)
	out := make([]Coordinate, len(f.phases))
	for i := range out {
		out[i] = Coordinate{Name: fmt.Sprintf("fourier~%d", i+1), Kind: FourierOf, Min: -f.amplitude, Max: f.amplitude,
			Factor: 1, Position: i,
			Sources: sources, Derived: &Derived{Columns: columns, Frequencies: f.frequencies[i*n : (i+1)*n], Phase: f.phases[i]}}
	}
	return out
}
