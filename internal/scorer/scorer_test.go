package scorer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

const secret = "do-not-repeat-me"

// file is a task of two columns.
const file = `
version: 1
name: prices
events: {format: csv, columns: [age, job, y]}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100, scale: unit}
    - {column: job, kind: categorical, vocabulary: [a, b]}
label: {column: y, positive: [yes], negative: [no]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`

// vectors is a task of three numbers.
const vectors = `
version: 1
name: vectors
events: {format: libsvm}
features: {vector: {dimension: 3, min: -1, max: 1, scale: raw}}
label: {positive: [1], negative: [-1]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 600}
`

// snapshot returns the document of a model whose parameters are theta.
func snapshot(t *testing.T, text string, version uint64, theta ...float64) []byte {
	t.Helper()
	spec, err := task.Parse([]byte(text), nil)
	must(t, err)
	s, err := model.Of(spec, theta)
	must(t, err)
	s.ModelVersion, s.Round = version, version
	s.Privacy.HonestFraction = accounting.One
	doc, err := json.Marshal(s)
	must(t, err)
	return doc
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A shelf is a source whose document a test changes.
type shelf struct {
	doc []byte
	err error
}

func (s *shelf) source(name string) Source {
	return Source{Name: name, Read: func(context.Context) ([]byte, error) { return s.doc, s.err }}
}

// A site is a scorer of two tasks, with its log.
type site struct {
	*Scorer
	shelf shelf
	log   bytes.Buffer
	seen  []int // events and invalid ones, as observed
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	s.shelf.doc = snapshot(t, file, 1, 2, 0.5, -1, 0.125)
	other := shelf{doc: snapshot(t, vectors, 1, 1, 2, 3, 0.5)}
	var err error
	s.Scorer, err = New(t.Context(), Config{Sources: []Source{s.shelf.source("shelf"), other.source("other")}, Every: time.Second,
		Logger:   slog.New(slog.NewTextHandler(&s.log, nil)),
		Observer: Observer{Events: func(_ string, scored, invalid int) { s.seen = append(s.seen, scored, invalid) }}})
	must(t, err)
	return s
}

func (s *site) do(method, path, kind string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, "http://127.0.0.1"+path, body)
	q.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, q)
	return w
}

func (s *site) post(name, kind, body string) *httptest.ResponseRecorder {
	return s.do(http.MethodPost, "/v1/models/"+name+"/predictions", kind, strings.NewReader(body))
}

// TestEveryBodyScoresTheSame: one event as an object, in a list, as a line, in csv with a header in any order, and of a
// vector in all its forms, has the score that follows from the weights.
func TestEveryBodyScoresTheSame(t *testing.T) {
	s := newSite(t)
	const object = `{"job": "b", "age": 50, "more": [1]}` // .5*2 - 1 + .125
	for _, c := range []struct{ task, kind, body, want string }{
		{"prices", "application/json", object, `{"line":1,"score":0.125,"probability":0.5312093733737563,"class":"yes"}`},
		{"prices", "application/json", "[" + object + `,{"age":"` + secret + `","job":"a"}]`,
			`[{"line":1,"score":0.125,"probability":0.5312093733737563,"class":"yes"},` + "\n" + `{"line":2,"score":null}]` + "\n"},
		{"prices", "application/json", "[]", "[]\n"},
		{"prices", "application/jsonl", object + "\n" + object + "\n",
			`{"line":1,"score":0.125,"probability":0.5312093733737563,"class":"yes"}` + "\n" +
				`{"line":2,"score":0.125,"probability":0.5312093733737563,"class":"yes"}` + "\n"},
		{"prices", "text/csv; charset=utf-8", "job,age\nb,50\n", "line,score,probability,class\n2,0.125,0.5312093733737563,yes\n"},
		{"vectors", "application/json", `{"value": [0.5, 0, -0.5]}`,
			`{"line":1,"score":-0.5,"probability":0.37754066879814546,"class":"-1"}`},
		{"vectors", "application/json", `{"index": [0, 2], "value": [0.5, -0.5], "label": 1}`,
			`{"line":1,"score":-0.5,"probability":0.37754066879814546,"class":"-1"}`},
		{"vectors", "text/plain", "1:0.5 3:-0.5\n", "line,score,probability,class\n1,-0.5,0.37754066879814546,-1\n"},
	} {
		got := s.post(c.task, c.kind, c.body)
		if got.Code != http.StatusOK || got.Body.String() != c.want {
			t.Errorf("%s %s %q: %d %q, want %q", c.task, c.kind, c.body, got.Code, got.Body, c.want)
		}
		if got.Header().Get("Cache-Control") != "no-store" || got.Header().Get(versionHeader) != "1" {
			t.Errorf("headers: %v", got.Header())
		}
	}
	if got := s.do(http.MethodPost, "/v1/models/prices/predictions?threshold=0.6", "application/json",
		strings.NewReader(object)); !strings.Contains(got.Body.String(), `"class":"no"`) {
		t.Errorf("above .6: %s", got.Body)
	}
	if want := []int{1, 0, 1, 1, 0, 0, 2, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0}; !slices.Equal(s.seen, want) {
		t.Errorf("observed %v, want %v", s.seen, want)
	}
}

