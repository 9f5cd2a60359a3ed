package relay_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

// A description holds the parts of openapi.json that the tests read.
type description struct {
	Paths map[string]map[string]struct {
		Security   *[]any `json:"security"`
		Parameters []struct {
			Name   string `json:"name"`
			Schema struct {
				Maximum *int `json:"maximum"`
			} `json:"schema"`
		} `json:"parameters"`
		Responses map[string]struct {
			Content map[string]any `json:"content"`
		} `json:"responses"`
	} `json:"paths"`
}

func describe(t *testing.T) (d description) {
	t.Helper()
	must(t, json.Unmarshal(relay.OpenAPI, &d))
	return d
}

// TestOpenAPIHasTheRoutes: the description has the handler's routes and no others, and is served.
func TestOpenAPIHasTheRoutes(t *testing.T) {
	s, d := newSite(t, nil), describe(t)
	var described []string
	for path, operations := range d.Paths {
		for method, o := range operations {
			open := o.Security != nil && len(*o.Security) == 0
			described = append(described, strings.ToUpper(method)+" "+path+" "+strconv.FormatBool(open))
			for _, p := range o.Parameters {
				if p.Name == "wait" && (p.Schema.Maximum == nil || time.Duration(*p.Schema.Maximum)*time.Second != relay.MaxWait) {
					t.Errorf("%s: wait %v", path, p.Schema.Maximum)
				}
			}
		}
	}
	served := s.relay.Routes()
	slices.Sort(described)
	slices.Sort(served)
	if !slices.Equal(described, served) {
		t.Errorf("described: %v\nserved: %v", described, served)
	}
	q := s.request(http.MethodGet, "", nil)
	q.URL.Path = "/v1/openapi.json"
	if got := s.do(q); got.Code != 200 || got.Body.String() != string(relay.OpenAPI) {
		t.Errorf("GET /v1/openapi.json: %d", got.Code)
	}
}

// TestAnswersAreDescribed: every answer has a status and a type that are described for its route, and every status that is
// described for posts comes.
func TestAnswersAreDescribed(t *testing.T) {
	d := describe(t)
	seen := map[string]bool{}
	check := func(s *site, route string, q *http.Request) {
		t.Helper()
		got := s.do(q)
		method, path, _ := strings.Cut(route, " ")
		response, ok := d.Paths["/v1/tasks/{task}/"+path][strings.ToLower(method)].Responses[strconv.Itoa(got.Code)]
		kind, _, _ := strings.Cut(got.Header().Get("Content-Type"), ";")
		if _, typed := response.Content[kind]; !ok || !typed && got.Code != http.StatusNotModified {
			t.Errorf("%s: %d %s is not described", route, got.Code, kind)
		}
		seen[path+" "+strconv.Itoa(got.Code)] = true
	}
	bare := func(q *http.Request) {}
	for _, change := range []func(*http.Request){
		bare, func(q *http.Request) { q.Header.Set("Cookie", "a=b") }, func(q *http.Request) { q.Header.Set("Origin", "https://x.y") },
		func(q *http.Request) { q.Header.Set("If-None-Match", "*") }, func(q *http.Request) { q.Header.Del("Content-Type") },
		func(q *http.Request) { q.ContentLength = -1 }, func(q *http.Request) { q.Body = http.NoBody },
	} {
		s := newSite(t, nil)
		for route, at := range map[string]string{"task": "task", "end": "end", "lease": "lease", "rounds/{round}": "rounds/1",
			"claims/{round}": "claims/1", "opens/{round}/{attempt}": "opens/1/1", "closes/{round}/{attempt}": "closes/1/1",
			"joins/{round}/{attempt}": "joins/1/1",
			"records/{hash}":          "records/" + strings.Repeat("a", 64) + "?name=task", "rounds/latest": "rounds/latest",
			"opens/{round}/latest": "opens/1/latest"} {
			q := s.request(http.MethodGet, at, nil)
			change(q)
			check(s, "GET "+route, q)
		}
		for path, bodies := range map[string][][]byte{
			"reports": {report(100), report(50), report(200)},
			"places":  {relayhttp.Place{Round: 1, Attempt: 1, Request: []byte("x")}.Bytes(), make([]byte, 9000), nil},
		} {
			for _, body := range bodies {
				q := s.request(http.MethodPost, path, body)
				change(q)
				check(s, "POST "+path, q)
			}
		}
	}
	closed := newSite(t, func(c *relay.Config) { c.Access = relay.MustToken(token) })
	check(closed, "POST reports", closed.request(http.MethodPost, "reports", report(100)))
	silent := newSite(t, nil)
	check(silent, "POST reports", silent.request(http.MethodPost, "reports", report(100)))
	silent.broker.Disconnect()
	check(silent, "POST reports", silent.request(http.MethodPost, "reports", report(100)))
	check(silent, "GET task", silent.request(http.MethodGet, "task", nil))
	for _, status := range []int{200, 400, 401, 403, 408, 411, 413, 415, 504} {
		if !seen["reports "+strconv.Itoa(status)] {
			t.Errorf("reports: %d was described and not seen", status)
		}
	}
}
