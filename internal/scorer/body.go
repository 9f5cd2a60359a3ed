package scorer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/object"
	"github.com/panlearn/panlearn/learner/task/source"
)

// A refusal holds the reason why a body is not scored.
type refusal struct {
	status int
	why    string
}

// Error returns the reason.
func (r *refusal) Error() string { return r.why }

// A reply is a body that was read, and what is answered.
type reply struct {
	predictor     model.Predictor
	rows, invalid int64
	events        iter.Seq2[task.Row, error]
	close         func() error // of what events reads; nil: nothing

	format string // of model.Table
	kind   string // the Content-Type
	shape  shape
	out    bytes.Buffer
}

// A shape selects how the lines of predictions are put together.
type shape int

const (
	lines  shape = iota // one after the other
	list                // a JSON list of them
	single              // the only one
)

// forms read a body by its Content-Type.
var forms = map[string]func(*loaded, io.Reader) (*reply, error){
	"application/json": func(m *loaded, body io.Reader) (*reply, error) { return ofObjects(m, body, "application/json") },
	"application/jsonl": func(m *loaded, body io.Reader) (*reply, error) {
		return ofObjects(m, body, "application/jsonl")
	},
	"application/x-ndjson": func(m *loaded, body io.Reader) (*reply, error) {
		return ofObjects(m, body, "application/x-ndjson")
	},
	"text/csv": func(m *loaded, body io.Reader) (*reply, error) {
		if m.vectors {
			return nil, &refusal{http.StatusUnsupportedMediaType, "the events of this task are vectors, which have no csv"}
		}
		return ofText(m.tables, body, model.CSV, "text/csv")
	},
	"text/plain": func(m *loaded, body io.Reader) (*reply, error) {
		if m.asIs.Spec().Events.Format != task.LIBSVM {
			return nil, &refusal{http.StatusUnsupportedMediaType, "text/plain is libsvm, which is not the format of this task"}
		}
		return ofText(m.asIs, body, model.CSV, "text/csv")
	},
}

// ofText reads lines.
func ofText(p model.Predictor, body io.Reader, format, kind string) (*reply, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	reader, err := source.New(bytes.NewReader(text), p.Features)
	if err != nil {
		return nil, err
	}
	return &reply{predictor: p, events: reader.All(), close: reader.Close, format: format, kind: kind}, nil
}

// ofObjects reads JSON objects: one, a list of them, or one after the other.
func ofObjects(m *loaded, body io.Reader, kind string) (*reply, error) {
	r := &reply{predictor: m.objects, format: model.JSONL, kind: kind, shape: lines}
	var texts []json.RawMessage
	decoder := json.NewDecoder(body)
	for {
		var one json.RawMessage
		err := decoder.Decode(&one)
		var large *http.MaxBytesError
		switch {
		case err == io.EOF:
			return r, r.read(m, texts)
		case errors.As(err, &large):
			return nil, err
		case err != nil:
			return nil, &refusal{http.StatusBadRequest, "the body is not JSON, or breaks off"}
		case kind == "application/json" && (len(texts) > 0 || r.shape != lines):
			return nil, &refusal{http.StatusBadRequest, "something follows the JSON text: several events are a list, or application/jsonl"}
		case kind == "application/json" && one[0] == '[':
			r.shape = list
			if err := json.Unmarshal(one, &texts); err != nil {
				return nil, &refusal{http.StatusBadRequest, "no JSON list of objects"}
			}
		default:
			if kind == "application/json" {
				r.shape = single
			}
			texts = append(texts, one)
		}
		if len(texts) > MaxEvents {
			return nil, errMany
		}
	}
}

var errMany = &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("a body has at most %d events", MaxEvents)}

// read makes rows of JSON texts.
func (r *reply) read(m *loaded, texts []json.RawMessage) error {
	if len(texts) == 0 && r.shape != list {
		return &refusal{http.StatusBadRequest, "the body has no event"}
	}
	r.events = func(yield func(task.Row, error) bool) {
		for i, text := range texts {
			row, err := objectRow(m, text)
			row.Line = int64(i + 1)
			var bad *task.RowError
			if errors.As(err, &bad) {
				bad.Line = row.Line
			} else if err != nil {
				err = &task.RowError{Line: row.Line, Reason: err.Error()}
			}
			if !yield(row, err) {
				return
			}
		}
	}
	return nil
}

func objectRow(m *loaded, text []byte) (task.Row, error) {
	if m.vectors {
		return object.Vector(text)
	}
	return object.Event(text, m.objects.Features)
}

// score writes the predictions. Of a single event that does not fit the declaration it says why, as a refusal.
func (r *reply) score(threshold *float64) error {
	table, err := model.NewTable(&r.out, r.format, r.predictor)
	if err != nil {
		return err
	}
	var unfit error
	counted := func(yield func(task.Row, error) bool) {
		for row, err := range r.events {
			if r.rows++; r.rows > MaxEvents {
				yield(row, errMany)
				return
			}
			if !yield(row, err) {
				return
			}
		}
	}
	count, err := r.predictor.Score(counted, table, model.ScoreOptions{Threshold: threshold,
		Unfit: func(bad *task.RowError) { unfit = bad }})
	r.rows, r.invalid = count.Rows, count.Invalid
	if r.close != nil {
		err = errors.Join(err, r.close())
	}
	switch {
	case err != nil:
		return err
	case r.shape == single && unfit != nil:
		return &refusal{http.StatusUnprocessableEntity, unfit.Error()}
	case r.shape == single:
		r.out.Truncate(r.out.Len() - 1) // the end of the line
	case r.shape == list:
		text := bytes.TrimSuffix(r.out.Bytes(), []byte("\n"))
		text = bytes.ReplaceAll(text, []byte("\n"), []byte(",\n")) // no prediction has one within
		r.out = *bytes.NewBuffer(append(append([]byte("["), text...), ']', '\n'))
	}
	return nil
}