// TestRefusalsAreDescribed: each refusal has its status, which openapi.json describes, and neither it nor the log repeats
// what was posted.
func TestRefusalsAreDescribed(t *testing.T) {
	var d struct {
		Paths map[string]map[string]struct {
			Security  *[]any         `json:"security"`
			Responses map[string]any `json:"responses"`
		} `json:"paths"`
	}
	must(t, json.Unmarshal(openAPI, &d))
	s := newSite(t)
	var described, served []string
	for path, operations := range d.Paths {
		for method, o := range operations {
			described = append(described, strings.ToUpper(method)+" "+path+strconv.FormatBool(o.Security != nil))
		}
	}
	for _, r := range s.table() {
		served = append(served, r.method+" "+r.path+strconv.FormatBool(r.open))
	}
	slices.Sort(described)
	slices.Sort(served)
	if !slices.Equal(described, served) {
		t.Errorf("described: %v\nserved: %v", described, served)
	}
	closed := newSite(t)
	var err error
	closed.Access, err = httpaccess.Token("token-of-the-scorer")
	must(t, err)
	many := strings.Repeat(`{"age":1,"job":"a"}`+"\n", maxEvents+1)
	answers := map[int]*httptest.ResponseRecorder{}
	for want, got := range map[int]*httptest.ResponseRecorder{
		400: s.post("prices", "application/json", `{"age": "`+secret),
		401: closed.post("prices", "application/json", `{"age":1}`),
		404: s.post("other", "application/json", `{}`),
		413: s.post("prices", "application/jsonl", many),
		415: s.post("prices", "text/html", secret),
		422: s.post("prices", "application/json", `{"age":"`+secret+`","job":"a"}`),
	} {
		answers[want] = got
		if got.Code != want {
			t.Errorf("status %d, want %d: %s", got.Code, want, got.Body)
		}
	}
	answers[403] = s.do(http.MethodPost, "/v1/models/prices/predictions", "application/json", strings.NewReader("{}"), "Host", "")
	q := httptest.NewRequest(http.MethodPost, "http://evil.example/v1/models/prices/predictions", nil)
	answers[403] = httptest.NewRecorder()
	s.ServeHTTP(answers[403], q)
	leave := s.fill(t, 0, 0)
	answers[503] = s.post("prices", "application/json", event)
	leave()
	answers[408] = s.do(http.MethodPost, "/v1/models/prices/predictions", "application/json", stalled{})
	if got := s.do(http.MethodPost, "/v1/models/prices/predictions", "application/json", strings.NewReader(event),
		"Sec-Fetch-Site", "cross-site"); got.Code != http.StatusForbidden {
		t.Errorf("from a page of another origin: %d", got.Code)
	}
	responses := d.Paths["/v1/models/{task}/predictions"]["post"].Responses
	for status, got := range answers {
		if _, ok := responses[strconv.Itoa(got.Code)]; !ok || got.Code != status {
			t.Errorf("status %d, want %d, described: %v", got.Code, status, ok)
		}
		if !json.Valid(got.Body.Bytes()) || strings.Contains(got.Body.String()+fmt.Sprint(got.Header()), secret) {
			t.Errorf("status %d says %s", status, got.Body)
		}
	}
	if len(answers)+1 != len(responses) { // and 200
		t.Errorf("%d answers of %d that are described", len(answers)+1, len(responses))
	}
	for _, c := range []struct {
		kind, body string
		status     int
	}{
		{"application/json", `{"age":1,"job":"a"} {"age":1,"job":"a"}`, 400}, {"application/json", "", 400},
		{"application/json", `"` + secret + `"`, 422}, {"text/plain", "1:1", 415}, {"text/csv", "", 400},
		{"text/csv", secret + ",x\n1,2\n", 400}, {"application/json", strings.Repeat(" ", maxBody) + "{}", 413},
		{"text/csv", strings.Repeat("x", maxBody+1), 413}, {"text/csv", "age,job\n" + strings.Repeat("1,a\n", maxEvents+1), 413},
	} {
		got := s.post("prices", c.kind, c.body)
		if got.Code != c.status || strings.Contains(got.Body.String(), secret) {
			t.Errorf("%s of %d bytes: %d %s, want %d", c.kind, len(c.body), got.Code, got.Body, c.status)
		}
	}
	for query, want := range map[string]int{"threshold=2": 400, "threshold=x": 400, "limit=1": 400, "threshold=": 400, "threshold": 400,
		"threshold=NaN": 400, "threshold=0": 400, "threshold=1": 400, "threshold=-0.5": 400, "threshold=Inf": 400, "threshold=1e999": 400,
		"threshold=.5&threshold=.6": 400, "threshold=%zz": 400, "threshold=.5;x": 400, "Threshold=.5": 400, secret: 400,
		"threshold=.5": 200, "": 200} {
		got := s.do(http.MethodPost, "/v1/models/prices/predictions?"+query, "application/json", strings.NewReader(event))
		if got.Code != want || strings.Contains(got.Body.String(), secret) {
			t.Errorf("%s: %d %s, want %d", query, got.Code, got.Body, want)
		}
	}
	for path, allow := range map[string]string{"/v1/models": "GET, HEAD", "/v1/models/prices": "GET, HEAD",
		"/v1/models/prices/predictions": "POST", "/v1/openapi.json": "GET, HEAD", "/v1/none": "", "/": ""} {
		want := http.StatusMethodNotAllowed
		if allow == "" {
			want = http.StatusNotFound
		}
		if got := s.do(http.MethodPut, path, "", nil); got.Code != want || got.Header().Get("Allow") != allow || !json.Valid(got.Body.Bytes()) {
			t.Errorf("PUT %s: %d, Allow %q, want %d, %q", path, got.Code, got.Header().Get("Allow"), want, allow)
		}
	}
	if strings.Contains(s.log.String(), secret) {
		t.Errorf("the log: %s", s.log.String())
	}
}

