package task

// Version is the only version of the task file that this package reads.
const Version = 1

// A Spec is the declared part of a task: what a person writes down and every party sees. Load, Parse and
// ParseCanonical return validated ones with every default filled in; a Spec built by hand is checked by Validate.
type Spec struct {
	Version int    `json:"version"`
	Name    string `json:"name"` // [a-z0-9_-]{1,32}, part of every subject on the broker

	Events   Events   `json:"events"`
	Features Features `json:"features"`
	// Intercept is the value of a last coordinate that is the same for every event; 0 leaves it out. Default 1.
	Intercept float64 `json:"intercept"`
	// NormBound is X, the bound on the Euclidean norm of a feature vector, intercept included; longer vectors are scaled
	// down to it on the device. 0, the default, takes the largest norm that the declared bounds allow.
	NormBound float64 `json:"norm_bound"`
	Label     Label   `json:"label"`

	Model    Model    `json:"model"`
	Privacy  Privacy  `json:"privacy"`
	Schedule Schedule `json:"schedule"`
}

// Events says how one event is written in a file or stream: one line each, but for idx and parquet.
type Events struct {
	Format Format `json:"format"`
	// Columns names the fields of a line by position, for csv without a header.
	Columns []string `json:"columns,omitempty"`
	// Header says that the first line of a csv file names the fields.
	Header bool `json:"header,omitempty"`
	// Separator is one character between the fields of csv. Default ",". Blanks around a field that is not quoted do not count.
	Separator string `json:"separator,omitempty"`
	// Skip lists prefixes: a line that starts with one is not an event. Blank lines never are.
	Skip []string `json:"skip,omitempty"`
	// MaxLine is the longest line in bytes, or the most bytes in the columns of a parquet row; longer ones are invalid rows.
	// Default 65536.
	MaxLine int `json:"max_line"`
}

// A Format is the encoding of events.
type Format string

// The formats of events.
const (
	LIBSVM Format = "libsvm" // "label index:value ...", indices from 1
	CSV    Format = "csv"    // RFC 4180, except that a field cannot contain a line break
	JSONL  Format = "jsonl"  // one JSON object a line
	IDX    Format = "idx"    // the MNIST container: a file of images, a file of labels
	// Parquet is flat columns of an Apache Parquet file: numbers, strings, booleans.
	Parquet Format = "parquet"
)

// Features is either one numeric Vector (libsvm, idx) or a list of named Columns (csv, jsonl, parquet).
type Features struct {
	Vector  *Vector  `json:"vector,omitempty"`
	Columns []Column `json:"columns,omitempty"`
}

// A Vector declares the features of a format whose events are numeric vectors already.
type Vector struct {
	Dimension int `json:"dimension"` // number of features, without the intercept
	// Min and Max bound every value; values outside are moved to the nearer bound. Zero must lie between them,
	// because a value that is not listed is zero.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// Scale is raw (default), unit (needs Min = 0) or symmetric (needs Min = -Max): zero stays zero.
	Scale Scale `json:"scale"`
	// MaxNonzeros bounds the number of nonzero values of an event and tightens the norm bound; an event that has more is
	// scaled down, not refused. Default: Dimension.
	MaxNonzeros int `json:"max_nonzeros"`
}

// A Column declares the features that come from one field of an event.
type Column struct {
	Name string     `json:"column"`
	Kind ColumnKind `json:"kind"`

	// Min, Max and Scale are of numeric columns: public bounds, values outside are moved to the nearer one.
	Min   float64 `json:"min,omitempty"`
	Max   float64 `json:"max,omitempty"`
	Scale Scale   `json:"scale,omitempty"` // default symmetric

	// Vocabulary is of categorical columns: one indicator for each word, in this order.
	Vocabulary []string `json:"vocabulary,omitempty"`
	// Unknown says what becomes of a word that is not in the vocabulary.
	Unknown Unknown `json:"unknown,omitempty"` // default invalid

	// Buckets is of hashed columns: the number of indicators that the words are hashed into.
	Buckets int `json:"buckets,omitempty"`
}

// A ColumnKind says how a field becomes features.
type ColumnKind string

// The kinds of columns.
const (
	Numeric     ColumnKind = "numeric"     // one coordinate
	Categorical ColumnKind = "categorical" // one indicator for each word of a public vocabulary
	Hashed      ColumnKind = "hashed"      // one indicator for each bucket of a hash of the word
)

// A Scale is an affine map, fixed by public bounds, from the units of the data to a coordinate.
type Scale string

// The scales.
const (
	Raw       Scale = "raw"       // the value itself
	Unit      Scale = "unit"      // [Min, Max] to [0, 1]
	Symmetric Scale = "symmetric" // [Min, Max] to [-1, 1]
)

// Unknown is the treatment of words outside a vocabulary.
type Unknown string

// The treatments.
const (
	Invalid Unknown = "invalid" // the row is invalid
	Drop    Unknown = "drop"    // no indicator is set
	Other   Unknown = "other"   // one more indicator, after those of the vocabulary
)

// Privacy is the guarantee that is asked for. The words are those of package accounting.
type Privacy struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
	Trust   string  `json:"trust"` // shuffle (default), pan, shuffle+pan
	// HonestFraction is the share of the users of a round whose noise is relied upon, in (0, 1]: exact text, as
	// accounting.Fraction writes it. A file may say 0.9 or 9/10. Default "1".
	HonestFraction string `json:"honest_fraction"`
	Coin           string `json:"coin"`     // fair (default): coins of p = 1/2 where that is cheap; any: p is free
	MaxBits        int    `json:"max_bits"` // most bits g+b of a report for one coordinate; 0, the default, is no limit
	Profile        string `json:"profile"`  // numeric (default), or paper: the closed-form constants
	Seal           string `json:"seal"`     // hpke (default), or none: the broker's operator is trusted
}
