package httpgateway

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A description holds the parts of openapi.json that the tests read.
type description struct {
	OpenAPI string                          `json:"openapi"`
	Paths   map[string]map[string]operation `json:"paths"`
	Parts   struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	Security   *[]any `json:"security"`
	Parameters []struct {
		Name   string `json:"name"`
		Schema schema `json:"schema"`
	} `json:"parameters"`
	Responses map[string]struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"responses"`
}

type schema struct {
	Ref        string            `json:"$ref"`
	OneOf      []schema          `json:"oneOf"`
	Enum       []string          `json:"enum"`
	Items      *schema           `json:"items"`
	Required   []string          `json:"required"`
	Properties map[string]schema `json:"properties"`
	Maximum    *int              `json:"maximum"`
	Default    any               `json:"default"`
	MaxLength  int               `json:"maxLength"`
	MaxItems   int               `json:"maxItems"`
}

func describe(t *testing.T) description {
	t.Helper()
	var d description
	must(t, json.Unmarshal(openAPI, &d))
	return d
}

// The description has the handler's routes and no others, and docs/ has the same description.
func TestOpenAPIHasTheRoutes(t *testing.T) {
	d := describe(t)
	w := newWorld(t, columns, nil)
	defer w.end()
	var described, served []string
	for path, operations := range d.Paths {
		for method, o := range operations {
			described = append(described, strings.ToUpper(method)+" "+path+" "+strconv.FormatBool(o.Security != nil &&
				len(*o.Security) == 0))
		}
	}
	for _, r := range w.gateway.routes() {
		served = append(served, r.Method+" "+r.Path+" "+strconv.FormatBool(r.Open))
	}
	slices.Sort(described)
	slices.Sort(served)
	if !slices.Equal(described, served) {
		t.Errorf("described: %v\nserved: %v", described, served)
	}
	status, body := w.do(w.request(http.MethodGet, "/v1/openapi.json", nil))
	if status != http.StatusOK || body["openapi"] != d.OpenAPI {
		t.Errorf("GET /v1/openapi.json: %d, version %v", status, body["openapi"])
	}
}

// TestBase: below another path the description that the gateway serves has the paths that it answers, and no other.
func TestBase(t *testing.T) {
	w := newWorld(t, columns, func(c *Config) { c.Base = "/v1/tasks/ads" })
	defer w.end()
	served := httptest.NewRecorder()
	w.gateway.Handler().ServeHTTP(served, w.request(http.MethodGet, "/v1/tasks/ads/openapi.json", nil))
	var d description
	must(t, json.Unmarshal(served.Body.Bytes(), &d))
	if len(d.Paths) != len(w.gateway.routes()) {
		t.Errorf("%d paths are described, %d served", len(d.Paths), len(w.gateway.routes()))
	}
	for _, r := range w.gateway.routes() {
		if d.Paths[r.Path][strings.ToLower(r.Method)].Responses == nil {
			t.Errorf("%s %s is not described", r.Method, r.Path)
		}
	}
	if status, _ := w.do(w.request(http.MethodGet, "/v1/task", nil)); status != http.StatusNotFound {
		t.Errorf("GET /v1/task: %d, want 404", status)
	}
}

// A request has the members that parseEvent takes.
type request struct {
	Key   string          `json:"key"`
	Event json.RawMessage `json:"event"`
}

// Schemas have the members of the types that are written and read, and require those that are always there.
func TestOpenAPIHasTheFields(t *testing.T) {
	d := describe(t)
	for name, value := range map[string]any{
		"Event": request{}, "Person": personRequest{}, "Answer": answer{}, "Refusal": refusal{},
		"Task": taskAnswer{}, "Error": failure{}, "Question": question{}, "BatchAnswer": batchAnswer{},
		"BatchAnswers": batchAnswers{}, "OutcomeAnswer": outcomeAnswer{}, "OutcomeAnswers": outcomeAnswers{},
	} {
		s, ok := d.Parts.Schemas[name]
		if !ok {
			t.Errorf("no schema %s", name)
			continue
		}
		var all, always []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(value)) {
			if f.Anonymous {
				continue
			}
			member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			all = append(all, member)
			within := len(f.Index) > 1 && name != "Answer" // of an answer that may not be there
			if options != "omitempty" && !within {
				always = append(always, member)
			}
		}
		slices.Sort(all)
		slices.Sort(always)
		if got := slices.Sorted(maps.Keys(s.Properties)); !slices.Equal(got, all) {
			t.Errorf("%s: described %v, in the code %v", name, got, all)
		}
		if got := slices.Sorted(slices.Values(s.Required)); !slices.Equal(got, always) {
			t.Errorf("%s: requires %v, always there %v", name, got, always)
		}
	}
	outcomes := []string{waiting, accepted}
	for _, s := range []participation.State{participation.Counted, participation.Uncounted, participation.Unknown,
		participation.Refused} {
		outcomes = append(outcomes, s.String())
	}
	if got := d.Parts.Schemas["Answer"].Properties["outcome"].Enum; !slices.Equal(got, outcomes) {
		t.Errorf("outcomes %v, want %v", got, outcomes)
	}
	if got := d.Parts.Schemas["Event"].Properties["key"].MaxLength; got != device.MaxKey {
		t.Errorf("keys of %d, want %d", got, device.MaxKey)
	}
	if got := d.Parts.Schemas["Question"].Properties["keys"].MaxItems; got != maxKeys {
		t.Errorf("%d keys, want %d", got, maxKeys)
	}
	for _, path := range []string{"/v1/events", "/v1/batches", "/v1/outcomes"} {
		wait := d.Paths[path]["post"].Parameters[0]
		if wait.Name != "wait" || wait.Schema.Maximum == nil || float64(*wait.Schema.Maximum) != maxWait.Seconds() ||
			wait.Schema.Default != 0.0 {
			t.Errorf("%s: wait: %+v", path, wait)
		}
	}
	for _, value := range d.Paths["/v1/events"]["post"].Parameters[1].Schema.Enum {
		r := httptest.NewRequest(http.MethodPost, "/v1/events?until="+value, nil)
		if _, _, err := patience(r); err != nil {
			t.Errorf("until=%s: %v", value, err)
		}
	}
}

// Every answer of the handler has a status and members that are described there.
func TestAnswersAreDescribed(t *testing.T) {
	d := describe(t)
	seen := map[string]bool{}
	check := func(w *world, r *http.Request) {
		t.Helper()
		status, body := w.do(r)
		path, method := r.URL.Path, strings.ToLower(r.Method)
		response, ok := d.Paths[path][method].Responses[strconv.Itoa(status)]
		if !ok {
			t.Errorf("%s %s: %d is not described", method, path, status)
			return
		}
		seen[path+" "+strconv.Itoa(status)] = true
		content, ok := response.Content["application/json"]
		if body == nil || path == "/v1/openapi.json" {
			return // text, or the description itself
		}
		var fits func(body map[string]any, s schema) bool
		fits = func(body map[string]any, s schema) bool {
			s = d.Parts.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
			for _, name := range s.Required {
				if _, there := body[name]; !there {
					return false
				}
			}
			for name, value := range body {
				of, known := s.Properties[name]
				if !known {
					return false
				}
				list, _ := value.([]any)
				for _, one := range list {
					if one, ok := one.(map[string]any); ok && !fits(one, *of.Items) {
						return false
					}
				}
			}
			return len(s.Properties) > 0
		}
		if !ok || !fits(body, content.Schema) &&
			!slices.ContainsFunc(content.Schema.OneOf, func(s schema) bool { return fits(body, s) }) {
			t.Errorf("%s %s: %d: %v is not as described", method, path, status, body)
		}
	}
	for _, declaration := range []string{columns, vector} {
		w := newWorld(t, declaration, func(c *Config) { c.MaxBody, c.MaxWaiting = 200, 1 })
		post := func(body string, change func(*http.Request)) {
			t.Helper()
			r := w.request(http.MethodPost, "/v1/events?wait=0&until=outcome", strings.NewReader(body))
			if change != nil {
				change(r)
			}
			check(w, r)
		}
		several := func(path, kind, body string, change func(*http.Request)) {
			t.Helper()
			r := w.request(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", kind)
			if change != nil {
				change(r)
			}
			check(w, r)
		}
		const lines, object = "application/x-ndjson", "application/json"
		check(w, w.request(http.MethodGet, "/v1/task", nil))
		check(w, w.request(http.MethodGet, "/v1/openapi.json", nil))
		check(w, w.request(http.MethodGet, "/healthz", nil))
		post(goodEvent, nil)
		post(strings.Replace(goodEvent, "anna", "bert", 1), nil) // no room
		post("{}", nil)
		post(strings.Repeat(" ", 201), nil)
		post(goodEvent, func(r *http.Request) { r.Header.Del("Authorization") })
		post(goodEvent, func(r *http.Request) { r.Header.Del("Content-Type") })
		post(goodEvent, func(r *http.Request) { r.Header.Set("Origin", "https://elsewhere.example") })
		several("/v1/batches", lines, goodEvent+"\n{}\n"+strings.Replace(goodEvent, "anna", "bert", 1), nil)
		several("/v1/batches?wait=x", lines, goodEvent, nil)
		several("/v1/batches", lines, strings.Repeat("{}\n", maxLines+1), nil)
		several("/v1/outcomes", object, `{"keys": ["anna", "nobody", ""]}`, nil)
		several("/v1/outcomes", object, `{}`, nil)
		for _, path := range []string{"/v1/batches", "/v1/outcomes"} {
			several(path, "text/plain", goodEvent, nil)
			several(path, object, goodEvent, func(r *http.Request) { r.Header.Del("Authorization") })
			several(path, object, goodEvent, func(r *http.Request) { r.Header.Set("Origin", "https://elsewhere.example") })
		}
		w.openRound()
		check(w, w.request(http.MethodPost, "/v1/events?wait=9", strings.NewReader(goodEvent)))
		w.closeRounds()
		check(w, w.request(http.MethodPost, "/v1/events?until=outcome&wait=9", strings.NewReader(goodEvent)))
		w.gateway.Close()
		check(w, w.request(http.MethodPost, "/v1/events", strings.NewReader(strings.Replace(goodEvent, "anna", "dora", 1))))
		w.end()
		dear := newWorldOf(t, declaration, options{policy: consent.Policy{MaxEpsilon: 0.1}})
		check(dear, dear.request(http.MethodPost, "/v1/events", strings.NewReader(goodEvent)))
		check(dear, dear.request(http.MethodGet, "/v1/task", nil))
		dear.end()
		early := newWorldOf(t, declaration, options{silent: true})
		for _, path := range []string{"/v1/batches", "/v1/outcomes"} {
			r := early.request(http.MethodPost, path+"?wait=0", strings.NewReader(goodEvent))
			if path == "/v1/batches" {
				r.Header.Set("Content-Type", lines)
			}
			check(early, r)
		}
		early.end()
		fast := newWorld(t, declaration, func(c *Config) { c.Rate = 1e-9 })
		check(fast, fast.request(http.MethodPost, "/v1/events?wait=0", strings.NewReader("{}")))
		check(fast, fast.request(http.MethodPost, "/v1/events?wait=0", strings.NewReader("{}")))
		closed := fast.request(http.MethodGet, "/v1/task", nil)
		closed.Header.Del("Authorization")
		check(fast, closed)
		fast.end()
	}
	people := newPeople(t, 1)
	people.openRound()
	check(people, people.request(http.MethodGet, "/v1/task", nil))
	check(people, people.request(http.MethodPost, "/v1/events", strings.NewReader(`{"key": "anna", "events": [{}, {}]}`)))
	people.end()
	for path, statuses := range map[string][]int{"/v1/events": {200, 202, 400, 401, 403, 415, 429, 503},
		"/v1/batches": {200, 400, 401, 403, 413, 415, 503}, "/v1/outcomes": {200, 400, 401, 403, 415, 503}} {
		for _, status := range statuses {
			if at := path + " " + strconv.Itoa(status); !seen[at] {
				t.Errorf("%s was described and not seen", at)
			}
		}
	}
}
