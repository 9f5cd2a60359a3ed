package relay_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

const (
	churn = stream.Task("churn")
	page  = "https://app.example"
	token = "correct-horse-battery"
)

// A site is a relay over a broker in memory that has one task.
type site struct {
	t      *testing.T
	broker *memory.Broker
	relay  *relay.Relay
}

func newSite(t *testing.T, change func(*relay.Config)) *site {
	t.Helper()
	b, err := memory.New(memory.Config{})
	must(t, err)
	c := relay.Config{Broker: b, Origins: []string{page}}
	if change != nil {
		change(&c)
	}
	s := &site{t: t, broker: b}
	s.relay, err = relay.New(c)
	must(t, err)
	t.Cleanup(s.relay.Close)
	s.relay.OneSize(100)
	s.put(churn.Task(), "a task")
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) put(subject, data string) {
	s.t.Helper()
	_, err := s.broker.PutOnce(s.t.Context(), subject, []byte(data))
	must(s.t, err)
}

func (s *site) request(method, path string, body []byte) *http.Request {
	q := httptest.NewRequestWithContext(s.t.Context(), method, "http://localhost/v1/tasks/churn/"+path, bytes.NewReader(body))
	if method == http.MethodPost {
		q.Header.Set("Content-Type", relayhttp.ContentType)
	} else {
		q.Body = http.NoBody
	}
	return q
}

func (s *site) do(q *http.Request) *httptest.ResponseRecorder {
	got := httptest.NewRecorder()
	s.relay.ServeHTTP(got, q)
	return got
}

// report returns the body of a report whose sealed message has so many bytes.
func report(size int) []byte {
	return relayhttp.Report{Round: 1, Attempt: 1, ID: [16]byte{1}, Data: make([]byte, size)}.Bytes()
}

// stored returns the number of reports on the broker.
func (s *site) stored() int {
	s.t.Helper()
	r, err := s.broker.Reader(churn)
	must(s.t, err)
	q, err := r.Queue(s.t.Context())
	must(s.t, err)
	return int(q.Messages)
}

// TestRecordsSayHowLongTheyStand: by hash for ever, by name for no moment without asking, and nothing else at all.
func TestRecordsSayHowLongTheyStand(t *testing.T) {
	s := newSite(t, nil)
	s.put(churn.Round(1), "round one")
	h := relayhttp.HashOf([]byte("round one"))
	hash, other := hex.EncodeToString(h[:]), strings.Repeat("ab", 32)
	get := func(path string, header ...string) *httptest.ResponseRecorder {
		q := s.request(http.MethodGet, path, nil)
		for i := 0; i < len(header); i += 2 {
			q.Header.Set(header[i], header[i+1])
		}
		return s.do(q)
	}
	for _, c := range []struct {
		path, header, value string
		status              int
		keep                string
	}{
		{"rounds/1", "", "", 200, "no-cache"},
		{"rounds/1", "If-None-Match", `"` + hash + `"`, 304, "no-cache"},
		{"rounds/1", "If-None-Match", `"` + other + `"`, 200, "no-cache"},
		{"rounds/2", "", "", 404, "no-store"},
		{"rounds/2", "If-None-Match", `*`, 404, "no-store"},
		{"task", "", "", 200, "no-cache"},
		{"lease", "", "", 404, "no-store"},
		{"records/" + hash + "?name=rounds/1", "", "", 200, "public, max-age=31536000, immutable"},
		{"records/" + other + "?name=rounds/1", "", "", 404, "no-store"},
		{"records/" + hash + "?name=rounds/2", "", "", 404, "no-store"},
		{"records/" + strings.ToUpper(hash) + "?name=rounds/1", "", "", 400, "no-store"},
		{"records/" + hash + "?name=batch/1", "", "", 404, "no-store"},
		{"rounds/latest", "", "", 200, "no-store"},
		{"opens/1/latest", "", "", 200, "no-store"},
		{"rounds/latest?wait=56", "", "", 400, "no-store"},
		{"batches/1", "", "", 404, "no-store"},
		{"reports", "", "", 405, "no-store"},
	} {
		var header []string
		if c.header != "" {
			header = []string{c.header, c.value}
		}
		got := get(c.path, header...)
		if keep := got.Header().Get("Cache-Control"); got.Code != c.status || keep != c.keep {
			t.Errorf("%s %s: %d, %q, want %d, %q", c.path, c.value, got.Code, keep, c.status, c.keep)
		}
		if c.status == 200 && strings.HasPrefix(c.path, "rounds/1") && (got.Header().Get("ETag") != `"`+hash+`"` ||
			got.Body.String() != "round one" || got.Header().Get(relayhttp.Sequence) != "2") {
			t.Errorf("%s: %v with %q", c.path, got.Header(), got.Body)
		}
		if c.status == 304 && got.Body.Len() != 0 {
			t.Errorf("%s: 304 with a body", c.path)
		}
	}
	// The lease has the broker's time, and is asked for each time.
	_, err := s.broker.Swap(t.Context(), churn.Lease(), 0, []byte("lease"))
	must(t, err)
	got := get("lease", "If-None-Match", "*")
	stored, _ := strconv.ParseInt(got.Header().Get(relayhttp.Time), 10, 64)
	if got.Code != 200 || got.Header().Get("Cache-Control") != "no-store" || time.Since(time.Unix(0, stored)).Abs() > time.Minute {
		t.Errorf("lease: %d %v", got.Code, got.Header())
	}
	// The broker loses the round and takes another: its name has it at once, the hash of the lost one nothing.
	s.broker.Lose(churn.Round(1))
	s.put(churn.Round(1), "another")
	if got := get("rounds/1", "If-None-Match", `"`+hash+`"`); got.Code != 200 || got.Body.String() != "another" {
		t.Errorf("the name of a lost record: %d %q", got.Code, got.Body)
	}
	if got := get("records/" + hash + "?name=rounds/1"); got.Code != 404 {
		t.Errorf("the hash of a lost record: %d", got.Code)
	}
}

