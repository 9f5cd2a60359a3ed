package model

import (
	"bytes"
	"encoding/json"
)

// Rows are the weights of a model, a row for each score. In JSON one row is a list, several are a list of lists.
type Rows [][]float64

// MarshalJSON writes a single row without its outer list.
func (r Rows) MarshalJSON() ([]byte, error) {
	if len(r) == 1 {
		return json.Marshal(r[0])
	}
	return json.Marshal([][]float64(r))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Rows) UnmarshalJSON(data []byte) error {
	if rest, ok := bytes.CutPrefix(bytes.TrimSpace(data), []byte("[")); ok && bytes.HasPrefix(bytes.TrimSpace(rest), []byte("[")) {
		return json.Unmarshal(data, (*[][]float64)(r))
	}
	*r = Rows{nil}
	return json.Unmarshal(data, &(*r)[0])
}

// Constants are the intercepts of a model, one for each score. In JSON a single one is a number, several are a list.
type Constants []float64

// MarshalJSON writes a single constant as a number.
func (c Constants) MarshalJSON() ([]byte, error) {
	if len(c) == 1 {
		return json.Marshal(c[0])
	}
	return json.Marshal([]float64(c))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Constants) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return json.Unmarshal(data, (*[]float64)(c))
	}
	*c = Constants{0}
	return json.Unmarshal(data, &(*c)[0])
}
