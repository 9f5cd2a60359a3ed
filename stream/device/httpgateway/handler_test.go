package httpgateway

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// Requests that are not as described take nothing.
func TestRefusedRequests(t *testing.T) {
	w := newWorld(t, columns, func(c *Config) { c.MaxBody = 300 })
	defer w.end()
	for name, test := range map[string]struct {
		status int
		change func(*http.Request)
		target string
		body   string
	}{
		"no token": {http.StatusUnauthorized, func(r *http.Request) { r.Header.Del("Authorization") }, "",
			goodEvent},
		"another token": {http.StatusUnauthorized, func(r *http.Request) {
			r.Header.Set("Authorization",
				"Bearer "+token+"x")
		}, "", goodEvent},
		"empty token": {http.StatusUnauthorized, func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") },
			"", goodEvent},
		"another scheme": {http.StatusUnauthorized, func(r *http.Request) {
			r.Header.Set("Authorization",
				"Basic "+token)
		}, "", goodEvent},
		"a page's request": {http.StatusForbidden, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"", goodEvent},
		"a page's form": {http.StatusUnsupportedMediaType, func(r *http.Request) {
			r.Header.Set("Content-Type",
				"text/plain")
		}, "", goodEvent},
		"no type": {http.StatusUnsupportedMediaType, func(r *http.Request) { r.Header.Del("Content-Type") }, "",
			goodEvent},
		"a packed body": {http.StatusUnsupportedMediaType, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") },
			"", goodEvent},
		"no JSON":         {http.StatusBadRequest, nil, "", "age=50"},
		"large, no key":   {http.StatusBadRequest, nil, "", `{"kez": "` + strings.Repeat("k", 3000) + `"}`},
		"a key inside":    {http.StatusBadRequest, nil, "", `{"event": {"key": "anna"}}`},
		"a key that is 1": {http.StatusBadRequest, nil, "", `{"key": 1, "event": {}}`},
		"no key":          {http.StatusBadRequest, nil, "", `{"event": {}}`},
		"empty key":       {http.StatusBadRequest, nil, "", `{"key": "", "event": {}}`},
		"long key":        {http.StatusBadRequest, nil, "", `{"key": "` + strings.Repeat("k", 257) + `", "event": {}}`},
		"long wait":       {http.StatusBadRequest, nil, "?wait=601", goodEvent},
		"negative wait":   {http.StatusBadRequest, nil, "?wait=-1", goodEvent},
		"another until":   {http.StatusBadRequest, nil, "?until=tomorrow", goodEvent},
		"another method": {http.StatusMethodNotAllowed, func(r *http.Request) { r.Method = http.MethodPut }, "",
			goodEvent},
		"a path that is none": {http.StatusNotFound, func(r *http.Request) { r.URL.Path = "/v2/events" }, "", goodEvent},
	} {
		r := w.request(http.MethodPost, "/v1/events"+test.target, strings.NewReader(test.body))
		if test.change != nil {
			test.change(r)
		}
		if got, body := w.do(r); got != test.status {
			t.Errorf("%s: %d %v, want %d", name, got, body, test.status)
		}
	}
	_, told := w.ask("", "anna", "1")
	for _, one := range told {
		if one["error"] == nil {
			t.Errorf("a refused request reached the device: %v", one)
		}
	}
}

// Without a token only this machine's own name will do.
func TestWithoutToken(t *testing.T) {
	w := newWorld(t, columns, func(c *Config) { c.Token, c.NoToken = "", true })
	defer w.end()
	w.openRound()
	for host, status := range map[string]int{
		"127.0.0.1:8090": http.StatusAccepted, "localhost": http.StatusAccepted, "[::1]:8090": http.StatusAccepted,
		"127.8.9.1":            http.StatusAccepted,
		"rebound.example:8090": http.StatusForbidden, "192.0.2.1:8090": http.StatusForbidden, "": http.StatusForbidden,
		"localhost.example": http.StatusForbidden,
	} {
		r := w.request(http.MethodPost, "/v1/events", strings.NewReader(goodEvent))
		r.Header.Del("Authorization")
		r.Host = host
		if got, body := w.do(r); got != status {
			t.Errorf("host %q: %d %v, want %d", host, got, body, status)
		}
	}
}

