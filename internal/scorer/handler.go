package scorer

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/model"
)

//go:embed openapi.json
var openAPI []byte // the description of the interface, version 3.1

// Headers of an answer that say by which model it is.
const (
	modelHeader   = "Panlearn-Model"         // the ETag of the model, without quotes
	versionHeader = "Panlearn-Model-Version" // its model_version
	invalidHeader = "Panlearn-Invalid"       // how many events do not fit the declaration, and have no score
)

// A route is a method, a path, and what serves it.
type route struct {
	method, path string
	open         bool // needs no token
	serve        http.HandlerFunc
}

func (s *Scorer) table() []route {
	return []route{
		{http.MethodGet, "/v1/models", false, s.getModels},
		{http.MethodGet, "/v1/models/{task}", false, s.getModel},
		{http.MethodPost, "/v1/models/{task}/predictions", false, s.postEvents},
		{http.MethodGet, "/v1/openapi.json", true, func(w http.ResponseWriter, _ *http.Request) { answer(w, openAPI) }},
	}
}

func (s *Scorer) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, at := range s.table() {
		mux.HandleFunc(at.method+" "+at.path, func(w http.ResponseWriter, q *http.Request) {
			if !at.open {
				if status, why := s.Access.Refuse(w, q, "scorer"); status != 0 {
					refuse(w, status, why)
					return
				}
			}
			at.serve(w, q)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "no such path here: /v1/openapi.json describes what there is")
	})
	return mux
}

// slowest bounds the time for a body, and that for an answer.
const slowest = 30 * time.Second

// ServeHTTP serves the interface; openapi.json describes it.
func (s *Scorer) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	began, seen := time.Now(), &watched{ResponseWriter: w, status: http.StatusOK}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(began.Add(slowest)) // a writer that cannot set it is a test's
	_ = control.SetWriteDeadline(began.Add(2 * slowest))
	w.Header().Set("Cache-Control", "no-store") // of all that does not say otherwise
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.mux.ServeHTTP(seen, q)
	if s.Observer.Request != nil {
		s.Observer.Request(seen.status, time.Since(began))
	}
}

// A watched remembers the status of an answer.
type watched struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *watched) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// refuse answers with a reason, which names nothing of a body.
func refuse(w http.ResponseWriter, status int, why string) {
	text, _ := json.Marshal(map[string]string{"error": why}) // a string has a form in JSON
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a reader that has gone is not told
}

// answer answers with a JSON text.
func answer(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// A summary names the model of a task that is served.
type summary struct {
	Task         string          `json:"task"`
	TaskHash     any             `json:"task_hash"`
	Round        uint64          `json:"round"`
	ModelVersion uint64          `json:"model_version"`
	ETag         string          `json:"etag"`
	Loss         string          `json:"loss"`
	Classes      []string        `json:"classes,omitempty"`
	Privacy      model.Statement `json:"privacy"`
}

func (s *Scorer) getModels(w http.ResponseWriter, _ *http.Request) {
	list := []summary{}
	for _, at := range s.slots {
		m := at.now.Load()
		list = append(list, summary{m.Task, m.TaskHash, m.Round, m.ModelVersion, m.tag, m.Loss, m.Classes, m.Privacy})
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]any{"models": list}); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer(w, text.Bytes())
}

// of returns the model that a request names; where there is none, it has refused.
func (s *Scorer) of(w http.ResponseWriter, q *http.Request) *loaded {
	m := s.find(q.PathValue("task"))
	if m == nil {
		refuse(w, http.StatusNotFound, "no model of that task is served here: "+s.tasks())
		return nil
	}
	w.Header().Set(modelHeader, m.tag)
	w.Header().Set(versionHeader, strconv.FormatUint(m.ModelVersion, 10))
	return m
}

func (s *Scorer) getModel(w http.ResponseWriter, q *http.Request) {
	m := s.of(w, q)
	if m == nil {
		return
	}
	tag := `"` + m.tag + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "no-cache") // keep it, and ask whether it is the newest
	for _, have := range q.Header.Values("If-None-Match") {
		for one := range strings.SplitSeq(have, ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
	}
	answer(w, m.doc)
}

// postEvents scores the events of a body.
func (s *Scorer) postEvents(w http.ResponseWriter, q *http.Request) {
	m := s.of(w, q)
	if m == nil {
		return
	}
	kind, _, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	form, ok := forms[kind]
	if err != nil || !ok {
		refuse(w, http.StatusUnsupportedMediaType, "want the Content-Type application/json, application/jsonl, text/csv, "+
			"or of a task of vectors text/plain with lines of libsvm")
		return
	}
	cut, err := threshold(q)
	if err == nil {
		_, err = m.asIs.Cut(cut)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d bodies are read already: come again", MaxAtOnce))
		return
	}
	r, err := form(m, http.MaxBytesReader(w, q.Body, MaxBody))
	if err == nil {
		err = r.score(cut)
	}
	var refused *refusal
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a body has at most %d bytes", MaxBody))
	case errors.As(err, &refused):
		refuse(w, refused.status, refused.why)
	case err != nil:
		refuse(w, http.StatusBadRequest, err.Error())
	default:
		w.Header().Set(invalidHeader, strconv.FormatInt(r.invalid, 10))
		w.Header().Set("Content-Type", r.kind)
		if s.Observer.Events != nil {
			s.Observer.Events(m.Task, int(r.rows-r.invalid), int(r.invalid))
		}
		_, _ = w.Write(r.out.Bytes())
	}
}

// threshold reads the parameter threshold; nil where there is none.
func threshold(q *http.Request) (*float64, error) {
	for name := range q.URL.Query() {
		if name != "threshold" {
			return nil, fmt.Errorf("parameter %q: there is threshold alone", name)
		}
	}
	text := q.URL.Query().Get("threshold")
	if text == "" {
		return nil, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) {
		return nil, errors.New("threshold: want a number")
	}
	return &x, nil
}
