package scorer

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
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
		{http.MethodGet, "/v1/openapi.json", true, func(w http.ResponseWriter, _ *http.Request) { write(w, openAPI) }},
	}
}

// crossOrigin refuses requests that a page of another origin makes a browser send.
var crossOrigin = http.NewCrossOriginProtection()

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
			if crossOrigin.Check(q) != nil {
				refuse(w, http.StatusForbidden, "pages of other origins may not post here")
				return
			}
			at.serve(w, q)
		})
	}
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
	httpaccess.Serve(s.mux, seen, q, refuse)
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

// refuse writes a reason, which names nothing of a body.
func refuse(w http.ResponseWriter, status int, why string) {
	text, _ := json.Marshal(map[string]string{"error": why}) // a string has a form in JSON
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the reader may have gone
}

// write writes a JSON text.
func write(w http.ResponseWriter, text []byte) {
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
		if m == nil {
			continue
		}
		list = append(list, summary{m.Task, m.TaskHash, m.Round, m.ModelVersion, m.tag, m.Loss, m.Classes, m.Privacy})
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]any{"models": list}); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	write(w, text.Bytes())
}

// of returns the model that a request names; where there is none, it has refused.
func (s *Scorer) of(w http.ResponseWriter, q *http.Request) *loaded {
	m, more := s.find(q.PathValue("task"))
	switch {
	case m == nil && more:
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Every/time.Second)+1))
		refuse(w, http.StatusServiceUnavailable, "no model of that task is served here yet: a source has none so far")
		return nil
	case m == nil:
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
	w.Header().Set("Cache-Control", "no-cache") // keep it, and check whether it is the newest
	for _, have := range q.Header.Values("If-None-Match") {
		for one := range strings.SplitSeq(have, ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
	}
	write(w, m.doc)
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
	room := &share{of: s.room}
	defer room.release()
	text, err := room.body(q)
	var r *reply
	if err == nil {
		r, err = form(m, text)
	}
	out := &answer{share: room, before: cap(text)}
	if err == nil {
		err = r.score(out, cut)
	}
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		reject(w, refused)
	case err != nil:
		refuse(w, http.StatusBadRequest, err.Error())
	default:
		w.Header().Set(invalidHeader, strconv.FormatInt(r.invalid, 10))
		w.Header().Set("Content-Type", r.kind)
		if s.Observer.Events != nil {
			s.Observer.Events(m.Task, int(r.rows-r.invalid), int(r.invalid))
		}
		_, _ = w.Write(out.text)
	}
}

// reject writes a refusal, and the header that belongs to its status.
func reject(w http.ResponseWriter, r *refusal) {
	switch {
	case r == errPacked:
		w.Header().Set("Accept-Encoding", "identity")
	case r.status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case r.status == http.StatusRequestTimeout || r.status == http.StatusRequestEntityTooLarge:
		w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	refuse(w, r.status, r.why)
}

// threshold reads the parameter threshold; nil where there is none. It refuses any other, one that comes twice, and one
// that is no number.
func threshold(q *http.Request) (*float64, error) {
	query, err := url.ParseQuery(q.URL.RawQuery)
	if err != nil {
		return nil, errors.New("the query cannot be read: want threshold=NUMBER, or nothing")
	}
	for name := range query {
		if name != "threshold" {
			return nil, errors.New("an unknown parameter: there is threshold alone")
		}
	}
	given := query["threshold"]
	if len(given) == 0 {
		return nil, nil
	}
	x, err := strconv.ParseFloat(given[0], 64)
	if err != nil || len(given) > 1 {
		return nil, errors.New("threshold: want one number")
	}
	return &x, nil
}
