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

func refusef(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// A reply is a body that was read, and what is answered.
type reply struct {
	predictor     model.Predictor
	rows, invalid int64
	events        iter.Seq2[task.Row, error]
	close         func() error // of what events reads; nil: nothing

	format string // of model.Table
	kind   string // the Content-Type
	shape  shape
}

// A shape selects how the lines of predictions are put together.
type shape int

const (
	lines  shape = iota // one after the other
	list                // a JSON list of them
	single              // the only one
)

// forms read a body by its Content-Type.
var forms = map[string]func(*loaded, []byte) (*reply, error){
	"application/json":     ofJSON,
	"application/jsonl":    func(m *loaded, text []byte) (*reply, error) { return ofLines(m, text, "application/jsonl") },
	"application/x-ndjson": func(m *loaded, text []byte) (*reply, error) { return ofLines(m, text, "application/x-ndjson") },
	"text/csv": func(m *loaded, text []byte) (*reply, error) {
		if m.vectors {
			return nil, refusef(http.StatusUnsupportedMediaType, "the events of this task are vectors, which have no csv")
		}
		return ofText(m.tables, text, model.CSV, "text/csv")
	},
	"text/plain": func(m *loaded, text []byte) (*reply, error) {
		if m.asIs.Spec().Events.Format != task.LIBSVM {
			return nil, refusef(http.StatusUnsupportedMediaType, "text/plain is libsvm, which is not the format of this task")
		}
		return ofText(m.asIs, text, model.CSV, "text/csv")
	},
}

// ofText reads lines as `learner predict` does.
func ofText(p model.Predictor, text []byte, format, kind string) (*reply, error) {
	reader, err := source.New(bytes.NewReader(text), p.Features)
	if err != nil {
		return nil, err
	}
	return &reply{predictor: p, events: reader.All(), close: reader.Close, format: format, kind: kind}, nil
}

// ofLines reads JSON objects, one a line.
func ofLines(m *loaded, text []byte, kind string) (*reply, error) {
	if !m.vectors {
		return ofText(m.objects, text, model.JSONL, kind)
	}
	r := &reply{predictor: m.objects, format: model.JSONL, kind: kind}
	r.events = func(yield func(task.Row, error) bool) {
		n := int64(0)
		for line := range bytes.Lines(text) {
			n++
			if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 && !yield(objectRow(m, line, n)) {
				return
			}
		}
	}
	return r, nil
}

// ofJSON reads a JSON object, or a list of them.
func ofJSON(m *loaded, text []byte) (*reply, error) {
	r := &reply{predictor: m.objects, format: model.JSONL, kind: "application/json", shape: single}
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		r.shape = list
	}
	r.events = func(yield func(task.Row, error) bool) {
		decoder := json.NewDecoder(bytes.NewReader(text))
		if r.shape == list {
			_, _ = decoder.Token() // its bracket
		}
		var one json.RawMessage // each in the memory of the one before
		for n := int64(1); r.shape == single && n == 1 || r.shape == list && decoder.More(); n++ {
			if decoder.Decode(&one) != nil {
				yield(task.Row{}, errNotJSON)
				return
			}
			if !yield(objectRow(m, one, n)) {
				return
			}
		}
		if end, err := decoder.Token(); r.shape == list && (err != nil || end != json.Delim(']')) {
			yield(task.Row{}, errNotJSON)
			return
		} else if r.shape == list {
			_, err = decoder.Token()
			if err == io.EOF {
				return
			}
		} else if err == io.EOF {
			return
		}
		yield(task.Row{}, refusef(http.StatusBadRequest,
			"something follows the JSON text: several events are a list, or application/jsonl"))
	}
	return r, nil
}

var (
	errNotJSON = &refusal{http.StatusBadRequest, "the body is not JSON, or breaks off"}
	errMany    = &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("a body has at most %d events", maxEvents)}
)

// objectRow makes a row of the text of an event at a place of the body. Its error is a *task.RowError.
func objectRow(m *loaded, text []byte, at int64) (row task.Row, err error) {
	switch most := m.asIs.Spec().Events.MaxLine; {
	case !m.vectors:
		row, err = object.Event(text, m.objects.Features)
	case len(text) > most:
		err = fmt.Errorf("longer than events.max_line, %d bytes", most)
	default:
		row, err = object.Vector(text)
	}
	row.Line = at
	var bad *task.RowError
	if errors.As(err, &bad) {
		bad.Line = at
	} else if err != nil {
		err = &task.RowError{Line: at, Reason: err.Error()}
	}
	return row, err
}

// score writes the predictions to an answer. Of a single event that does not fit the declaration it says why, as a
// refusal.
func (r *reply) score(out *answer, threshold *float64) error {
	out.shape = r.shape
	table, err := model.NewTable(out, r.format, r.predictor)
	if err != nil {
		return err
	}
	var unfit error
	counted := func(yield func(task.Row, error) bool) {
		for row, err := range r.events {
			if r.rows++; r.rows > maxEvents {
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
	}
	return out.end()
}
