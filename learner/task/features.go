package task

// Features declares how an event becomes a vector: its own coordinates, from one numeric Vector (libsvm, idx) or a list
// of named Columns (csv, jsonl, parquet), then those that are derived from them, in the order of these fields: crosses,
// polynomial, Fourier, public model. All of it is public, and nothing in it may have been computed from private data
// without paying for it.
type Features struct {
	Vector     *Vector     `json:"vector,omitempty"`
	Columns    []Column    `json:"columns,omitempty"`
	Crosses    []Cross     `json:"crosses,omitempty"`
	Polynomial *Polynomial `json:"polynomial,omitempty"`
	Fourier    *Fourier    `json:"fourier,omitempty"`
	// Public is a model of a public sample, whose outputs are coordinates: see PublicModel.
	Public *Public `json:"public,omitempty"`
	// Scales multiply the coordinates, one number above 0 for each, without the intercept: a diagonal preconditioner.
	// Empty: all 1.
	Scales []float64 `json:"scales,omitempty"`
	// precondition computes the scales from public second moments. Not together with Scales.
	Precondition *precondition `json:"precondition,omitempty"`
}

// A Vector declares the features of a format whose events are numeric vectors already.
type Vector struct {
	Dimension int `json:"dimension"` // number of features, without the intercept
	// Kind is Numeric (default), or Indicator where every value is 0 or 1: without Min, Max and Scale.
	Kind ColumnKind `json:"kind"`
	// Min and Max bound every value; values outside are moved to the nearer bound. Zero must lie between them,
	// because a value that is not listed is zero.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// Scale is raw (default), unit (needs Min = 0) or symmetric (needs Min = -Max): zero stays zero.
	Scale Scale `json:"scale,omitempty"`
	// MaxNonzeros bounds the number of nonzero values of an event and tightens the norm bound; an event that has more is
	// scaled down, not refused. Default: Dimension.
	MaxNonzeros int `json:"max_nonzeros"`
	// Hidden leaves the values out of the vector: only Fourier features and the public model are made from them.
	Hidden bool `json:"hidden,omitempty"`
}

// A Column declares the features that come from one field of an event. A field may be listed twice: once as a number
// (numeric or indicator), once by positions (any other kind).
type Column struct {
	Name string     `json:"column"` // the field; of a one-hot group, a part and a ratio a name of its own
	Kind ColumnKind `json:"kind"`
	// Columns are the fields of a one-hot group, numbers of which at most one is 1, in the order of its
	// positions. They are used nowhere else, except as numbers.
	Columns []string `json:"columns,omitempty"`

	// Field and Part make a number of a date: of columns that are numeric, bucketed or hats. One field may have several.
	Field string `json:"field,omitempty"`
	Part  Part   `json:"part,omitempty"`
	// Over makes the number a ratio: that of Field divided by that of this field. Of columns that are numeric, bucketed or
	// hats. It is missing where either is, where the divisor is 0, and where the ratio is beyond all numbers.
	Over string `json:"over,omitempty"`

	// Min, Max and Scale are of numeric columns: public bounds, values outside are moved to the nearer one.
	Min   float64 `json:"min,omitempty"`
	Max   float64 `json:"max,omitempty"`
	Scale Scale   `json:"scale,omitempty"` // default symmetric
	// Mean, Std > 0 and Clip > 0 belong to the scales standard and log, which have them instead of Min and Max: public
	// values, not computed from private data. Values farther than Clip times Std from the mean are moved there.
	// Default Clip: 3. Of scale log they are of the logarithm.
	Mean float64 `json:"mean,omitempty"`
	Std  float64 `json:"std,omitempty"`
	Clip float64 `json:"clip,omitempty"`
	// Unit > 0 belongs to scale log: numbers much smaller count as they are, much larger ones by their logarithm.
	Unit float64 `json:"unit,omitempty"`

	// Vocabulary is of categorical columns: one indicator for each word, in this order.
	Vocabulary []string `json:"vocabulary,omitempty"`
	// Unknown decides what becomes of a word that is not in the vocabulary.
	Unknown Unknown `json:"unknown,omitempty"` // default invalid

	// Buckets is of hashed columns: the number of indicators that the words are hashed into; and of texts.
	Buckets int `json:"buckets,omitempty"`

	// Words is of texts: the number of words that count, the first ones. Default: 256.
	Words int `json:"words,omitempty"`

	// Edges is of bucketed columns: increasing numbers e_1 < ... < e_k for the k+1 indicators of x < e_1, e_1 <= x < e_2,
	// ..., e_k <= x.
	Edges []float64 `json:"edges,omitempty"`

	// Knots is of columns of hats: increasing numbers t_1 < ... < t_k, from 2 to 64 of them, with one coordinate
	// each. x is moved between t_1 and t_k; the two coordinates of its neighbours then add up to 1, in the shares of
	// a straight line.
	Knots []float64 `json:"knots,omitempty"`

	// Marks are of columns of numbers, except groups: texts that are left out before a number is read, such as $ and the
	// comma of thousands. A per cent stays a per cent: 45% is 45.
	Marks []string `json:"marks,omitempty"`

	// Missing decides what becomes of a value that is not there.
	Missing Missing `json:"missing,omitzero"`

	// Hidden leaves the column out of the vector: only crosses, polynomial, Fourier features and the
	// public model are made from it.
	Hidden bool `json:"hidden,omitempty"`
}

