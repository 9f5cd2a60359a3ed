package device

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/object"
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
		if object.Inexact(one) {
			return errInexact
		}
	}
	return nil
}

// vectorRow reads the text of an event of a task whose features are a vector. Errors never quote it.
func vectorRow(text []byte) (task.Row, error) {
	var v vectorEvent
	if !object.Is(text) {
		return task.Row{}, errObject
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
	if object.Inexact(v.Label) {
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
