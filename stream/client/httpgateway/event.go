package httpgateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/stream/client/consent"
)

// MaxKey is the length of the longest key, in bytes.
const MaxKey = 256

// A request is the body of a POST.
type request struct {
	Key   string          `json:"key"`
	Event json.RawMessage `json:"event"`
}

// parseRequest reads a body. Errors never quote it.
func parseRequest(body []byte) (request, error) {
	var r request
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, errors.New("the body is not one JSON object with the members key and event alone")
	}
	if _, err := d.Token(); err != io.EOF {
		return r, errors.New("something follows the JSON object in the body")
	}
	if r.Key == "" || len(r.Key) > MaxKey {
		return r, fmt.Errorf("key has %d bytes: want 1 to %d", len(r.Key), MaxKey)
	}
	if len(r.Event) == 0 || r.Event[0] != '{' {
		return r, errors.New("event is not an object")
	}
	return r, nil
}

// A mapper turns events into examples, when the task is known.
type mapper struct {
	mu        sync.Mutex
	agreement *consent.Agreement
	features  *task.FeatureMap // of events in JSON
}

// use takes the agreement, once.
func (m *mapper) use(agreement *consent.Agreement) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agreement != nil {
		return nil
	}
	features := agreement.Features
	if agreement.Spec.Features.Vector == nil {
		spec, err := agreement.Spec.ReadAs(task.JSONL)
		if err != nil {
			return err
		}
		if features, err = spec.Compile(); err != nil {
			return err
		}
	}
	m.agreement, m.features = agreement, features
	return nil
}

// known is the agreement, after use.
func (m *mapper) known() *consent.Agreement {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agreement
}

// example maps an event. The error says why it does not fit, without its content.
func (m *mapper) example(event []byte) (convex.Example, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row, err := m.row(event)
	if err != nil {
		return convex.Example{}, err
	}
	var e convex.Example
	if err := m.features.Map(row, &e); err != nil {
		return convex.Example{}, err
	}
	return e, m.agreement.Valid(e)
}

func (m *mapper) row(event []byte) (task.Row, error) {
	if m.agreement.Spec.Features.Vector != nil {
		return vectorRow(event)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, event); err != nil {
		return task.Row{}, errors.New("not an object")
	}
	reader, err := source.New(&line, m.features)
	if err != nil {
		return task.Row{}, err
	}
	row, err := reader.Next()
	return row, errors.Join(err, reader.Close())
}

// A vectorEvent is an event of a task whose features are a vector. Without an index, all values are given.
type vectorEvent struct {
	Index []int32         `json:"index"` // from 0
	Value []float64       `json:"value"`
	Label json.RawMessage `json:"label"`
}

func vectorRow(event []byte) (task.Row, error) {
	var v vectorEvent
	d := json.NewDecoder(bytes.NewReader(event))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return task.Row{}, errors.New("not an object of index, value and label")
	}
	row := task.Row{Line: 1, Index: v.Index, Value: v.Value, Label: strings.TrimSpace(string(v.Label))}
	if strings.HasPrefix(row.Label, `"`) {
		if err := json.Unmarshal(v.Label, &row.Label); err != nil {
			return task.Row{}, errors.New("label is not a number, a string, true or false")
		}
	}
	return row, nil
}

// invalid is no event of any task: the client sends the zero vector for it.
func invalid() convex.Example { return convex.Example{Label: math.NaN()} }
