package task

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
)

// columnMap is a compiled column: coordinates first to first+width-1.
type columnMap struct {
	name    string
	kind    ColumnKind
	first   int
	width   int
	affine  affine
	words   []string
	index   map[string]int
	unknown Unknown
}

// width is the number of coordinates of a column.
func (c *Column) width() int {
	switch c.Kind {
	case Categorical:
		if c.Unknown == Other {
			return len(c.Vocabulary) + 1
		}
		return len(c.Vocabulary)
	case Hashed:
		return c.Buckets
	}
	return 1
}

func newColumnMap(c *Column, first int) columnMap {
	m := columnMap{name: c.Name, kind: c.Kind, first: first, width: c.width(), words: c.Vocabulary, unknown: c.Unknown}
	switch c.Kind {
	case Numeric:
		m.affine = newAffine(c.Min, c.Max, c.Scale)
	case Categorical:
		m.index = make(map[string]int, len(c.Vocabulary))
		for i, w := range c.Vocabulary {
			m.index[w] = i
		}
	}
	return m
}

// add appends the coordinates of one field. An error never shows the field.
func (m *columnMap) add(field string, dst *convex.Example) error {
	field = strings.TrimSpace(field)
	switch m.kind {
	case Numeric:
		x, err := parseFinite(field)
		if err != nil {
			return err
		}
		m.set(dst, 0, m.affine.apply(x))
		return nil
	case Hashed:
		m.set(dst, m.bucket(field), 1)
		return nil
	}
	i, ok := m.index[field]
	switch {
	case ok:
		m.set(dst, i, 1)
	case m.unknown == Other:
		m.set(dst, len(m.words), 1)
	case m.unknown == Invalid:
		return fmt.Errorf("not in the vocabulary")
	}
	return nil
}

func (m *columnMap) set(dst *convex.Example, at int, value float64) {
	dst.Index = append(dst.Index, int32(m.first+at))
	dst.Value = append(dst.Value, value)
}

// bucket is the first 8 bytes, big-endian, of SHA-256(column 0x00 word), modulo the number of buckets. The
// bias of the modulo is below 2^-44.
func (m *columnMap) bucket(word string) int {
	h := sha256.Sum256([]byte(m.name + "\x00" + word))
	return int(binary.BigEndian.Uint64(h[:]) % uint64(m.width))
}

func (m *columnMap) coordinates() []Coordinate {
	out := make([]Coordinate, m.width)
	for i := range out {
		c := Coordinate{Column: m.name, Kind: string(m.kind), Max: 1, Factor: 1}
		switch {
		case m.kind == Numeric:
			c.Name = m.name
			c.Min, c.Max, c.Factor, c.Offset = m.affine.low, m.affine.high, m.affine.a, m.affine.b
		case m.kind == Hashed:
			c.Name = m.name + "#" + strconv.Itoa(i)
		case i < len(m.words):
			c.Name, c.Word = m.name+"="+m.words[i], m.words[i]
		default:
			c.Name = m.name + "=" + otherWord
		}
		out[i] = c
	}
	return out
}
