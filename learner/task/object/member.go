package object

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// A Member finds one member of a JSON object, at its top level, in bytes that come in parts: a string or, with
// Numbers, a number as it is written. The first that can be read counts. Text after it may be malformed, and of
// the text before it only quotes and brackets must be in order; it does not recurse, and holds no more than the
// text of one name or value. A value of which only Name and Most are set is ready.
type Member struct {
	Name    string
	Numbers bool
	Most    int // bytes of the value; longer ones cannot be read

	text   []byte // of the string or number that is being read, as far as it matters
	depth  int    // of brackets; the object is 1
	place  place
	quoted bool // in a string
	escape bool // after its backslash
	begun  bool // a byte that is no blank has come
	keep   bool // text is wanted
	match  bool // the name was ours
	value  string
}

type place int // in an object

const (
	atName place = iota
	afterName
	atValue
	afterValue
)

// Reset begins a new object.
func (m *Member) Reset() {
	*m = Member{Name: m.Name, Numbers: m.Numbers, Most: m.Most, text: m.text[:0]}
}

// Key returns the value; empty if no value can be read.
func (m *Member) Key() string { return m.value }

// Write reads the next part. It never fails.
func (m *Member) Write(part []byte) (int, error) {
	for _, b := range part {
		if m.value != "" {
			break
		}
		if m.quoted {
			m.inString(b)
		} else {
			m.outside(b)
		}
	}
	return len(part), nil
}

func (m *Member) inString(b byte) {
	switch {
	case m.escape:
		m.escape = false
	case b == '\\':
		m.escape = true
	case b == '"':
		m.quoted = false
		if m.keep {
			m.ended()
		}
		return
	}
	m.add(b)
}

// add keeps a byte; of a text that is too long one byte too many. An escape takes at most 6 bytes for one of the value.
func (m *Member) add(b byte) {
	if m.keep && len(m.text) <= 6*max(m.Most, len(m.Name)) {
		m.text = append(m.text, b)
	}
}

// ended takes a string of the top level.
func (m *Member) ended() {
	var text string
	ok := len(m.text) <= 6*max(m.Most, len(m.Name)) && utf8.Valid(m.text) && json.Unmarshal([]byte(`"`+string(m.text)+`"`),
		&text) == nil
	m.keep = false
	switch m.place {
	case atName:
		m.place, m.match = afterName, ok && text == m.Name
	case atValue:
		if m.place = afterValue; ok && m.match && len(text) <= m.Most {
			m.value = text
		}
	}
}

// bare takes a number of the top level.
func (m *Member) bare() {
	if m.keep && m.Numbers && m.match && len(m.text) <= m.Most && json.Valid(m.text) &&
		strings.Contains("-0123456789", string(m.text[:1])) {
		m.value = string(m.text)
	}
	m.keep = false
}

func (m *Member) outside(b byte) {
	blank := b == ' ' || b == '\t' || b == '\r' || b == '\n'
	if !m.begun {
		switch {
		case blank:
		case b == '{':
			m.begun, m.depth = true, 1
		default:
			m.begun = true // no object: depth stays 0
		}
		return
	}
	if m.depth == 0 {
		return
	}
	top := m.depth == 1
	if top && m.place == atValue && m.keep && (blank || strings.IndexByte(`,}]{[":`, b) >= 0) {
		m.bare()
		m.place = afterValue
	}
	switch {
	case b == '"':
		m.quoted, m.text = true, m.text[:0]
		m.keep = top && (m.place == atName || m.place == atValue)
	case b == '{' || b == '[':
		if m.depth++; top && m.place == atValue {
			m.place = afterValue
		}
	case b == '}' || b == ']':
		m.depth--
	case !top || blank:
	case b == ',':
		m.place, m.match = atName, false
	case b == ':' && m.place == afterName:
		m.place = atValue
	case m.place == atValue:
		if !m.keep {
			m.keep, m.text = true, m.text[:0]
		}
		m.add(b)
	}
}
