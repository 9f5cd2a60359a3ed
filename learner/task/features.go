package task

// Features declares how an event becomes a vector: its own coordinates, from one numeric Vector (libsvm, idx) or a list
// of named Columns (csv, jsonl, parquet), then those that are derived from them, in the order of these fields: crosses,
// polynomial, Fourier, public model. All of it is public, and nothing in it may have been computed from private data
// without a privacy charge.
type Features struct {
	Vector     *Vector     `json:"vector,omitempty"`
	Columns    []Column    `json:"columns,omitempty"`
	Crosses    []Cross     `json:"crosses,omitempty"`
	Polynomial *Polynomial `json:"polynomial,omitempty"`
	Fourier    *Fourier    `json:"fourier,omitempty"`
	// Public is a model of a public sample whose outputs are coordinates, see PublicModel.
	Public *Public `json:"public,omitempty"`
	// Scales is a diagonal preconditioner: one positive factor for each coordinate, without the intercept. Empty: all 1.
	Scales []float64 `json:"scales,omitempty"`
	// Precondition computes the scales from public second moments. It excludes Scales.
	Precondition *precondition `json:"precondition,omitempty"`
}

// A Vector declares the features of a format whose events are numeric vectors already.
type Vector struct {
	Dimension int `json:"dimension"` // number of features, without the intercept
	// Kind is Numeric (default), or Indicator if every value is 0 or 1, without Min, Max and Scale.
	Kind ColumnKind `json:"kind"`
	// Min and Max bound every value; values outside are moved to the nearer bound. Zero must lie between them, because
	// values that are not listed are zero.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// Scale is raw (default), unit (needs Min = 0) or symmetric (needs Min = -Max): zero stays zero.
	Scale Scale `json:"scale,omitempty"`
	// MaxNonzeros bounds the number of nonzero values of an event and tightens the norm bound. An event with more is
	// scaled down, not refused. Default: Dimension.
	MaxNonzeros int `json:"max_nonzeros"`
	// Hidden leaves the values out of the vector: only Fourier features and the public model use them.
	Hidden bool `json:"hidden,omitempty"`
}

// A Column declares the features that come from one field of an event. A field may be listed twice: once as a number
// (numeric or indicator), once by positions (any other kind).
type Column struct {
	Name string     `json:"column"` // the field; a new name for a one-hot group, a part or a ratio
	Kind ColumnKind `json:"kind"`
	// Columns are the fields of a one-hot group in the order of its positions: numbers, at most one of them 1. Other
	// columns may use them only as numbers.
	Columns []string `json:"columns,omitempty"`

	// Field and Part take a number from a date, for columns of kind numeric, bucketed or hats. Several columns may use one
	// field.
	Field string `json:"field,omitempty"`
	Part  Part   `json:"part,omitempty"`
	// Over makes the number a ratio: the number in Field divided by the number in Over, for columns of kind numeric,
	// bucketed or hats. It is missing if either number is, if the divisor is 0, and if the ratio overflows.
	Over string `json:"over,omitempty"`

	// Min, Max and Scale apply to numeric columns. The bounds are public; values outside are moved to the nearer one.
	Min   float64 `json:"min,omitempty"`
	Max   float64 `json:"max,omitempty"`
	Scale Scale   `json:"scale,omitempty"` // default symmetric
	// Mean, Std > 0 and Clip > 0 replace Min and Max for the scales standard and log. They are public, not computed from
	// private data. Values farther than Clip times Std from the mean are moved to that distance. Default Clip: 3. For
	// scale log they apply to the logarithm.
	Mean float64 `json:"mean,omitempty"`
	Std  float64 `json:"std,omitempty"`
	Clip float64 `json:"clip,omitempty"`
	// Unit > 0 applies to scale log: the scale is linear for numbers much smaller than Unit, logarithmic for much larger
	// ones.
	Unit float64 `json:"unit,omitempty"`

	// Vocabulary applies to categorical columns: one indicator for each word, in this order.
	Vocabulary []string `json:"vocabulary,omitempty"`
	// Unknown selects the treatment of words outside the vocabulary.
	Unknown Unknown `json:"unknown,omitempty"` // default invalid

	// Buckets applies to hashed columns and texts: the number of coordinates that words are hashed into.
	Buckets int `json:"buckets,omitempty"`

	// Words applies to texts: only the first Words words count. Default: 256.
	Words int `json:"words,omitempty"`

	// Edges applies to bucketed columns: increasing numbers e_1 < ... < e_k for the k+1 indicators of x < e_1, e_1 <= x <
	// e_2, ..., e_k <= x.
	Edges []float64 `json:"edges,omitempty"`

	// Knots applies to hats: 2 to 64 increasing numbers t_1 < ... < t_k with one coordinate each. x is moved into [t_1,
	// t_k]; the coordinates of the two knots next to it then add up to 1, by linear interpolation.
	Knots []float64 `json:"knots,omitempty"`

	// Marks applies to columns of numbers, except groups: texts that are removed before a number is read, such as $ and
	// the comma of thousands. With the mark %, 45% is read as 45.
	Marks []string `json:"marks,omitempty"`

	// Missing selects the treatment of missing values.
	Missing Missing `json:"missing,omitzero"`

	// Hidden leaves the column out of the vector: only crosses, polynomial, Fourier features and the public model use it.
	Hidden bool `json:"hidden,omitempty"`
}