// TestModelsAreListed with their ETags, by which a reader learns whether a model is still the newest.
func TestModelsAreListed(t *testing.T) {
	s := newSite(t)
	var list struct {
		Models []struct {
			Task, ETag string
			Privacy    struct{ Epsilon *float64 }
		}
	}
	must(t, json.Unmarshal(s.do(http.MethodGet, "/v1/models", "", nil).Body.Bytes(), &list))
	if len(list.Models) != 2 || list.Models[0].Task != "prices" || list.Models[1].Task != "vectors" {
		t.Fatalf("%+v", list)
	}
	got := s.do(http.MethodGet, "/v1/models/prices", "", nil)
	if _, err := model.Parse(got.Body.Bytes()); err != nil || got.Header().Get("ETag") != `"`+list.Models[0].ETag+`"` {
		t.Errorf("%v, ETag %s of %s", err, got.Header().Get("ETag"), list.Models[0].ETag)
	}
	for have, want := range map[string]int{got.Header().Get("ETag"): 304, `"x", W/` + got.Header().Get("ETag"): 304, `"x"`: 200} {
		if got := s.do(http.MethodGet, "/v1/models/prices", "", nil, "If-None-Match", have); got.Code != want {
			t.Errorf("If-None-Match %s: %d, want %d", have, got.Code, want)
		}
	}
	if got := s.do(http.MethodGet, "/v1/openapi.json", "", nil); got.Body.String() != string(openAPI) {
		t.Error("the description is not served")
	}
}

// TestNewReleasesAreServed within a reading, and the model before where there is none, or one of another task.
func TestNewReleasesAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Follow(ctx) }()
		version := func() string {
			return s.do(http.MethodGet, "/v1/models/prices", "", nil).Header().Get(versionHeader)
		}
		next := func(doc []byte, err error) {
			s.shelf = shelf{doc, err}
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
		}
		next(snapshot(t, file, 2, 0, 0, 0, 0), nil)
		if version() != "2" || s.Ready() != nil {
			t.Errorf("version %s, %v", version(), s.Ready())
		}
		for _, bad := range []shelf{{nil, errors.New("gone")}, {[]byte("half of"), nil}, {snapshot(t, vectors, 3, 0, 0, 0, 0), nil}} {
			next(bad.doc, bad.err)
			if version() != "2" || s.Ready() == nil {
				t.Errorf("after %v: version %s, %v", bad.err, version(), s.Ready())
			}
		}
		next(snapshot(t, file, 4, 0, 0, 0, 0), nil)
		if version() != "4" || s.Ready() != nil {
			t.Errorf("version %s, %v", version(), s.Ready())
		}
		if n := strings.Count(s.log.String(), "level=WARN"); n != 3 {
			t.Errorf("%d warnings of three troubles, one after the other:\n%s", n, s.log.String())
		}
		for range 3 {
			next(nil, errors.New("gone for good"))
		}
		if n := strings.Count(s.log.String(), "level=WARN"); n != 4 {
			t.Errorf("%d warnings after a fourth that lasts:\n%s", n, s.log.String())
		}
		stop()
		must(t, <-done)
	})
}

