package httpgateway

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

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
	Required   []string          `json:"required"`
	Properties map[string]schema `json:"properties"`
	Maximum    *int              `json:"maximum"`
	Default    any               `json:"default"`
	MaxLength  int               `json:"maxLength"`
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
	defer w.gateway.Close()
	var described, served []string
	for path, operations := range d.Paths {
		for method, o := range operations {
			described = append(described, strings.ToUpper(method)+" "+path+" "+strconv.FormatBool(o.Security != nil &&
				len(*o.Security) == 0))
		}
	}
	for _, r := range w.gateway.routes() {
		served = append(served, r.method+" "+r.path+" "+strconv.FormatBool(r.open))
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

// A request has the members that parseEvent takes.
type request struct {
	Key   string          `json:"key"`
	Event json.RawMessage `json:"event"`
}

// Schemas have the members of the types that are written and read, and require those that are always there.
func TestOpenAPIHasTheFields(t *testing.T) {
	d := describe(t)
	for name, value := range map[string]any{
		"Event": request{}, "Person": personRequest{}, "Vector": vectorEvent{}, "Answer": answer{}, "Refusal": refusal{},
		"Task": taskAnswer{}, "Error": failure{},
	} {
		s, ok := d.Parts.Schemas[name]
		if !ok {
			t.Errorf("no schema %s", name)
			continue
		}
		var all, always []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(value)) {
			member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			all = append(all, member)
			if options != "omitempty" && !(name == "Vector" && member == "index") {
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
	if got := d.Parts.Schemas["Event"].Properties["key"].MaxLength; got != maxKey {
		t.Errorf("keys of %d, want %d", got, maxKey)
	}
	wait := d.Paths["/v1/events"]["post"].Parameters[0]
	if wait.Name != "wait" || wait.Schema.Maximum == nil || float64(*wait.Schema.Maximum) != maxWait.Seconds() ||
		wait.Schema.Default != defaultWait.Seconds() {
		t.Errorf("wait: %+v", wait)
	}
	for _, value := range d.Paths["/v1/events"]["post"].Parameters[1].Schema.Enum {
		r := newWorld(t, columns, nil).request(http.MethodPost, "/v1/events?until="+value, nil)
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
		fits := func(s schema) bool {
			s = d.Parts.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
			for _, name := range s.Required {
				if _, there := body[name]; !there {
					return false
				}
			}
			for name := range body {
				if _, known := s.Properties[name]; !known {
					return false
				}
			}
			return len(s.Properties) > 0
		}
		if !ok || !fits(content.Schema) && !slices.ContainsFunc(content.Schema.OneOf, fits) {
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
		close(w.open)
		close(w.over)
		r := w.request(http.MethodPost, "/v1/events?until=outcome", strings.NewReader(goodEvent))
		check(w, r)
		w.mu.Lock()
		w.refused = &consent.RefusedError{Field: "plan.epsilon", Value: "4", Accepted: "at most 1"}
		w.mu.Unlock()
		check(w, w.request(http.MethodPost, "/v1/events", strings.NewReader(strings.Replace(goodEvent, "anna", "carl", 1))))
		w.gateway.Close()
		check(w, w.request(http.MethodPost, "/v1/events", strings.NewReader(strings.Replace(goodEvent, "anna", "dora", 1))))
		fast := newWorld(t, declaration, func(c *Config) { c.Rate = 1e-9 })
		check(fast, fast.request(http.MethodPost, "/v1/events?wait=0", strings.NewReader("{}")))
		check(fast, fast.request(http.MethodPost, "/v1/events?wait=0", strings.NewReader("{}")))
		closed := fast.request(http.MethodGet, "/v1/task", nil)
		closed.Header.Del("Authorization")
		check(fast, closed)
		fast.gateway.Close()
	}
	people := newPeople(t, columns, 1)
	close(people.open)
	check(people, people.request(http.MethodGet, "/v1/task", nil))
	check(people, people.request(http.MethodPost, "/v1/events", strings.NewReader(`{"key": "anna", "events": [{}, {}]}`)))
	people.gateway.Close()
	for _, status := range []int{200, 202, 400, 401, 403, 415, 429, 503} {
		if at := "/v1/events " + strconv.Itoa(status); !seen[at] {
			t.Errorf("%s was described and not seen", at)
		}
	}
}
