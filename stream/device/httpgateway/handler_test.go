package httpgateway

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

const goodEvent = `{"key": "anna", "event": {"age": 50, "sector": "public", "income": ">50K", "name": "passed over"}}`

// An event is waiting, accepted when its participation is durable, and counted in the end; the same key is answered,
// and the client has it once.
func TestAnEventsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, columns, nil)
		defer w.gateway.Close()
		begun := time.Now()
		w.expect("?wait=0", goodEvent, http.StatusAccepted, "waiting")
		if took := time.Since(begun); took != 0 {
			t.Errorf("wait=0 took %v", took)
		}
		w.expect("?wait=3", goodEvent, http.StatusAccepted, "waiting")
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("wait=3 took %v", took)
		}
		time.AfterFunc(time.Second, func() { close(w.open) })
		begun = time.Now()
		a := w.expect("", goodEvent, http.StatusAccepted, "accepted")
		if took := time.Since(begun); took != time.Second {
			t.Errorf("accepted after %v, durable after 1s", took)
		}
		if a["final"] != false || a["round"] != 7.0 || a["fits"] != true {
			t.Errorf("accepted: %v", a)
		}
		w.expect("?until=outcome&wait=1", goodEvent, http.StatusAccepted, "accepted")
		time.AfterFunc(time.Second, func() { close(w.over) })
		w.expect("?until=outcome", goodEvent, http.StatusOK, "counted")
		if a := w.expect("", goodEvent, http.StatusOK, "counted"); a["final"] != true || a["round"] != 7.0 {
			t.Errorf("counted: %v", a)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.calls != 1 || len(w.got) != 1 {
			t.Errorf("the client got %d events in %d calls, want 1", len(w.got), w.calls)
		}
		if e := w.got[participation.EventKey("anna")]; e.Label != 1 || w.agreement.Valid(e) != nil {
			t.Error("the client got another event")
		}
	})
}

// Events reach the client as the same rows of a file would.
func TestEventsAreMapped(t *testing.T) {
	for _, test := range []struct {
		task, event string
		fits        bool
		want        convex.Example
	}{
		{vector, `{"value": [0.5, 0, 0, -1], "label": 1}`, true, convex.Example{Index: []int32{0, 3, 4},
			Value: []float64{0.5, -1, 1}, Label: 1}},
		{vector, `{"index": [1, 3], "value": [0.5, -1], "label": "-1"}`, true, convex.Example{Index: []int32{1, 3, 4},
			Value: []float64{0.5, -1, 1}, Label: -1}},
		{vector, `{"index": [3, 1], "value": [0.5, -1], "label": 1}`, false, convex.Example{}},
		{vector, `{"index": [-1], "value": [0.5], "label": 1}`, false, convex.Example{}},
		{vector, `{"index": [9], "value": [0.5], "label": 1}`, false, convex.Example{}},
		{vector, `{"index": [1], "value": [0.5, 1], "label": 1}`, false, convex.Example{}},
		{vector, `{"value": [1], "label": 1}`, false, convex.Example{}},
		{vector, `{"value": [1, 1, 1, 1e999], "label": 1}`, false, convex.Example{}},
		{vector, `{"value": [1, 1, 1, 1], "label": 3}`, false, convex.Example{}},
		{vector, `{"value": [1, 1, 1, 1]}`, false, convex.Example{}},
		{vector, `{"value": [1, 1, 1, 1], "label": [1]}`, false, convex.Example{}},
		{vector, `{"value": [1, 1, 1, 1], "label": 1, "more": 1}`, false, convex.Example{}},
		{columns, "{\"sector\": \"public\",\n\"income\": \"<=50K\", \"age\": 100}", true,
			convex.Example{Index: []int32{0, 2, 3}, Value: []float64{1, 1, 1}, Label: -1}},
		{columns, `{"age": 200, "sector": "public", "income": "<=50K"}`, true, convex.Example{Index: []int32{0, 2, 3},
			Value: []float64{1, 1, 1}, Label: -1}},
		{columns, `{"age": "old", "sector": "public", "income": "<=50K"}`, false, convex.Example{}},
		{columns, `{"age": 1, "age": 2, "sector": "public", "income": "<=50K"}`, false, convex.Example{}},
		{columns, `{"sector": "public", "income": "<=50K"}`, true, convex.Example{Index: []int32{0, 2, 3},
			Value: []float64{0, 1, 1}, Label: -1}},
		{columns, `{"age": null, "income": "<=50K"}`, true, convex.Example{Index: []int32{0, 3}, Value: []float64{0, 1},
			Label: -1}},
		{columns, `{"age": 1, "sector": "public"}`, false, convex.Example{}},
		{columns, `{"age": 1, "sector": "public", "income": "rich"}`, false, convex.Example{}},
		{columns, `{"age": {"years": 1}, "sector": "public", "income": "<=50K"}`, false, convex.Example{}},
		{columns, `{}`, false, convex.Example{}},
	} {
		w := newWorld(t, test.task, nil)
		close(w.open)
		close(w.over)
		a := w.expect("?until=outcome", `{"key": "k", "event": `+test.event+`}`, http.StatusOK, "counted")
		if a["fits"] != test.fits {
			t.Errorf("%s: fits %v, want %v", test.event, a["fits"], test.fits)
		}
		e := w.got[participation.EventKey("k")]
		if test.fits && (e.Label != test.want.Label || !slices.Equal(e.Index, test.want.Index) ||
			!slices.Equal(e.Value, test.want.Value)) {
			t.Errorf("%s: mapped to %v %v %v, want %v %v %v", test.event, e.Index, e.Value, e.Label, test.want.Index,
				test.want.Value, test.want.Label)
		}
		if (w.agreement.Valid(e) == nil) != test.fits {
			t.Errorf("%s: the client takes it for valid: %t", test.event, !test.fits)
		}
		w.gateway.Close()
	}
}