// TestNewDeclarationIsSaid: a model that reads its events otherwise is served, and the log says that it does.
func TestNewDeclarationIsSaid(t *testing.T) {
	s := newSite(t)
	const says = "the declaration of the task has changed"
	for version, c := range []struct {
		file string
		says int
	}{{file, 0}, {strings.Replace(file, "max: 100", "max: 10", 1), 1}, {strings.Replace(file, "max: 100", "max: 10", 1), 1}, {file, 2}} {
		s.shelf.doc = snapshot(t, c.file, uint64(version+2), 0, 0, 0, 0)
		must(t, s.refresh(t.Context(), s.slots[0]))
		if n := strings.Count(s.log.String(), says); n != c.says || s.slots[0].now.Load().ModelVersion != uint64(version+2) {
			t.Errorf("model %d: %d lines, want %d:\n%s", version+2, n, c.says, &s.log)
		}
	}
}

// TestSourceWithoutAModelIsAskedAgain: a scorer starts before a learner does, is not ready, replies for that task that
// it is too early and for the others as ever, and serves the learner's model once it has one.
func TestSourceWithoutAModelIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, other := &shelf{err: fmt.Errorf("%w: refused", ErrNotYet)}, shelf{doc: snapshot(t, vectors, 1, 1, 2, 3, 0.5)}
		s := &site{}
		var failed []string
		var err error
		s.Scorer, err = New(t.Context(), Config{Sources: []Source{late.source("late"), other.source("other")}, Every: time.Second,
			Logger: slog.New(slog.NewTextHandler(&s.log, nil)), Observer: Observer{Failed: func(task string) { failed = append(failed, task) }}})
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Follow(ctx) }()
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if got := s.post("prices", "application/json", event); got.Code != 503 || got.Header().Get("Retry-After") != "2" || s.Ready() == nil {
			t.Errorf("before: %d %v, ready: %v", got.Code, got.Header(), s.Ready())
		}
		if got := s.do(http.MethodGet, "/v1/models/prices", "", nil); got.Code != 503 {
			t.Errorf("before: %d", got.Code)
		}
		if got := s.post("vectors", "text/plain", "1:1\n"); got.Code != 200 {
			t.Errorf("another task: %d", got.Code)
		}
		if got := s.do(http.MethodGet, "/v1/models", "", nil); !strings.Contains(got.Body.String(), "vectors") ||
			strings.Contains(got.Body.String(), "prices") {
			t.Errorf("listed: %s", got.Body)
		}
		if n := strings.Count(s.log.String(), "no model could be read so far"); n != 1 || !slices.Equal(failed, []string{"", "", "", ""}) {
			t.Errorf("%d warnings, failures %q", n, failed)
		}
		next := func(doc []byte) {
			late.doc, late.err = doc, nil
			time.Sleep(time.Second)
			synctest.Wait()
		}
		next(snapshot(t, vectors, 7, 0, 0, 0, 0))
		if s.Ready() == nil || !strings.Contains(s.log.String(), "one of each") {
			t.Errorf("a second model of a task: ready %v\n%s", s.Ready(), &s.log)
		}
		next(snapshot(t, file, 7, 0, 0, 0, 0))
		if got := s.post("prices", "application/json", event); got.Code != 200 || got.Header().Get(versionHeader) != "7" || s.Ready() != nil {
			t.Errorf("after: %d %s, ready: %v", got.Code, got.Body, s.Ready())
		}
		if got := s.post("none", "application/json", event); got.Code != 404 {
			t.Errorf("a task that nobody has: %d", got.Code)
		}
		stop()
		must(t, <-done)
	})
}

// TestNewRefuses two models of one task, none, and one that cannot be read.
func TestNewRefuses(t *testing.T) {
	one := shelf{doc: snapshot(t, file, 1, 0, 0, 0, 0)}
	broken := shelf{doc: []byte("{}")}
	for want, c := range map[string]Config{
		"one of each":    {Sources: []Source{one.source("a"), one.source("b")}, Every: time.Second},
		"format_version": {Sources: []Source{broken.source("a")}, Every: time.Second},
		"want a model":   {Every: time.Second},
		"at least 100ms": {Sources: []Source{one.source("a")}},
	} {
		c.Logger = slog.New(slog.DiscardHandler)
		if _, err := New(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