// TestNoLoginTravels: a request with a cookie, or with an Authorization header that nobody asked for, is refused in words,
// and a report in it is not published. One of a page that is not in the list is refused, too.
func TestNoLoginTravels(t *testing.T) {
	s := newSite(t, nil)
	for _, c := range []struct {
		header, value string
		status        int
		says          string
	}{
		{"Cookie", "session=1", 400, "no login travels with a report"},
		{"Cookie", "", 400, "Cookie"},
		{"Authorization", "Bearer " + token, 400, "no login travels with a report"},
		{"Origin", "https://elsewhere.example", 403, "origin"},
		{"Origin", "null", 403, "origin"},
		{"Origin", page + ".evil.example", 403, "origin"},
		{"Origin", page, 200, ""},
	} {
		before := s.stored()
		for _, q := range []*http.Request{s.request(http.MethodPost, "reports", report(100)),
			s.request(http.MethodGet, "task", nil)} {
			q.Header[c.header] = []string{c.value}
			got := s.do(q)
			allowed := got.Header().Get("Access-Control-Allow-Origin")
			if got.Code != c.status || !strings.Contains(got.Body.String(), c.says) || (allowed == page) != (c.status == 200) {
				t.Errorf("%s: %q: %s: %d %q, allows %q", c.header, c.value, q.Method, got.Code, got.Body, allowed)
			}
			if got.Header().Get("Access-Control-Allow-Credentials") != "" || !slices.Contains(got.Header()["Vary"], "Origin") {
				t.Errorf("%s: %q: %v", c.header, c.value, got.Header())
			}
		}
		if published := s.stored() > before; published != (c.status == 200) {
			t.Errorf("%s: %q: published %t", c.header, c.value, published)
		}
	}
	if got := s.do(s.request(http.MethodOptions, "reports", nil)); got.Header().Get("Access-Control-Allow-Headers") != "" {
		t.Errorf("a relay without a token allows headers: %v", got.Header())
	}
	for _, origin := range []string{"*", "app.example", page + "/", "ftp://app.example", ""} {
		if _, err := relay.New(relay.Config{Broker: s.broker, Origins: []string{origin}}); err == nil {
			t.Errorf("origin %q is taken", origin)
		}
	}
}

// TestAccess: with a token, who carries it may use the relay, from any host; without, processes of this machine may.
func TestAccess(t *testing.T) {
	s := newSite(t, func(c *relay.Config) { c.Access = relay.MustToken(token) })
	for header, status := range map[string]int{"": 401, "Bearer wrong-horse-battery": 401, "Bearer " + token: 200} {
		q := s.request(http.MethodGet, "task", nil)
		q.Host = "reports.example"
		if header != "" {
			q.Header.Set("Authorization", header)
		}
		if got := s.do(q); got.Code != status {
			t.Errorf("%q: %d, want %d", header, got.Code, status)
		}
	}
	q := s.request(http.MethodOptions, "reports", nil)
	q.Header.Set("Origin", page)
	if got := s.do(q); got.Code != 204 || got.Header().Get("Access-Control-Allow-Headers") != "authorization" {
		t.Errorf("a page asks whether it may send the token: %d %v", got.Code, got.Header())
	}
	open := newSite(t, nil)
	q = open.request(http.MethodGet, "task", nil)
	q.Host = "reports.example"
	if got := open.do(q); got.Code != 403 {
		t.Errorf("another name of this machine: %d", got.Code)
	}
}

