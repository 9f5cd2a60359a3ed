package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/panlearn/panlearn/learner/task"
)

var (
	errNoObject = errors.New("an event is not an object")
	errInexact  = errors.New("a whole number beyond 2^53")
)

// A vectorEvent is an event of a task whose features are a vector. Without an index, all values are given.
type vectorEvent struct {
	Index []int32         `json:"index"` // from 0
	Value values          `json:"value"`
	Label json.RawMessage `json:"label"`
}

// values are numbers none of which is a whole number beyond 2^53.
type values []float64

// UnmarshalJSON implements json.Unmarshaler.
func (v *values) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, (*[]float64)(v)); err != nil {
		return err
	}
	for one := range bytes.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("[], \t\r\n", r) }) {
		if inexact(one) {
			return errInexact
		}
	}
	return nil
}

// Vector reads the text of one event of a task whose features are a vector: an object of value, label and, where not
// all values are given, index, which counts from 0. A label may be absent. Errors never quote the text.
func Vector(text []byte) (task.Row, error) {
	var v vectorEvent
	if !Is(text) {
		return task.Row{}, errNoObject
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	switch err := d.Decode(&v); {
	case errors.Is(err, errInexact):
		return task.Row{}, errInexact
	case err != nil:
		return task.Row{}, errors.New("not an object of index, value and label")
	}
	if _, err := d.Token(); err != io.EOF {
		return task.Row{}, errors.New("something follows the object")
	}
	if inexact(v.Label) {
		return task.Row{}, errInexact
	}
	row := task.Row{Line: 1, Index: v.Index, Value: v.Value, Label: strings.TrimSpace(string(v.Label))}
	if strings.HasPrefix(row.Label, `"`) {
		if err := json.Unmarshal(v.Label, &row.Label); err != nil {
			return task.Row{}, errors.New("label is not a number, a string, true or false")
		}
	}
	return row, nil
}