// The rate and the number of events that wait are bounded.
func TestBounds(t *testing.T) {
	bodyOf(t, columns)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, columns, func(c *Config) { c.Rate, c.MaxWaiting = 4, 3 })
		defer w.end()
		for i, want := range []int{202, 202, 202, 503, 429, 429} {
			got, _ := w.post("?wait=0", strings.Replace(goodEvent, "anna", strings.Repeat("x", i+1), 1))
			if got != want {
				t.Errorf("event %d: %d, want %d", i, got, want)
			}
		}
		time.Sleep(time.Second)
		// asked again, it needs no room
		w.expect("?wait=0", strings.Replace(goodEvent, "anna", "x", 1), http.StatusAccepted, "waiting")
		time.Sleep(time.Second)
		w.openRound()
		time.Sleep(time.Second)
		w.closeRounds()
		time.Sleep(time.Second)
		w.expect("?until=outcome&wait=60", goodEvent, http.StatusOK, "counted") // there is room again
	})
}

// What the policy refuses is answered as refused, and what the gateway cannot answer is not an outcome.
func TestRefusedAndStopping(t *testing.T) {
	bodyOf(t, columns)
	synctest.Test(t, func(t *testing.T) {
		dear := newWorldOf(t, columns, options{policy: consent.Policy{MaxEpsilon: 0.1}})
		defer dear.end()
		a := dear.expect("", goodEvent, http.StatusForbidden, "refused")
		if why, _ := a["refused"].(map[string]any); why["field"] == nil || a["final"] != true {
			t.Errorf("refused: %v", a)
		}
		w := newWorld(t, columns, nil)
		defer w.end()
		time.AfterFunc(time.Second, w.gateway.Close)
		if status, a := w.post("?wait=9", strings.Replace(goodEvent, "anna", "bert",
			1)); status != http.StatusServiceUnavailable || a["error"] == nil {
			t.Errorf("while stopping: %d %v", status, a)
		}
		if status, a := w.post("", goodEvent); status != http.StatusServiceUnavailable || a["error"] == nil {
			t.Errorf("when stopped: %d %v", status, a)
		}
		if status, answers := w.batch("", goodEvent); status != http.StatusOK || answers[0]["error"] == nil {
			t.Errorf("a batch when stopped: %d %v", status, answers)
		}
		early := newWorldOf(t, columns, options{silent: true})
		defer early.end()
		if status, a := early.post("?wait=1", goodEvent); status != http.StatusServiceUnavailable || a["error"] == nil {
			t.Errorf("without a task: %d %v", status, a)
		}
	})
}

// Nothing of events, keys and tokens is in the log or in errors.
func TestNothingIsSaid(t *testing.T) {
	const secret = "s3cr3t"
	w := newWorld(t, columns, func(c *Config) { c.Token = secret + secret + secret })
	w.openRound()
	var said bytes.Buffer
	for _, body := range []string{
		`{"key": "s3cr3t", "event": {"age": "s3cr3t", "sector": "s3cr3t", "income": "s3cr3t"}}`,
		`{"key": "s3cr3t2", "event": {"age": 1, "sector": "s3cr3t", "income": "s3cr3t"}}`,
		`{"key": "s3cr3t3", "event": {"age": 1, "sector": "private", "income": "s3cr3t"}}`,
		`{"key": "s3cr3t4", "event": {"s3cr3t": 1}}`,
		`{"key": "s3cr3t5", "event": {"age": s3cr3t}}`, `{"key": "s3cr3t7", "s3cr3t": 1, "event": {}}`, `s3cr3t`, `"s3cr3t"`,
		`{"s3cr3t": {}}`,
	} {
		r := w.request(http.MethodPost, "/v1/events?wait=1", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+secret+secret+secret)
		_, a := w.do(r)
		for key, value := range a {
			said.WriteString(key)
			if text, ok := value.(string); ok {
				said.WriteString(text)
			}
		}
	}
	r := w.request(http.MethodPost, "/v1/batches", strings.NewReader(
		"{\"key\": \"s3cr3t6\", \"event\": {\"s3cr3t\": 1}}\ns3cr3t"))
	r.Header.Set("Authorization", "Bearer "+secret+secret+secret)
	r.Header.Set("Content-Type", "application/x-ndjson")
	if status, _ := w.do(r); status != http.StatusOK { // its answer names its keys
		t.Errorf("a batch: %d", status)
	}
	w.end()
	if strings.Contains(said.String(), secret) || strings.Contains(w.log.String(), secret) {
		t.Errorf("said %s and logged %s", &said, w.log)
	}
	if n := strings.Count(w.log.String(), "sent as the zero vector"); n != 7 {
		t.Errorf("%d events that do not fit were logged:\n%s", n, w.log)
	}
}