// A ColumnKind is a way to turn a field into features.
type ColumnKind string

// The kinds of columns.
const (
	Numeric     ColumnKind = "numeric"     // one coordinate
	Indicator   ColumnKind = "indicator"   // one coordinate, 0 or 1: the nearer one of a number, 1 where it is 1/2
	Categorical ColumnKind = "categorical" // one indicator for each word of a public vocabulary
	Hashed      ColumnKind = "hashed"      // one indicator for each bucket of a hash of the word; words may share one
	Bucketed    ColumnKind = "bucketed"    // one indicator for each interval between public edges
	// Hats is one coordinate for each public knot: 1 at the knot, 0 from the next ones on, and a straight line between, so
	// that a sum of them is any line with its corners at the knots.
	Hats ColumnKind = "hats"
	// Text is one coordinate for each bucket of a hash of the words of a text: the same for all that some word falls into,
	// so that together they have norm 1, and 0 for the others.
	Text ColumnKind = "text"
	// OneHot is several fields that are indicators already, of which at most one is 1: together they have norm
	// 1. Values are as in kind indicator; a row in which two of them are 1 is invalid.
	OneHot ColumnKind = "onehot-group"
)

// Number reports whether the field is a number with a coordinate of its own.
func (k ColumnKind) Number() bool { return k == Numeric || k == Indicator }

// A Scale is an affine map, fixed by public bounds, from the units of the data, or a logarithm, to a coordinate.
type Scale string

// The scales.
const (
	Raw       Scale = "raw"       // the value itself
	Unit      Scale = "unit"      // [Min, Max] to [0, 1]
	Symmetric Scale = "symmetric" // [Min, Max] to [-1, 1]
	Standard  Scale = "standard"  // (x - Mean)/Std, in [-Clip, Clip]
	Log       Scale = "log"       // of sign(x) ln(1 + |x|/Unit): as standard
)

// Unknown is the treatment of words outside a vocabulary.
type Unknown string

// The treatments.
const (
	Invalid Unknown = "invalid" // the row is invalid
	Drop    Unknown = "drop"    // no indicator is set
	Other   Unknown = "other"   // one more indicator, after those of the vocabulary
)

// A Cross declares one indicator for each combination of the positions of two to four columns of indicators: the last
// one changes fastest. None is set where a column sets none. With a Number, the columns are one to four, and the one
// that would be 1 is the number: its own slope for each combination.
type Cross struct {
	Columns []string `json:"columns"`
	// Number is a numeric column, whose scaled value counts.
	Number string `json:"number,omitempty"`
	// Buckets hashes the combinations into that many indicators; different ones may share one. 0, the default, is one
	// each.
	Buckets int `json:"buckets,omitempty"`
}

// A Polynomial declares the products of two (Degree 2), or of two and of three (Degree 3) scaled values of the listed
// numeric columns, the same one repeated or not. The linear terms are the columns themselves.
type Polynomial struct {
	Columns []string `json:"columns"`
	Degree  int      `json:"degree"`
}

// Fourier declares random Fourier features (Rahimi and Recht, Random Features for Large-Scale Kernel Machines, 2007):
// coordinate i is sqrt(2/Dimension) cos(<w_i, s> + b_i) of the scaled values s, with w_i from a normal distribution of
// variance 2 Gamma and b_i uniform, so that inner products of two events approach exp(-Gamma ||s - s'||^2). Seed is
// public; fourier.go fixes the numbers that follow from it.
type Fourier struct {
	Columns   []string `json:"columns,omitempty"` // numeric columns; empty for a vector, of which all values count
	Dimension int      `json:"dimension"`         // number of coordinates
	Gamma     float64  `json:"gamma"`             // > 0
	Seed      int      `json:"seed"`              // >= 0; default 0
}

// precondition scales coordinate j by 1/sqrt(h_j + Damping), which makes a problem whose coordinates have second
// moments h_j better conditioned. The moments are public; a practical plan estimates its own.
type precondition struct {
	// SecondMoments h_j >= 0 are public means of squares of the coordinates before this scale, without the intercept: of
	// indicators, how frequent they are.
	SecondMoments []float64 `json:"second_moments,omitempty"`
	// Damping > 0 keeps rare coordinates from growing without bound.
	Damping float64 `json:"damping"`
}

func (f *Features) setDefaults() {
	if v := f.Vector; v != nil {
		if or(&v.Kind, Numeric); v.Kind == Numeric {
			or(&v.Scale, Raw)
		}
		or(&v.MaxNonzeros, v.Dimension)
	}
	for i := range f.Columns {
		c := &f.Columns[i]
		switch c.Kind {
		case Numeric:
			if or(&c.Scale, Symmetric); c.Scale == Standard || c.Scale == Log {
				or(&c.Clip, 3)
			}
		case Text:
			or(&c.Words, defaultWords)
		case Categorical:
			or(&c.Unknown, Invalid)
		}
		c.Missing.setDefaults(c)
	}
}
