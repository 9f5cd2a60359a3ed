package object

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf16"
	"unicode/utf8"
)

// Members returns the members of a text that is one JSON object: names, and values as they are written. Of another text
// it returns false.
func Members(text []byte) (iter.Seq2[string, []byte], bool) {
	if !Is(text) {
		return nil, false
	}
	return func(yield func(string, []byte) bool) {
		for quoted, value := range All(text) {
			if !yield(string(AppendText(nil, quoted)), value) {
				return
			}
		}
	}, true
}

// Is reports whether a text is one JSON object.
func Is(text []byte) bool {
	start := bytes.TrimLeft(text, " \t\r\n")
	return len(start) > 0 && start[0] == '{' && json.Valid(text)
}

// All yields the members of a JSON object: names as they are written, with their quotes, and values. The
// text must be a valid object.
func All(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for at := pastBlanks(object, 0) + 1; ; {
			for at = pastBlanks(object, at); object[at] == ','; {
				at = pastBlanks(object, at+1)
			}
			if object[at] == '}' {
				return
			}
			end := pastValue(object, at)
			name := object[at:end]
			at = pastBlanks(object, pastBlanks(object, end)+1) // the colon
			end = pastValue(object, at)
			if !yield(name, object[at:end]) {
				return
			}
			at = end
		}
	}
}

// pastBlanks returns the place of the first byte from a place on that is no blank.
func pastBlanks(text []byte, at int) int {
	for text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n' {
		at++
	}
	return at
}

// pastValue returns the place behind the value that begins at a place of a valid object.
func pastValue(text []byte, at int) int {
	depth := 0
	for {
		switch text[at] {
		case '"':
			at = pastString(text, at)
		case '{', '[':
			depth++
			at++
		case '}', ']':
			depth--
			at++
		case ',', ':', ' ', '\t', '\r', '\n': // in a list or an object
			at++
		default:
			at = pastWord(text, at)
		}
		if depth == 0 {
			return at
		}
	}
}

// pastString returns the place behind the string that begins at a place.
func pastString(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// pastWord returns the place behind the number, true, false or null that begins at a place.
func pastWord(text []byte, at int) int {
	for {
		switch text[at] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return at
		}
		at++
	}
}

// escapes are the bytes that a backslash and a letter mean.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// AppendText appends the text of a valid JSON string to dst, as encoding/json reads it, and allocates nothing for it.
func AppendText(dst, quoted []byte) []byte {
	for text := quoted[1 : len(quoted)-1]; len(text) > 0; {
		switch {
		case text[0] == '\\' && text[1] == 'u':
			r := hexRune(text)
			if text = text[6:]; utf16.IsSurrogate(r) {
				second := rune(-1)
				if len(text) >= 6 && text[0] == '\\' && text[1] == 'u' {
					second = hexRune(text)
				}
				if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
					text = text[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
		case text[0] == '\\':
			dst, text = append(dst, escapes[text[1]]), text[2:]
		default:
			r, size := utf8.DecodeRune(text)
			dst, text = utf8.AppendRune(dst, r), text[size:]
		}
	}
	return dst
}

// hexRune reads the four digits of \uXXXX.
func hexRune(text []byte) (r rune) {
	for _, b := range text[2:6] {
		if b > '9' {
			b += 9 // the low four bits of A and a are 1
		}
		r = r<<4 | rune(b&0xf)
	}
	return r
}
