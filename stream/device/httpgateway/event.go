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
	"github.com/panlearn/panlearn/stream/device/consent"
)

// maxKey is the length of the longest key, in bytes.
const maxKey = task.MaxKey

// A poster whose key can be read takes part, so what else is wrong with a body makes its event invalid, and is
// told locally.
var (
	errNoKey = fmt.Errorf("the body has no member key at the top level of a JSON object, a string of 1 to %d bytes",
		maxKey)
	errLarge  = errors.New("the body is too large")
	errObject = errors.New(
		"the body is not one JSON object with the members key and event alone, each once; of a task that protects people, key and events")
)

// readRequest reads a body to its end, of which it holds no more than most bytes, or of a larger one up to its key.
func readRequest(in io.Reader, most int64) (key string, body []byte, err error) {
	scan := source.Member{Name: "key", Most: maxKey}
	var part [16 << 10]byte
	large := false
	for err == nil && !(large && scan.Key() != "") {
		var n int
		n, err = in.Read(part[:])
		_, _ = scan.Write(part[:n])
		if large = large || int64(len(body)+n) > most; large {
			body = nil
		} else {
			body = append(body, part[:n]...)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return scan.Key(), body, err
}

// parseEvent finds the event in a body of at most so many bytes whose key was read. Errors never quote it.
func parseEvent(body []byte, most int64) ([]byte, error) {
	if body == nil || int64(len(body)) > most {
		return nil, errLarge
	}
	members, ok := source.Members(body)
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

// decode reads a body that is one object with the members of r alone.
func decode(body []byte, r any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return errObject
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON object in the body")
	}
	return nil
}

// A mapper turns events into examples, when the task is known.
type mapper struct {
	mu        sync.Mutex
	agreement *consent.Agreement // written once, and read after use
	features  *task.FeatureMap   // of events in JSON
	most      int64              // bytes of a body that is parsed; of a person's, of an event in it
	items     int                // events of a person that enter a report; 0: the task is about single events
	decoy     []byte             // an event that takes as long to parse as any of its columns does
	onMap     func()             // what a test does before a person's row is mapped
	onParse   func(size int)     // what a test does before an event is parsed
}

// What a body may have beside its event, and a vector for each of its coordinates: an index, a number with all of its
// digits, and blanks. Parsing is work on a tick, and a larger body would show by when its report leaves.
const (
	besideEvent   = 4 << 10
	perCoordinate = 64
)

// Check refuses a task whose reports a gateway does not make.
func Check(a *consent.Agreement) error {
	if a.Spec.Silo != nil {
		return consent.Refuse("silo", "declared",
			"none: one posted row that cannot be read would change others of its block; "+
				"publish files with ingest publish --data, or blocks from Go with PublishBlock")
	}
	return nil
}

// use takes the agreement, once.
func (m *mapper) use(agreement *consent.Agreement) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agreement != nil {
		return nil
	}
	if err := Check(agreement); err != nil {
		return err
	}
	features := agreement.Features
	most := int64(besideEvent)
	if v := agreement.Spec.Features.Vector; v != nil {
		most += perCoordinate * int64(v.Dimension)
	} else {
		most += int64(agreement.Spec.Events.MaxLine)
		declared := *agreement.Spec
		declared.User, declared.Privacy.Unit = nil, "" // a request names its person
		spec, err := declared.ReadAs(task.JSONL)
		if err != nil {
			return err
		}
		spec.Events.Key = "" // the request has it
		if features, err = spec.Compile(); err != nil {
			return err
		}
	}
	if agreement.Spec.ByUser() {
		m.items = agreement.Spec.User.Items
	}
	m.agreement, m.features, m.most, m.decoy = agreement, features, most, decoyOf(agreement.Spec)
	return nil
}

// known returns the agreement, after use.
func (m *mapper) known() *consent.Agreement {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agreement
}

// example maps the event of a body whose key was read, after use. The error says why it does not fit, without its
// content.
func (m *mapper) example(key string, body []byte) (convex.Example, error) {
	event, err := parseEvent(body, m.most)
	if err != nil {
		return convex.Example{}, err
	}
	return m.parsedEvent(event)
}

// parsedEvent parses and maps an event, after use.
func (m *mapper) parsedEvent(event []byte) (convex.Example, error) {
	if int64(len(event)) > m.most {
		return convex.Example{}, errLarge
	}
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
	if m.onParse != nil {
		m.onParse(len(event))
	}
	if m.agreement.Spec.Features.Vector != nil {
		return vectorRow(event)
	}
	return source.Object(event, m.features)
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

// invalid returns an example that is no event of any task: the client sends the zero vector for it.
func invalid() convex.Example { return convex.Example{Label: math.NaN()} }
