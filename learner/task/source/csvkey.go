package source

import (
	"strings"
	"unicode/utf8"

	"github.com/panlearn/panlearn/learner/task"
)

// mostField is the most bytes of a field that are held, blanks after a key included.
const mostField = 1 << 12

// A csvKey finds one field of a line of csv: the one at its position, counted from the left, whatever comes after it.
type csvKey struct {
	separator byte
	position  int

	at             int
	text           []byte
	quoted, closed bool // the field began with a quote; which was closed
	pending        bool // a quote in quotes: the end, or half of one
	begun, over    bool
}

// Reset begins a new line.
func (k *csvKey) Reset() {
	*k = csvKey{separator: k.separator, position: k.position, text: k.text[:0]}
}

// Key returns the field without the blanks around it; empty where it was not there to its end, which a
// separator or the line's end shows: where data end, as in a file that is being written or a stream that is
// cut, another key may begin like it.
func (k *csvKey) Key() string {
	text := string(k.text)
	if !k.quoted {
		text = strings.TrimRight(text, k.blanks())
	}
	if k.at < k.position || !k.over || k.quoted && !k.closed || len(k.text) > mostField || len(text) > task.MaxKey ||
		!utf8.ValidString(text) {
		return ""
	}
	return text
}

func (k *csvKey) blanks() string {
	if k.separator == '\t' {
		return " "
	}
	return " \t"
}

// Write reads the next part. It never fails.
func (k *csvKey) Write(part []byte) (int, error) {
	for _, b := range part {
		if k.over {
			break
		}
		k.take(b)
	}
	return len(part), nil
}

func (k *csvKey) take(b byte) {
	if k.pending { // a quote came inside quotes
		k.pending = false
		if b == '"' {
			k.add(b)
			return
		}
		k.closed = true
	}
	inside := k.quoted && !k.closed
	switch {
	case b == '\n' || b == '\r' && !inside:
		k.over = b == '\n' || k.over
	case inside && b == '"':
		k.pending = true
	case inside:
		k.add(b)
	case b == k.separator:
		if k.over = k.at == k.position; !k.over {
			k.at++
			k.begun, k.quoted, k.closed = false, false, false
		}
	case !k.begun && strings.IndexByte(k.blanks(), b) >= 0:
	case !k.begun && b == '"':
		k.begun, k.quoted = true, true
	case !k.closed:
		k.begun = true
		k.add(b)
	}
}

func (k *csvKey) add(b byte) {
	if k.at == k.position && len(k.text) <= mostField {
		k.text = append(k.text, b)
	}
}