// A ColumnKind is a way to turn a field into features.
type ColumnKind string

// The kinds of columns.
const (
	Numeric     ColumnKind = "numeric"     // one coordinate
	Indicator   ColumnKind = "indicator"   // one coordinate: 1 if the number is at least 1/2, else 0
	Categorical ColumnKind = "categorical" // one indicator for each word of a public vocabulary
	Hashed      ColumnKind = "hashed"      // one indicator for each bucket of a hash of the word; words may share one
	Bucketed    ColumnKind = "bucketed"    // one indicator for each interval between public edges
	// Hats is one coordinate for each public knot: 1 at the knot, 0 at and beyond the neighbouring knots, and linear
	// between. Weighted sums of them are all piecewise linear functions with corners at the knots.
	Hats ColumnKind = "hats"
	// Text is one coordinate for each bucket of a hash of the words of a text. Buckets with a word have equal coordinates,
	// which together have norm 1; the others are 0.
	Text ColumnKind = "text"
	// OneHot is a group of fields that are indicators already, at most one of them 1, so that together they have norm at
	// most 1. Values are read as in kind indicator; a row with two ones is invalid.
	OneHot ColumnKind = "onehot-group"
)

// Number reports whether the field is a number with a coordinate of its own.
func (k ColumnKind) Number() bool { return k == Numeric || k == Indicator }

// A Scale is a map from the units of the data to a coordinate: affine with public bounds, or the same after a
// logarithm.
type Scale string

// The scales.
const (
	Raw       Scale = "raw"       // the value itself
	Unit      Scale = "unit"      // [Min, Max] to [0, 1]
	Symmetric Scale = "symmetric" // [Min, Max] to [-1, 1]
	Standard  Scale = "standard"  // (x - Mean)/Std, in [-Clip, Clip]
	Log       Scale = "log"       // standard, applied to sign(x) ln(1 + |x|/Unit)
)

// Unknown is the treatment of words outside a vocabulary.
type Unknown string

// The treatments.
const (
	Invalid Unknown = "invalid" // the row is invalid
	Drop    Unknown = "drop"    // no indicator is set
	Other   Unknown = "other"   // one more indicator, after the vocabulary's
)

// A Cross declares one indicator for each combination of the positions of two to four columns of indicators; the
// position of the last column changes fastest. No indicator is set if a column sets none. With a Number there are one
// to four columns, and the indicator is multiplied by the number, so that it has a slope of its own for each
// combination.
type Cross struct {
	Columns []string `json:"columns"`
	// Number is a numeric column, whose scaled value multiplies the indicators.
	Number string `json:"number,omitempty"`
	// Buckets is the number of indicators that combinations are hashed into; combinations may share one. 0, the default:
	// one for each combination.
	Buckets int `json:"buckets,omitempty"`
}

// A Polynomial declares the products of two (Degree 2), or of two and of three (Degree 3), scaled values of the listed
// numeric columns; a column may occur repeatedly in a product. The linear terms are the columns themselves.
type Polynomial struct {
	Columns []string `json:"columns"`
	Degree  int      `json:"degree"`
}

// Fourier declares random Fourier features (Rahimi and Recht, Random Features for Large-Scale Kernel Machines, 2007):
// coordinate i is sqrt(2/Dimension) cos(<w_i, s> + b_i) of the scaled values s, with w_i from a normal distribution of
// variance 2 Gamma and b_i uniform, so that inner products of two events approach exp(-Gamma ||s - s'||^2). Seed is
// public; derived.go fixes the numbers that follow from it.
type Fourier struct {
	Columns   []string `json:"columns,omitempty"` // numeric columns; empty for a vector: all its values
	Dimension int      `json:"dimension"`         // number of coordinates
	Gamma     float64  `json:"gamma"`             // > 0
	Seed      int      `json:"seed"`              // >= 0; default 0
}

// precondition scales coordinate j by 1/sqrt(h_j + Damping), which makes a problem whose coordinates have second
// moments h_j better conditioned. The moments are public; a practical plan estimates its own.
type precondition struct {
	// SecondMoments h_j >= 0 are public means of squares of the coordinates before this scale, without the intercept. For
	// an indicator it is its frequency.
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
