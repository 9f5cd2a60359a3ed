package tracing

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
)

// A receiver is a collector of OTLP over HTTP that keeps what it is sent.
type receiver struct {
	mu    sync.Mutex
	spans []*wire.Span
	roles []string
	wrong []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	data, err := io.ReadAll(req.Body)
	var m collector.ExportTraceServiceRequest
	if err == nil { // refuses fields that the schema does not have
		err = protojson.Unmarshal(data, &m)
	}
	if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/json" {
		r.wrong = append(r.wrong, fmt.Sprintf("%s: %v", req.URL.Path, err))
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, from := range m.ResourceSpans {
		for _, a := range from.Resource.Attributes {
			r.roles = append(r.roles, a.Key+"="+a.Value.GetStringValue())
		}
		for _, s := range from.ScopeSpans {
			r.spans = append(r.spans, s.Spans...)
		}
	}
}

func (r *receiver) named(t *testing.T, name string) *wire.Span {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no span %q", name)
	return nil
}

// inHex undoes what the general form of JSON does to ids, which OTLP writes in hexadecimal: they were read as base64.
func inHex(id []byte) string { return base64.StdEncoding.EncodeToString(id) }

func keys(s *wire.Span) (out []string) {
	for _, a := range s.Attributes {
		out = append(out, strings.TrimPrefix(a.Key, "panlearn."))
	}
	slices.Sort(out)
	return out
}

func tracer(t *testing.T, role, url string) *Tracer {
	t.Helper()
	out, err := New(role, "churn", url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Learner and stage, two processes, make one trace of a round, with public numbers and nothing else.
func TestOneTraceOfTwoProcesses(t *testing.T) {
	sink := new(receiver)
	server := httptest.NewServer(sink)
	defer server.Close()
	learner, mixer := tracer(t, "panlearn learner", server.URL), tracer(t, "panlearn stage", server.URL+"/")
	told := 0
	o := mixer.Stage(stage.Observer{Opened: func(uint64, uint64) { told++ }, Dropped: func(uint64, uint64) { told++ },
		Released: func(uint64, uint64, time.Duration) { told++ }, Report: func(stage.Reason) { told++ }})
	l := learner.Learner()
	l.Resumed(service.Progress{})
	l.Announced(3, 40)
	o.Opened(3, 1)
	o.Dropped(3, 1)
	o.Opened(3, 2)
	o.Report(stage.Accepted)
	o.Released(3, 38, time.Second)
	l.Applied(service.Applied{Progress: service.Progress{EpsilonSpent: 0.5}, Attempt: 2, BatchUsers: 38, Took: 3 * time.Second, Waited: 2 * time.Second})
	l.Applied(service.Applied{}) // of nothing that was announced
	for _, x := range []*Tracer{learner, mixer, nil} {
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if told != 5 {
		t.Errorf("the other observer was told %d times, want 5", told)
	}
	if len(sink.wrong) > 0 {
		t.Fatal(sink.wrong)
	}
	if len(sink.spans) != 5 {
		t.Fatalf("%d spans, want 5: a round with two parts, and two attempts", len(sink.spans))
	}
	round := sink.named(t, "round")
	at := rootOf("churn", 3)
	if inHex(round.TraceId) != at.trace.String() || inHex(round.SpanId) != at.span.String() || len(round.ParentSpanId) != 0 {
		t.Errorf("the round's ids %x, %x under %x", round.TraceId, round.SpanId, round.ParentSpanId)
	}
	if d := round.EndTimeUnixNano - round.StartTimeUnixNano; d != uint64(3*time.Second) {
		t.Errorf("the round took %d ns, want 3 s", d)
	}
	if got := keys(round); !slices.Equal(got, []string{"attempt", "cohort", "epsilon_spent", "round", "users", "void"}) {
		t.Errorf("the round says %v", got)
	}
	wait, commit := sink.named(t, "wait for the batch"), sink.named(t, "step and commit")
	if wait.EndTimeUnixNano-wait.StartTimeUnixNano != uint64(2*time.Second) || commit.StartTimeUnixNano != wait.EndTimeUnixNano ||
		commit.EndTimeUnixNano != round.EndTimeUnixNano {
		t.Errorf("wait %v, commit %v", wait, commit)
	}
	var died int
	for _, s := range sink.spans {
		if !bytes.Equal(s.TraceId, round.TraceId) || s != round && !bytes.Equal(s.ParentSpanId, round.SpanId) {
			t.Errorf("%s is not a part of the round", s.Name)
		}
		if s.Name == "attempt" {
			if s.GetStatus().GetCode() == wire.Status_STATUS_CODE_ERROR {
				died++
			} else if got := keys(s); !slices.Equal(got, []string{"attempt", "round", "users"}) {
				t.Errorf("the attempt says %v", got)
			}
		}
	}
	if died != 1 {
		t.Errorf("%d attempts died, want 1", died)
	}
	for _, want := range []string{"service.name=panlearn learner", "service.name=panlearn stage", "panlearn.task=churn"} {
		if !slices.Contains(sink.roles, want) {
			t.Errorf("no %s in %v", want, sink.roles)
		}
	}
}

// Rounds and tasks have traces of their own, the same in every process.
func TestIDsOfRounds(t *testing.T) {
	seen := map[root]bool{}
	for _, task := range []string{"churn", "churn2"} {
		for round := range uint64(300) {
			r := rootOf(task, round)
			if seen[r] || !r.trace.IsValid() || !r.span.IsValid() || r != rootOf(task, round) {
				t.Fatalf("%s, round %d: %v", task, round, r)
			}
			seen[r] = true
		}
	}
}

// A collector that is not there costs nothing but spans.
func TestNoCollector(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	x := tracer(t, "panlearn learner", gone.URL)
	l := x.Learner()
	l.Announced(1, 10)
	l.Applied(service.Applied{Took: time.Second})
	if err := x.Close(); err != nil {
		t.Logf("the last spans: %v", err) // the caller logs it
	}
	for _, url := range []string{"", "collector:4318", "ftp://collector", "http://"} {
		if _, err := New("r", "t", url, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%q is taken for a collector", url)
		}
	}
}
