package relay_test

import (
	"net/http"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
	"github.com/panlearn/panlearn/stream/relayclient"
	"github.com/panlearn/panlearn/stream/wire"
)

// splitTask returns a record that says what a relay looks at of a Task of two operators.
func splitTask(t *testing.T, trust wire.Trust) string {
	t.Helper()
	body, err := proto.Marshal(&wire.Task{Version: 1, Name: "churn", LearnerKey: make([]byte, 32), StageKey: make([]byte, 32),
		HelperKey: make([]byte, 32), Life: make([]byte, 16), Suite: wire.Suite_SUITE_MLKEM768_X25519,
		Plan: &wire.Plan{Trust: trust, Epsilon: 1, Delta: 1e-6, EpsilonBudget: 1, Phases: []*wire.Phase{{Users: 10, Rounds: 1,
			Cohort: 10, Minimum: 10, RoundsPerUser: 1, Mechanism: &wire.Mechanism{Dim: 1, ClipNorm: 1, Levels: 1, Coin: 1 << 23,
				CoinBits: 24, FloorTrials: 100, MaxBundle: 1}}}}})
	must(t, err)
	record, err := proto.Marshal(&wire.Signed{Version: 1, Kind: wire.Kind_KIND_TASK, Body: body, Key: make([]byte, 32),
		Signature: make([]byte, 64)})
	must(t, err)
	return string(record)
}

// pairs makes a site whose task has two operators, and a client of it that watches.
func pairs(t *testing.T, trust wire.Trust) (*site, *relayclient.Client, <-chan stream.Wake) {
	s := newSite(t, nil)
	s.broker.Lose(churn.Task())
	s.put(churn.Task(), splitTask(t, trust))
	c, err := relayclient.New(relayclient.Config{URL: "http://localhost", HTTP: over{s}})
	must(t, err)
	t.Cleanup(c.Close)
	wakes, err := c.Watch(t.Context(), churn)
	must(t, err)
	if w := next(t, wakes); w.Subject != "" {
		t.Fatalf("the first wake is of %s", w.Subject)
	}
	return s, c, wakes
}

// over makes requests of a site.
type over struct{ s *site }

func (o over) RoundTrip(q *http.Request) (*http.Response, error) {
	q.RequestURI, q.RemoteAddr = q.URL.RequestURI(), "127.0.0.1:1"
	if q.Body == nil {
		q.Body = http.NoBody
	}
	done := make(chan *http.Response, 1)
	go func() { done <- o.s.do(q).Result() }()
	select {
	case r := <-done:
		return r, nil
	case <-q.Context().Done():
		<-done
		return nil, q.Context().Err()
	}
}

func next(t *testing.T, wakes <-chan stream.Wake) stream.Wake {
	t.Helper()
	select {
	case w := <-wakes:
		return w
	case <-time.After(20 * time.Second):
		t.Fatal("no wake came")
		return stream.Wake{}
	}
}

// TestOpenAndJoinAreServedTogether: in a task of two operators waiting requests get an Open once it has a Join, and
// both at once, whichever of the two came first, and also if the newest Open has none.
func TestOpenAndJoinAreServedTogether(t *testing.T) {
	s, c, wakes := pairs(t, wire.Trust_TRUST_SPLIT)
	latest := func() (string, error) {
		m, err := c.Latest(t.Context(), churn.Opens(1))
		return m.Subject, err
	}
	s.put(churn.Round(1), "round one")
	if w := next(t, wakes); w.Subject != churn.Round(1) {
		t.Fatalf("a wake of %q, want of the round", w.Subject)
	}
	s.put(churn.Open(1, 1), "open one")
	if subject, err := latest(); err == nil {
		t.Errorf("%s is shown without its Join", subject)
	}
	s.put(churn.Join(1, 1), "join one")
	for _, want := range []string{churn.Open(1, 1), churn.Join(1, 1)} {
		if w := next(t, wakes); w.Subject != want {
			t.Errorf("a wake of %q, want %q", w.Subject, want)
		}
	}
	s.put(churn.Join(1, 2), "join two")
	s.put(churn.Open(1, 2), "open two")
	for _, want := range []string{churn.Open(1, 2), churn.Join(1, 2)} {
		if w := next(t, wakes); w.Subject != want {
			t.Errorf("a wake of %q, want %q", w.Subject, want)
		}
	}
	s.put(churn.Open(1, 3), "open three")
	if subject, err := latest(); err != nil || subject != churn.Open(1, 2) {
		t.Errorf("the newest open is %s, %v: want the newest whose Join stands", subject, err)
	}
	if m, err := c.Get(t.Context(), churn.Join(1, 2)); err != nil || string(m.Data) != "join two" {
		t.Errorf("a Join is read as %q, %v", m.Data, err)
	}
	for _, subject := range []string{churn.Share(1), churn.Helper(), churn.Batch(1)} {
		if _, err := c.Get(t.Context(), subject); err == nil {
			t.Errorf("%s is served", subject)
		}
	}
	s.put(churn.Share(1), "share one")
	for _, path := range []string{"shares/1", "share/1", "helper"} {
		if got := s.do(s.request(http.MethodGet, path, nil)); got.Code != http.StatusNotFound {
			t.Errorf("GET %s: %d", path, got.Code)
		}
	}
}

// TestOpensOfOneOperatorNeedNoJoin: a Join that somebody put beside a task of one operator changes nothing there.
func TestOpensOfOneOperatorNeedNoJoin(t *testing.T) {
	s, c, wakes := pairs(t, wire.Trust_TRUST_PAN)
	s.put(churn.Round(1), "round one")
	next(t, wakes)
	s.put(churn.Join(1, 1), "join one")
	s.put(churn.Open(1, 1), "open one")
	if w := next(t, wakes); w.Subject != churn.Open(1, 1) {
		t.Errorf("a wake of %q", w.Subject)
	}
	if m, err := c.Latest(t.Context(), churn.Opens(1)); err != nil || m.Subject != churn.Open(1, 1) {
		t.Errorf("%s, %v", m.Subject, err)
	}
	got := s.do(s.request(http.MethodGet, "rounds/latest", nil))
	state, err := relayhttp.ParseState(got.Body.Bytes())
	if err != nil || state.Join != (relayhttp.Mark{}) || got.Body.Bytes()[0] != 1 {
		t.Errorf("%+v, %v", state, err)
	}
}