func TestConfigIsChecked(t *testing.T) {
	w := newWorld(t, columns, nil)
	defer w.end()
	for name, c := range map[string]Config{
		"nothing":       {},
		"no token":      {Device: w.device},
		"short token":   {Device: w.device, Token: "short"},
		"both":          {Device: w.device, Token: token, NoToken: true},
		"token, blanks": {Device: w.device, Token: "a token of several lines\n"},
		"rate":          {Device: w.device, NoToken: true, Rate: -1},
		"body":          {Device: w.device, NoToken: true, MaxBody: -1},
		"waiting":       {Device: w.device, NoToken: true, MaxWaiting: -1},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// A disk notes that a write has become durable, or fails.
type disk struct {
	participation.Store
	err     error
	durable *atomic.Bool
}

func (d disk) Write(c participation.Change) error {
	if d.err != nil {
		return d.err
	}
	defer d.durable.Store(true)
	return d.Store.Write(c)
}

// No event is accepted before its participation is durable, and none is where it does not become so.
func TestAcceptedIsDurable(t *testing.T) {
	for _, failure := range []error{nil, errors.New("the disk is full")} {
		var durable atomic.Bool
		w := newWorldOf(t, columns, options{store: disk{participation.NewMemoryStore(), failure, &durable}})
		w.openRound()
		status, a := w.post("?wait=30", goodEvent)
		switch {
		case failure == nil && (status != http.StatusAccepted || a["outcome"] != "accepted" || !durable.Load()):
			t.Errorf("%d %v, durable: %t", status, a, durable.Load())
		case failure != nil && (status != http.StatusServiceUnavailable || a["outcome"] != nil):
			t.Errorf("%d %v, never durable", status, a)
		}
		w.end()
	}
}

// A body that is larger than any event of the declared shape is not parsed, or the time when its report leaves would
// tell.
func TestParsingIsBounded(t *testing.T) {
	for declaration, good := range map[string]string{
		columns: `{"key": "a", "event": {"age": 50, "sector": "public", "income": ">50K"`,
		vector:  `{"key": "a", "event": {"value": [1, 0, 0, -1], "label": 1`,
	} {
		w := newWorld(t, declaration, nil)
		for blanks, fits := range map[int]bool{0: true, 4000: true, 70_000: false, 1 << 19: false, 1 << 21: false} {
			body := strings.Replace(good, `"a"`, fmt.Sprintf(`"%d"`, blanks), 1) + strings.Repeat(" ", blanks) + "}}"
			if status, a := w.post("?wait=0", body); status != http.StatusAccepted || a["fits"] != fits {
				t.Errorf("%d blanks: %d %v, want %v", blanks, status, a, fits)
			}
		}
		w.end()
	}
}

// Whatever is posted is read as it is, and no panic.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{`{"key": "a", "event": {"age": 50, "sector": "public", "income": ">50K"}}`,
		`{"key": "a", "events": [{"x": 1}, 7]}`, `{`, "{\n}", "\x1f\x8b", `[]`, "{\"key\": \"a\"}\n{\"key\": \"b\"}\r\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := readRequest(bytes.NewReader(text), 1<<10)
		if err != nil || len(b.text) > 1<<10 || len(b.name()) > device.MaxKey {
			t.Error("not read as it is")
		}
		_, _ = parseEvent(b.text, 1<<9)
		_ = parsePerson(b.name(), b.text)
		lines, err := readLines(bytes.NewReader(text), 1<<8)
		if want := bytes.Count(text, []byte("\n")) + 1; err != nil || len(lines) > want {
			t.Errorf("%d lines of %d, %v", len(lines), want, err)
		}
	})
}
