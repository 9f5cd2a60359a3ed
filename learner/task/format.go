package task

import "strings"

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

// formatTraits are a row of the table of formats.
type formatTraits struct {
	name   Format
	vector bool // rows are vectors, whose coordinates have no names
	binary bool // rows are not lines of text
}

// formats is the table of formats, in the order of the documentation.
var formats = [...]formatTraits{{name: LIBSVM, vector: true}, {name: CSV}, {name: JSONL},
	{name: IDX, vector: true, binary: true}, {name: Parquet, binary: true}}

// traits returns the row of a format; of an unknown one, the zero row.
func (f Format) traits() formatTraits {
	for _, t := range formats {
		if t.name == f {
			return t
		}
	}
	return formatTraits{}
}

// Formats returns all formats of events.
func Formats() []Format {
	out := make([]Format, len(formats))
	for i, t := range formats {
		out[i] = t.name
	}
	return out
}

// Vectors reports whether rows of the format are vectors. Rows of other formats have columns with names.
func (f Format) Vectors() bool { return f.traits().vector }

// namedFormats lists the formats whose rows have columns with names.
func namedFormats() string {
	var names []string
	for _, t := range formats {
		if !t.vector {
			names = append(names, string(t.name))
		}
	}
	return strings.Join(names, ", ")
}

// FormatHelp returns the help of a flag that names the format of rows.
func FormatHelp() string {
	names := make([]string, len(formats))
	for i, t := range formats {
		names[i] = string(t.name)
	}
	last := len(names) - 1
	return "format of the data, if not the task's: " + strings.Join(names[:last], ", ") + " or " + names[last]
}
