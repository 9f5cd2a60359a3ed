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

	// Validation is about what reports carry beside the gradient. nil, which no file can say, is none.
	Validation *Validation `json:"validation,omitempty"`
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
