package relayclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
	"github.com/panlearn/panlearn/stream/relayclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const churn = stream.Task("churn")

// against returns a client of a server that sends one response to everything.
func against(t *testing.T, answer http.HandlerFunc) *relayclient.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	c, err := relayclient.New(relayclient.Config{URL: server.URL, Token: "hush", Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		server.Close()
	})
	return c
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.Close()
	}
}

// TestNothingElseIsAnAnswer: whatever somebody between makes of a POST, its report stays Unknown, and what reads is
// neither a record nor its absence.
func TestNothingElseIsAnAnswer(t *testing.T) {
	id := [16]byte{1, 2, 3}
	other := relayhttp.Answer{ID: [16]byte{9}, Status: stream.Refused}.Bytes()
	refused := relayhttp.Answer{ID: id, Status: stream.Refused, Reason: stream.StreamFull}.Bytes()
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, q *http.Request) {
			_, _ = io.Copy(io.Discard, q.Body) // it was forwarded
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	wrong := map[string]http.HandlerFunc{
		"another's answer":   status(200, string(other)),
		"a page":             status(200, "<html>log in here</html>"),
		"nothing":            status(200, ""),
		"half an answer":     status(200, string(refused[:len(refused)-1])),
		"an answer and more": status(200, string(refused)+"x"),
		"a cut connection":   func(w http.ResponseWriter, _ *http.Request) { cut(w) },
		"a cut body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(refused)
		},
	}
	for _, code := range []int{201, 202, 204, 206, 301, 302, 303, 307, 308, 400, 401, 403, 404, 408, 409, 411, 413, 415, 425, 429,
		500, 502, 503, 504, 507, 520, 524} {
		wrong[http.StatusText(code)+"?"] = status(code, string(refused)) // with the very words of a refusal
	}
	for what, answer := range wrong {
		c := against(t, answer)
		acks, err := c.Publish(t.Context(), []stream.Outgoing{{Subject: churn.Report(1, 1), ID: id, Data: []byte("x")}})
		if len(acks) != 1 || acks[0].Status != stream.Unknown || acks[0].Sequence != 0 || acks[0].Reason != 0 ||
			errors.Is(err, stream.ErrRefused) {
			t.Errorf("%s: %+v, %v", what, acks, err)
		}
		for name, read := range map[string]func() error{
			"get":    func() error { _, err := c.Get(t.Context(), churn.Open(1, 1)); return err },
			"latest": func() error { _, err := c.Latest(t.Context(), churn.Rounds()); return err },
		} {
			if err := read(); err == nil || errors.Is(err, stream.ErrNotFound) || errors.Is(err, stream.ErrRefused) ||
				errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("%s: %s: %v", what, name, err)
			}
		}
		// Of a 200 the bytes are the stage's or nobody's, which the reader of a place finds out.
		if _, err := c.Place(t.Context(), churn.Place(1, 1), []byte("x")); err == nil && strings.HasSuffix(what, "?") {
			t.Errorf("%s: a place is answered", what)
		}
	}
	// The same words in a 200 with the id are one.
	c := against(t, status(200, string(refused)))
	acks, err := c.Publish(t.Context(), []stream.Outgoing{{Subject: churn.Report(1, 1), ID: id, Data: []byte("x")}})
	if err != nil || acks[0].Status != stream.Refused || acks[0].Cause != stream.StreamFull.String() {
		t.Errorf("a refusal: %+v, %v", acks, err)
	}
}

// TestNoRedirectionIsFollowed: no report goes where an answer points.
func TestNoRedirectionIsFollowed(t *testing.T) {
	asked := 0
	c := against(t, func(w http.ResponseWriter, q *http.Request) {
		asked++
		http.Redirect(w, q, "/v1/tasks/other/reports", http.StatusTemporaryRedirect)
	})
	_, _ = c.Publish(t.Context(), []stream.Outgoing{{Subject: churn.Report(1, 1), Data: []byte("x")}})
	if asked != 1 {
		t.Errorf("%d requests", asked)
	}
}

