package kills

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A meddler is between devices and a relay, and treats requests as proxies do.
type meddler struct {
	server *httptest.Server
	to     string

	mu   sync.Mutex
	rng  *rand.Rand     // guarded by mu
	made map[string]int // guarded by mu; how often it did what
}

// newMeddler starts one that asks a relay.
func newMeddler(t testing.TB, to string) *meddler {
	m := &meddler{to: to, rng: rand.New(rand.NewPCG(1, 1)), made: make(map[string]int)}
	m.server = httptest.NewServer(m)
	t.Cleanup(m.server.Close)
	return m
}

// tell logs what was done, and fails where it was too little to show anything.
func (m *meddler) tell(t *testing.T) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t.Logf("the meddler: %v", m.made)
	for _, what := range []string{"answers after forwarding", "repeats", "cuts a wait"} {
		if m.made[what] == 0 {
			t.Errorf("the meddler never %s", what)
		}
	}
}

// draw decides what is done to a request, and with what.
func (m *meddler) draw(q *http.Request) (what string, status int, after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lot := m.rng.IntN(10)
	status = []int{http.StatusBadGateway, http.StatusTooManyRequests, http.StatusRequestEntityTooLarge}[m.rng.IntN(3)]
	after = time.Duration(m.rng.Int64N(int64(300 * time.Millisecond)))
	switch {
	case q.Method == http.MethodPost && lot < 3:
		what = "answers after forwarding"
	case q.Method == http.MethodPost && lot < 6:
		what = "repeats"
	case strings.Contains(q.URL.RawQuery, "wait=") && lot < 7:
		what = "cuts a wait"
	}
	if what != "" {
		m.made[what]++
	}
	return what, status, after
}

func (m *meddler) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	what, status, after := m.draw(q)
	if what == "cuts a wait" {
		select {
		case <-q.Context().Done():
		case <-time.After(after):
		}
		panic(http.ErrAbortHandler)
	}
	if what == "repeats" {
		if first, err := m.ask(q, body); err == nil {
			first.Body.Close()
		}
	}
	r, err := m.ask(q, body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer r.Body.Close()
	if what == "answers after forwarding" {
		w.WriteHeader(status)
		return
	}
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(r.StatusCode)
	_, _ = io.Copy(w, r.Body)
}

func (m *meddler) ask(q *http.Request, body []byte) (*http.Response, error) {
	next, err := http.NewRequestWithContext(q.Context(), q.Method, m.to+q.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	next.Header = q.Header.Clone()
	return http.DefaultTransport.RoundTrip(next)
}