// Requests that are not as described take nothing.
func TestRefusedRequests(t *testing.T) {
	w := newWorld(t, columns, func(c *Config) { c.MaxBody = 300 })
	defer w.gateway.Close()
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
		"no JSON":         {http.StatusBadRequest, nil, "", "age=50"},
		"large, no key":   {http.StatusBadRequest, nil, "", `{"kez": "` + strings.Repeat("k", 3000) + `"}`},
		"a key inside":    {http.StatusBadRequest, nil, "", `{"event": {"key": "anna"}}`},
		"a key that is 1": {http.StatusBadRequest, nil, "", `{"key": 1, "event": {}}`},
		"no key":          {http.StatusBadRequest, nil, "", `{"event": {}}`},
		"empty key":       {http.StatusBadRequest, nil, "", `{"key": "", "event": {}}`},
		"long key":        {http.StatusBadRequest, nil, "", `{"key": "` + strings.Repeat("k", 257) + `", "event": {}}`},
		"long wait":       {http.StatusBadRequest, nil, "?wait=31", goodEvent},
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
	if len(w.got) != 0 {
		t.Errorf("%d refused requests reached the client", len(w.got))
	}
}

// Without a token only this machine's own name will do.
func TestWithoutToken(t *testing.T) {
	w := newWorld(t, columns, func(c *Config) { c.Token, c.NoToken = "", true })
	defer w.gateway.Close()
	close(w.open)
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
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, columns, func(c *Config) { c.Rate, c.MaxWaiting = 4, 3 })
		defer w.gateway.Close()
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
		close(w.open)
		close(w.over)
		synctest.Wait()
		w.expect("?until=outcome", goodEvent, http.StatusOK, "counted") // there is room again
	})
}

// What the policy refuses is answered as refused, and what the gateway cannot answer is not an outcome.
func TestRefusedAndStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, columns, nil)
		w.refused = &consent.RefusedError{Field: "plan.epsilon", Value: "4", Accepted: "at most 1"}
		a := w.expect("", goodEvent, http.StatusForbidden, "refused")
		if why, _ := a["refused"].(map[string]any); why["field"] != "plan.epsilon" || a["final"] != true {
			t.Errorf("refused: %v", a)
		}
		w.refused = nil
		time.AfterFunc(time.Second, w.gateway.Close)
		if status, a := w.post("?wait=9", strings.Replace(goodEvent, "anna", "bert",
			1)); status != http.StatusServiceUnavailable || a["error"] == nil {
			t.Errorf("while stopping: %d %v", status, a)
		}
		if status, a := w.post("", goodEvent); status != http.StatusServiceUnavailable || a["error"] == nil {
			t.Errorf("when stopped: %d %v", status, a)
		}
		early := newWorld(t, columns, nil)
		defer early.gateway.Close()
		early.ready = make(chan struct{})
		if status, a := early.post("?wait=1", goodEvent); status != http.StatusServiceUnavailable || a["error"] == nil {
			t.Errorf("without a task: %d %v", status, a)
		}
	})
}

