package httpgateway

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/panlearn/panlearn/learner/task/object"
	"github.com/panlearn/panlearn/stream/device"
)

// A poster with a readable key takes part: any other error in a body makes its event invalid, and goes to the local
// log.
var (
	errNoKey = fmt.Errorf("the body has no member key at the top level of a JSON object, a string of 1 to %d bytes "+
		"without half a surrogate pair", device.MaxKey)
	errLarge  = errors.New("the body is too large")
	errObject = errors.New(
		"the body is not one JSON object with the members key and event alone, each once; of a task that protects people, key and events")
)

// A body holds the text that a request has for one key, up to a number of bytes, or nothing of a larger one.
type body struct {
	key  object.Member
	last quoted // string that was read, up to the key
	text []byte
	most int64
	over bool // it is larger
}

func newBody(most int64) *body {
	return &body{key: object.Member{Name: "key", Most: device.MaxKey}, most: most}
}

// name returns the key; empty if none can be read.
func (b *body) name() string {
	if halved(b.last.text) {
		return ""
	}
	return b.key.Key()
}

// Write takes the next part. It never fails.
func (b *body) Write(part []byte) (int, error) {
	for i := range part {
		if b.key.Key() != "" {
			break
		}
		b.last.add(part[i])
		_, _ = b.key.Write(part[i : i+1])
	}
	if b.over = b.over || int64(len(b.text)+len(part)) > b.most; b.over {
		b.text = nil
	} else {
		b.text = append(b.text, part...)
	}
	return len(part), nil
}

// done reports whether nothing of what follows is needed.
func (b *body) done() bool { return b.over && b.key.Key() != "" }

// A quoted holds the newest string of a JSON text as it is written, up to the longest that may be a key.
type quoted struct {
	text         []byte
	open, escape bool
}

func (q *quoted) add(b byte) {
	switch {
	case !q.open:
		if b == '"' {
			*q = quoted{text: q.text[:0], open: true}
		}
		return
	case q.escape:
		q.escape = false
	case b == '\\':
		q.escape = true
	case b == '"':
		q.open = false
		return
	}
	if len(q.text) < 6*device.MaxKey {
		q.text = append(q.text, b)
	}
}

// halved reports whether an escape in a JSON text is half a surrogate pair without the other half: every decoder makes
// the same character of it, so two keys would be one.
func halved(text []byte) bool {
	for at := 0; at < len(text); at++ {
		if text[at] != '\\' {
			continue
		}
		if first, ok := unit(text[at:]); ok && utf16.IsSurrogate(first) {
			second, _ := unit(text[at+6:])
			if utf16.DecodeRune(first, second) == utf8.RuneError {
				return true
			}
			at += 10
		}
		at++
	}
	return false
}

// unit returns the number of an escape with four hexadecimal digits that a text begins with.
func unit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

// readRequest reads a body to its end, of which it holds no more than most bytes, or of a larger one up to its key.
func readRequest(in io.Reader, most int64) (*body, error) {
	b := newBody(most)
	var part [16 << 10]byte
	for !b.done() {
		n, err := in.Read(part[:])
		_, _ = b.Write(part[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// parseEvent finds the event in a body of at most so many bytes, after its key was read. Errors never quote it.
func parseEvent(body []byte, most int64) ([]byte, error) {
	if body == nil || int64(len(body)) > most {
		return nil, errLarge
	}
	members, ok := object.Members(body)
	if !ok {
		return nil, errObject
	}
	var event []byte
	keys := 0
	for name, value := range members {
		switch name {
		case "key":
			keys++
		case "event":
			if event != nil {
				return nil, errObject
			}
			event = value
		default:
			return nil, errObject
		}
	}
	if keys != 1 {
		return nil, errObject
	}
	if len(event) == 0 || event[0] != '{' {
		return nil, errors.New("event is not an object")
	}
	return event, nil
}

// parsePerson splits a person's body into events, after its key was read. A body that cannot be split gives one invalid
// event.
func parsePerson(key string, body []byte) (events []device.Event) {
	var r personRequest
	err := errLarge
	if body != nil {
		err = decode(body, &r)
	}
	if err == nil && (r.Key != key || r.Events == nil) {
		err = errObject
	}
	if err != nil {
		return []device.Event{device.EventFunc(func() ([]byte, error) { return nil, err })}
	}
	for _, text := range r.Events {
		events = append(events, device.EventFunc(func() ([]byte, error) { return text, nil }))
	}
	return events
}