// TestReportsHaveTheTasksLength: every other length is refused before anything is published, and so is a body without one.
func TestReportsHaveTheTasksLength(t *testing.T) {
	s := newSite(t, nil)
	post := func(body []byte, change func(*http.Request)) int {
		q := s.request(http.MethodPost, "reports", body)
		if change != nil {
			change(q)
		}
		return s.do(q).Code
	}
	for what, c := range map[string]struct {
		got, want int
	}{
		"short":     {post(report(99), nil), 400},
		"long":      {post(report(101), nil), 413},
		"empty":     {post(nil, nil), 400},
		"no length": {post(report(100), func(q *http.Request) { q.ContentLength = -1 }), 411},
		"broken off": {post(report(100), func(q *http.Request) {
			q.Body = io.NopCloser(bytes.NewReader(report(50)))
		}), 408},
		"JSON":     {post(report(100), func(q *http.Request) { q.Header.Set("Content-Type", "application/json") }), 415},
		"round 0":  {post(make([]byte, len(report(100))), nil), 400},
		"no task":  {post(report(100), func(q *http.Request) { q.URL.Path = "/v1/tasks/none/reports" }), 404},
		"bad name": {post(report(100), func(q *http.Request) { q.URL.Path = "/v1/tasks/NONE/reports" }), 404},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", what, c.got, c.want)
		}
	}
	if n := s.stored(); n != 0 {
		t.Errorf("%d reports were published", n)
	}
	if got := post(report(100), nil); got != 200 || s.stored() != 1 {
		t.Errorf("a report as declared: %d", got)
	}
}

// TestAnAnswerIsTheBrokers: a 200 says what the broker said of the id that was sent; silence of the broker is a 504.
func TestAnAnswerIsTheBrokers(t *testing.T) {
	fault := memory.None
	s := newSite(t, nil)
	s.broker.Inject(func(op memory.Op, _ string) memory.Fault {
		if op == memory.Publish {
			return fault
		}
		return memory.None
	})
	post := func() (int, relayhttp.Answer) {
		got := s.do(s.request(http.MethodPost, "reports", report(100)))
		a, _ := relayhttp.ParseAnswer(got.Body.Bytes())
		if keep := got.Header().Get("Cache-Control"); keep != "no-store" {
			t.Errorf("an answer may be kept: %q", keep)
		}
		return got.Code, a
	}
	id := [16]byte{1}
	fault = memory.LostAck
	if status, _ := post(); status != http.StatusGatewayTimeout {
		t.Errorf("a stored report without an acknowledgement: %d", status)
	}
	fault = memory.None
	if status, a := post(); status != 200 || a != (relayhttp.Answer{ID: id, Status: stream.Duplicate, Sequence: 1}) {
		t.Errorf("the same again: %d %+v", status, a)
	}
	s.broker.Disconnect()
	if status, _ := post(); status != http.StatusGatewayTimeout && status != http.StatusServiceUnavailable {
		t.Errorf("without a broker: %d", status)
	}
}

// TestPlacesGoToTheStage: the bytes of a request and of an answer are forwarded as they are, and silence is a 504.
func TestPlacesGoToTheStage(t *testing.T) {
	s := newSite(t, nil)
	request := stream.PlaceRequest{ID: [16]byte{7}, Users: 3}.Record()
	body := relayhttp.Place{Round: 2, Attempt: 1, Request: request}.Bytes()
	if got := s.do(s.request(http.MethodPost, "places", body)); got.Code != http.StatusGatewayTimeout {
		t.Errorf("without a stage: %d", got.Code)
	}
	answer := stream.PlaceAnswer{ID: [16]byte{7}, Verdict: stream.PlaceGranted, Users: 2, Time: time.Second}.Record()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	must(t, s.broker.ServePlaces(ctx, churn, func(subject string, got []byte) []byte {
		if subject != churn.Place(2, 1) || !bytes.Equal(got, request) {
			t.Errorf("the stage is asked %q on %s", got, subject)
		}
		return answer
	}))
	if got := s.do(s.request(http.MethodPost, "places", body)); got.Code != 200 || !bytes.Equal(got.Body.Bytes(), answer) {
		t.Errorf("with a stage: %d %q", got.Code, got.Body)
	}
	long := append(body, make([]byte, relayhttp.MaxPlace)...)
	if got := s.do(s.request(http.MethodPost, "places", long)); got.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long request: %d", got.Code)
	}
}
