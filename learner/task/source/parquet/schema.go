package parquet

import (
	"errors"
	"fmt"
)

// A Kind is what a column is read as.
type Kind int

// The kinds. A decimal is read exactly.
const (
	Number Kind = iota // integers, decimals in integers, floats, and booleans as 0 and 1
	Word               // strings, integers, and booleans as false and true
	Any                // either: what Word takes, and floats and decimals too
)

// A Column asks for the column of the file that has the name.
type Column struct {
	Name string
	Kind Kind
}

// The physical types.
const (
	boolean   = 0
	integer32 = 1
	integer64 = 2
	integer96 = 3
	float     = 4
	double    = 5
	byteArray = 6
	fixed     = 7
)

var physicalNames = []string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

// A meaning is what an annotation makes of a physical type.
type meaning int

const (
	plain meaning = iota
	text
	unsigned
	decimal
	other // nothing that we read: dates, times, JSON
)

// An element is a node of the schema.
type element struct {
	name       string
	physical   int32 // -1: a group
	repetition int32 // 0 required, 1 optional, 2 repeated
	children   int32
	meaning    meaning
	annotation string // for errors
	scale      int32  // of a decimal
}

// element reads a SchemaElement. The newer annotation, logicalType, wins over the older one.
func (p *footerParser) element(kind byte) element {
	out := element{physical: -1}
	converted, logical := int32(-1), int16(0)
	signed := true
	p.fields(kind, func(id int16, kind byte) {
		switch id {
		case 1:
			out.physical = p.int32(kind)
		case 3:
			out.repetition = p.int32(kind)
		case 4:
			out.name = p.text(kind)
		case 5:
			out.children = p.int32(kind)
		case 6:
			converted = p.int32(kind)
		case 7:
			out.scale = p.int32(kind)
		case 10:
			p.fields(kind, func(id int16, kind byte) {
				logical = id
				p.fields(kind, func(id int16, kind byte) {
					switch {
					case logical == 5 && id == 1:
						out.scale = p.int32(kind)
					case logical == 10 && id == 2:
						signed = p.bool(kind)
					default:
						p.skip(kind)
					}
				})
			})
		default:
			p.skip(kind)
		}
	})
	switch {
	case logical > 0:
		out.meaning, out.annotation = logicalMeaning(logical, signed)
	case converted >= 0:
		out.meaning, out.annotation = convertedMeaning(converted)
	}
	if out.children < 0 || out.physical >= 0 && out.children > 0 || int(out.physical) >= len(physicalNames) {
		p.fail(errThrift)
	}
	return out
}

func logicalMeaning(id int16, signed bool) (meaning, string) {
	switch id {
	case 1:
		return text, "STRING"
	case 4:
		return text, "ENUM"
	case 5:
		return decimal, "DECIMAL"
	case 10:
		if !signed {
			return unsigned, "unsigned"
		}
		return plain, ""
	case 11: // UNKNOWN: every value is null
		return plain, ""
	}
	names := map[int16]string{2: "MAP", 3: "LIST", 6: "DATE", 7: "TIME", 8: "TIMESTAMP", 12: "JSON", 13: "BSON", 14: "UUID", 15: "FLOAT16"}
	if name, ok := names[id]; ok {
		return other, name
	}
	return other, "an annotation that is not known"
}

func convertedMeaning(id int32) (meaning, string) {
	switch {
	case id == 0:
		return text, "UTF8"
	case id == 4:
		return text, "ENUM"
	case id == 5:
		return decimal, "DECIMAL"
	case id >= 11 && id <= 14:
		return unsigned, "unsigned"
	case id >= 15 && id <= 18:
		return plain, ""
	}
	names := map[int32]string{1: "MAP", 2: "MAP_KEY_VALUE", 3: "LIST", 6: "DATE", 7: "TIME", 8: "TIME", 9: "TIMESTAMP", 10: "TIMESTAMP",
		19: "JSON", 20: "BSON", 21: "INTERVAL"}
	if name, ok := names[id]; ok {
		return other, name
	}
	return other, "an annotation that is not known"
}

// found says what a column is, for errors.
func (e element) found() string {
	switch {
	case e.physical < 0:
		return "a nested column"
	case e.repetition == 2:
		return "a repeated column"
	case e.annotation != "":
		return physicalNames[e.physical] + " (" + e.annotation + ")"
	}
	return physicalNames[e.physical]
}

// A top is a column of the first level: its element and the number of its leaf among all of the file.
type top struct {
	element
	leaf int64
}

// topLevel walks the schema, which lists its tree depth first.
func topLevel(elements []element) (out []top, leaves int64, err error) {
	broken := errors.New("the schema is not a tree")
	if len(elements) == 0 {
		return nil, 0, broken
	}
	open := []int32{elements[0].children} // nodes that are still to come, of every group that is open
	for _, e := range elements[1:] {
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return nil, 0, broken
		}
		open[len(open)-1]--
		if len(open) == 1 {
			out = append(out, top{e, leaves})
		}
		if e.physical < 0 {
			open = append(open, e.children)
		} else {
			leaves++
		}
	}
	for _, n := range open {
		if n != 0 {
			return nil, 0, broken
		}
	}
	return out, leaves, nil
}

// A column is a column that was chosen.
type column struct {
	element
	read Kind
}

// choose finds a column and checks its type.
func choose(in []top, want Column) (column, int64, error) {
	at := -1
	for i, t := range in {
		if t.name == want.Name && at >= 0 {
			return column{}, 0, fmt.Errorf("column %q is in the file twice", want.Name)
		}
		if t.name == want.Name {
			at = i
		}
	}
	if at < 0 {
		return column{}, 0, fmt.Errorf("column %q is not in the file", want.Name)
	}
	e := in[at].element
	if e.physical < 0 || e.repetition == 2 || !e.readable(want.Kind) {
		return column{}, 0, fmt.Errorf("column %q: want %s, found %s", want.Name, want.Kind.wants(), e.found())
	}
	return column{e, want.Kind}, in[at].leaf, nil
}

func (k Kind) wants() string {
	switch k {
	case Number:
		return "a number (BOOLEAN, INT32, INT64, FLOAT or DOUBLE)"
	case Word:
		return "a word (a string, INT32, INT64 or BOOLEAN)"
	}
	return "a string or a number (BOOLEAN, INT32, INT64, FLOAT or DOUBLE)"
}

func (e element) readable(as Kind) bool {
	switch e.physical {
	case boolean:
		return e.meaning == plain
	case integer32, integer64:
		return e.meaning == plain || e.meaning == unsigned || e.meaning == decimal && as != Word && e.scale >= 0 && e.scale <= 18
	case float, double:
		return e.meaning == plain && as != Word
	case byteArray:
		return (e.meaning == text || e.meaning == plain) && as != Number
	}
	return false
}