// Nothing of events, keys and tokens is in the log or in errors.
func TestNothingIsSaid(t *testing.T) {
	const secret = "s3cr3t"
	w := newWorld(t, columns, func(c *Config) { c.Token = secret + secret + secret })
	close(w.open)
	var said bytes.Buffer
	for _, body := range []string{
		`{"key": "s3cr3t", "event": {"age": "s3cr3t", "sector": "s3cr3t", "income": "s3cr3t"}}`,
		`{"key": "s3cr3t2", "event": {"age": 1, "sector": "s3cr3t", "income": "s3cr3t"}}`,
		`{"key": "s3cr3t3", "event": {"age": 1, "sector": "private", "income": "s3cr3t"}}`,
		`{"key": "s3cr3t4", "event": {"s3cr3t": 1}}`,
		`{"key": "s3cr3t5", "event": {"age": s3cr3t}}`, `{"key": "s3cr3t", "s3cr3t": 1, "event": {}}`, `s3cr3t`, `"s3cr3t"`,
		`{"s3cr3t": {}}`,
	} {
		r := w.request(http.MethodPost, "/v1/events", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+secret+secret+secret)
		_, a := w.do(r)
		for key, value := range a {
			said.WriteString(key)
			if text, ok := value.(string); ok {
				said.WriteString(text)
			}
		}
	}
	w.gateway.Close()
	if strings.Contains(said.String(), secret) || strings.Contains(w.log.String(), secret) {
		t.Errorf("said %s and logged %s", &said, w.log)
	}
	if n := strings.Count(w.log.String(), "sent as the zero vector"); n != 6 {
		t.Errorf("%d events that do not fit were logged:\n%s", n, w.log)
	}
}

func TestConfigIsChecked(t *testing.T) {
	store := Watch(participation.NewMemoryStore())
	for name, c := range map[string]Config{
		"nothing":       {},
		"no token":      {Device: &fake{}, Store: store},
		"short token":   {Device: &fake{}, Store: store, Token: "short"},
		"both":          {Device: &fake{}, Store: store, Token: token, NoToken: true},
		"token, blanks": {Device: &fake{}, Store: store, Token: "a token of several lines\n"},
		"rate":          {Device: &fake{}, Store: store, NoToken: true, Rate: -1},
		"body":          {Device: &fake{}, Store: store, NoToken: true, MaxBody: -1},
		"waiting":       {Device: &fake{}, Store: store, NoToken: true, MaxWaiting: -1},
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
		store := Watch(disk{participation.NewMemoryStore(), failure, &durable})
		w := newWorld(t, columns, func(c *Config) { c.Store = store })
		w.store = store
		close(w.open)
		status, a := w.post("?wait=30", goodEvent)
		switch {
		case failure == nil && (status != http.StatusAccepted || a["outcome"] != "accepted" || !durable.Load()):
			t.Errorf("%d %v, durable: %t", status, a, durable.Load())
		case failure != nil && (status != http.StatusServiceUnavailable || a["outcome"] != nil):
			t.Errorf("%d %v, never durable", status, a)
		}
		w.gateway.Close()
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
		w.gateway.Close()
	}
}

// Whatever is posted as an event makes an example of the task or a reason, and no panic.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{`{"age": 50, "sector": "public", "income": ">50K"}`,
		`{"value": [1, 0, 0, -1], "label": 1}`,
		`{"index": [0, 3], "value": [1, -1], "label": "1"}`, `{"index": [2147483647], "value": [1e308], "label": {}}`, `{`,
		"{\n}", "\x1f\x8b", `[]`} {
		f.Add([]byte(seed))
	}
	mappers := map[string]*mapper{}
	for _, declaration := range []string{columns, vector} {
		spec, err := task.Parse([]byte(declaration), nil)
		must(f, err)
		features, err := spec.Compile()
		must(f, err)
		m := new(mapper)
		must(f, m.use(&consent.Agreement{Spec: spec, Features: features, Loss: convex.Logistic{}}))
		mappers[declaration] = m
	}
	f.Fuzz(func(t *testing.T, event []byte) {
		for _, m := range mappers {
			if e, err := m.example("k", slices.Concat([]byte(`{"key":"k","event":`), event, []byte("}"))); err == nil &&
				m.agreement.Valid(e) != nil {
				t.Error("an example that is none of the task")
			}
		}
		key, body, err := readRequest(bytes.NewReader(event), 1<<10)
		if err != nil || len(body) > 1<<10 || len(key) > maxKey {
			t.Error("not read as it is")
		}
		_, _ = parseEvent(body, 1<<9)
	})
}
