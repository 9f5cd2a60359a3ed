package httpgateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	columns = `
version: 1
name: income
events: {format: csv, header: true}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: sector, kind: categorical, vocabulary: [private, public]}
label: {column: income, positive: [">50K"], negative: ["<=50K"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 100000, plan: proved}
`
	vector = `
version: 1
name: pixels
events: {format: libsvm}
features: {vector: {dimension: 4, min: -1, max: 1}}
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 100000, plan: proved}
`
	token = "correct-horse-battery"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A fake is a client whose rounds are the test's to open and to close.
type fake struct {
	store     *Store
	agreement *consent.Agreement
	ready     chan struct{} // closed when the task is announced
	open      chan struct{} // closed when a round takes events
	over      chan struct{} // closed when it has counted them

	mu      sync.Mutex
	refused *consent.RefusedError
	got     map[participation.Key]convex.Example   // of the first Publish of a key
	blocks  map[participation.Key][]convex.Example // of the first PublishBlockFunc of a key
	calls   int
	offered time.Time // when PublishBlockFunc was called last
}

// Agreement implements Publisher.
func (f *fake) Agreement(ctx context.Context) (*consent.Agreement, error) {
	select {
	case <-f.ready: // whatever the time is, as a client's
		return f.agreement, nil
	default:
	}
	select {
	case <-f.ready:
		return f.agreement, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// PublishBlockFunc implements Publisher.
func (f *fake) PublishBlockFunc(ctx context.Context, key participation.Key, _ int,
	work func() []convex.Example) (device.Outcome, error) {
	f.mu.Lock()
	f.offered = time.Now()
	f.mu.Unlock()
	rows := work()
	f.mu.Lock()
	if _, known := f.blocks[key]; !known {
		f.blocks[key] = rows
	}
	f.mu.Unlock()
	return f.settle(ctx, key)
}

// PublishFunc implements Publisher.
func (f *fake) PublishFunc(ctx context.Context, key participation.Key, work func() convex.Example) (device.Outcome,
	error) {
	e := work()
	f.mu.Lock()
	if _, known := f.got[key]; !known {
		f.got[key] = e
	}
	f.mu.Unlock()
	return f.settle(ctx, key)
}

// settle does as a client does: charged durably, then counted.
func (f *fake) settle(ctx context.Context, key participation.Key) (device.Outcome, error) {
	f.mu.Lock()
	f.calls++
	refused := f.refused
	f.mu.Unlock()
	if refused != nil {
		return device.Outcome{State: participation.Refused, Refused: refused}, refused
	}
	for _, step := range []struct {
		when  chan struct{}
		state participation.State
	}{{f.open, participation.Charged}, {f.over, participation.Counted}} {
		select {
		case <-step.when:
		case <-ctx.Done():
			return device.Outcome{State: participation.Unknown}, ctx.Err()
		}
		part := participation.Record{Key: key, State: step.state, Rounds: 1, Draw: participation.Draw{Round: 7, Phase: 1,
			Most: 1}}
		if err := f.store.Write(participation.Change{Events: []participation.Record{part}}); err != nil {
			return device.Outcome{}, err
		}
	}
	return device.Outcome{State: participation.Counted, Round: 7}, nil
}

type world struct {
	*fake
	t       *testing.T
	gateway *Gateway
	handler http.Handler
	log     *bytes.Buffer
}

// newWorld returns a gateway over a fake, whose task is announced and whose round is not open.
func newWorld(t *testing.T, declaration string, change func(*Config)) *world {
	t.Helper()
	spec, err := task.Parse([]byte(declaration), nil)
	must(t, err)
	features, err := spec.Compile()
	must(t, err)
	agreement := &consent.Agreement{Spec: spec, Features: features, Loss: convex.Logistic{}, Delta: 1e-6}
	agreement.Guarantee.Epsilon, agreement.HonestFraction = 0.5, accounting.One
	store := Watch(participation.NewMemoryStore())
	w := &world{t: t, log: new(bytes.Buffer), fake: &fake{store: store, agreement: agreement, ready: make(chan struct{}),
		open: make(chan struct{}),
		over: make(chan struct{}), got: make(map[participation.Key]convex.Example),
		blocks: make(map[participation.Key][]convex.Example)}}
	close(w.ready)
	c := Config{Device: w.fake, Store: store, Token: token,
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&c)
	}
	w.gateway, err = New(c)
	must(t, err)
	w.handler = w.gateway.Handler()
	return w
}

// do serves a request and reads its JSON, whose members are checked to be those of a type of the package.
func (w *world) do(r *http.Request) (status int, body map[string]any) {
	w.t.Helper()
	got := httptest.NewRecorder()
	w.handler.ServeHTTP(got, r)
	if strings.HasPrefix(got.Header().Get("Content-Type"), "application/json") {
		must(w.t, json.Unmarshal(got.Body.Bytes(), &body))
	}
	return got.Code, body
}

func (w *world) request(method, target string, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(w.t.Context(), method, target, body)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	return r
}

func (w *world) post(query, body string) (status int, answer map[string]any) {
	w.t.Helper()
	return w.do(w.request(http.MethodPost, "/v1/events"+query, strings.NewReader(body)))
}

// expect posts an event and compares status and outcome.
func (w *world) expect(query, body string, status int, outcome string) map[string]any {
	w.t.Helper()
	got, a := w.post(query, body)
	if got != status || a["outcome"] != outcome {
		w.t.Errorf("POST %s: %d %v, want %d %s", query, got, a, status, outcome)
	}
	return a
}