// TestLongAnswers: an answer that is longer than what was asked for is not read to its end, and no error
// repeats a token.
func TestLongAnswers(t *testing.T) {
	const most = 16 << 20 // far more than an answer has, and than sockets hold
	read := make(chan int64, 1)
	c := against(t, func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		if strings.HasSuffix(q.URL.Path, "/task") {
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "you sent "+q.Header.Get("Authorization"))
			return
		}
		n, _ := io.Copy(w, io.LimitReader(endless{}, most))
		read <- n
	})
	for what, ask := range map[string]func() error{
		"latest": func() error { _, err := c.Latest(t.Context(), churn.Rounds()); return err },
		"place":  func() error { _, err := c.Place(t.Context(), churn.Place(1, 1), []byte("x")); return err },
		"report": func() error {
			_, err := c.Publish(t.Context(), []stream.Outgoing{{Subject: churn.Report(1, 1), Data: []byte("x")}})
			return err
		},
	} {
		err := ask()
		if n := <-read; n == most {
			t.Errorf("%s: all of an endless answer is read: %v", what, err)
		}
	}
	if _, err := c.Get(t.Context(), churn.Task()); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("an error repeats an answer: %v", err)
	}
}

// endless is zeros without end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// A handled transport passes each request to a handler, without a connection.
type handled http.HandlerFunc

func (h handled) RoundTrip(q *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h(w, q)
	return w.Result(), nil
}

// TestWatchIsPaced: a relay that replies to every request at once, with news each time, is not requested without end.
func TestWatchIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := uint64(0)
		c, err := relayclient.New(relayclient.Config{URL: "http://relay", HTTP: handled(
			func(w http.ResponseWriter, q *http.Request) {
				if !strings.HasSuffix(q.URL.Path, relayhttp.Latest) {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				asked++
				s := relayhttp.State{Round: relayhttp.Mark{Round: 1, Sequence: asked}}
				_, _ = w.Write(s.Bytes())
			})})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 550*time.Millisecond)
		defer cancel()
		wakes, err := c.Watch(ctx, churn)
		if err != nil {
			t.Fatal(err)
		}
		for range wakes {
		}
		if asked != 6 {
			t.Errorf("%d requests in 0.55 s, want one every 0.1 s", asked)
		}
	})
}

// TestAnotherRecordIsNone: a record by its hash has that hash, and one by its name the hash and the sequence that the
// relay says.
func TestAnotherRecordIsNone(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("ETag", `"00"`)
		w.Header().Set(relayhttp.Sequence, "1")
		if strings.HasSuffix(q.URL.Path, relayhttp.Latest) {
			s := relayhttp.State{Round: relayhttp.Mark{Round: 1, Sequence: 2, Hash: relayhttp.HashOf([]byte("true"))}}
			_, _ = w.Write(s.Bytes())
			return
		}
		_, _ = io.WriteString(w, "false")
	})
	if m, err := c.Latest(t.Context(), churn.Rounds()); err == nil {
		t.Errorf("another record by a hash: %+v", m)
	}
	if m, err := c.Get(t.Context(), churn.Round(1)); err == nil {
		t.Errorf("a record without its hash: %+v", m)
	}
}

// TestConfig: what no relay is reached by is refused, and no error quotes a token or a password.
func TestConfig(t *testing.T) {
	for _, url := range []string{"", "reports.example", "nats://127.0.0.1:4222", "https://", "https://me:hush@reports.example",
		"https://reports.example/?a=b", "https://reports.example/#a", "http://[::1", "https://hush@x/%zz"} {
		if _, err := relayclient.New(relayclient.Config{URL: url, Token: "hush"}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", url, err)
		}
	}
	named, err := relayclient.New(relayclient.Config{URL: "https://reports.example/", Token: "hush"})
	if err != nil || named.String() != "the relay https://reports.example" {
		t.Errorf("%v, %v", named, err)
	}
	for _, c := range []relayclient.Config{{Wait: time.Millisecond}, {Wait: time.Hour}, {Timeout: -1}, {Posts: -1}} {
		if c.URL = "https://reports.example"; c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
