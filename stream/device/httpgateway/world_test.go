package httpgateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
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
validation: {off: true}
`
	vector = `
version: 1
name: income
events: {format: libsvm}
features: {vector: {dimension: 4, min: -1, max: 1}}
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 100000, plan: proved}
validation: {off: true}
`
	token = "correct-horse-battery"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A world is a gateway over a device, whose learner and stage are the test's: they announce the task, open a round, and
// close each one, opening the next, when a report has come.
type world struct {
	t              *testing.T
	broker         *memory.Broker
	learner, stage *seal.Identity
	helper         *seal.Identity // of two operators; nil: there is one
	attempt        wire.Close     // the hashes of the newest attempt, of two operators
	task           *wire.Task
	hash           stream.Hash
	store          participation.Store
	device         *device.Device
	gateway        *Gateway
	handler        http.Handler
	log            *bytes.Buffer

	mu     sync.Mutex
	round  stream.Round // newest one
	closes bool         // rounds
	sent   int          // reports
}

// plans are the task bodies of declarations, which take a second to plan.
var plans sync.Map

func bodyOf(t *testing.T, declaration string, sets ...string) *wire.Task {
	t.Helper()
	name := declaration + strings.Join(sets, "\n")
	if known, ok := plans.Load(name); ok {
		return proto.CloneOf(known.(*wire.Task))
	}
	spec, err := task.Parse([]byte(declaration), sets)
	must(t, err)
	job, err := run.NewJob(spec)
	must(t, err)
	body, err := job.Wire()
	must(t, err)
	plans.Store(name, body)
	return proto.CloneOf(body)
}

// An options holds the ways in which a world differs.
type options struct {
	sets   []string // of the declaration
	store  participation.Store
	policy consent.Policy
	silent bool // the task is not announced
	two    bool // operators, whom the policy pins
	config func(*Config)
}

// newWorld returns a gateway whose task is announced and whose round is not open.
func newWorld(t *testing.T, declaration string, change func(*Config)) *world {
	t.Helper()
	return newWorldOf(t, declaration, options{config: change})
}

func newWorldOf(t *testing.T, declaration string, o options) *world {
	t.Helper()
	w := &world{t: t, log: new(bytes.Buffer), store: o.store}
	var err error
	w.broker, err = memory.New(memory.Config{Keep: true})
	must(t, err)
	w.learner, err = seal.NewIdentity()
	must(t, err)
	w.stage, err = seal.NewIdentity()
	must(t, err)
	if o.two {
		w.helper, err = seal.NewIdentity()
		must(t, err)
		o.policy.StageKey, o.policy.HelperKey = consent.Fingerprint(w.stage.Public()), consent.Fingerprint(w.helper.Public())
		o.sets = append(o.sets, "privacy.trust=split", fmt.Sprintf("privacy.operators={leader: \"%x\", helper: \"%x\"}",
			w.stage.Public(), w.helper.Public()))
	}
	w.task = bodyOf(t, declaration, o.sets...)
	w.task.Version, w.task.Name, w.task.Life = stream.Version, "income", make([]byte, stream.LifeSize)
	w.task.LearnerKey, w.task.StageKey = w.learner.Public(), w.stage.Public()
	body, err := stream.Marshal(w.task)
	must(t, err)
	w.hash = stream.HashOf(body)
	if !o.silent {
		w.put(w.name().Task(), w.learner, w.task)
	}
	if w.store == nil {
		w.store = participation.NewMemoryStore()
	}
	w.start(o)
	if !o.silent {
		_, _ = w.device.Agreement(t.Context()) // a refusal is the test's to see
	}
	return w
}

// start starts a gateway with its device: again, after end, as a later process does.
func (w *world) start(o options) {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(&lockedWriter{to: w.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	w.device, err = device.New(device.Settings{Task: w.name(), Transport: watching{w.broker, w}, Store: w.store,
		Submits: true, Policy: o.policy, Logger: log, Grants: grants.Gateway{}, GrantStore: grants.NewMemoryStore()})
	must(w.t, err)
	c := Config{Device: w.device, Token: token, Logger: log}
	if o.config != nil {
		o.config(&c)
	}
	w.gateway, err = New(c)
	must(w.t, err)
	w.handler = w.gateway.Handler()
}

func (w *world) name() stream.Task { return "income" }

// tick bounds the time from when an event may join until it has.
func (w *world) tick() time.Duration { return 200 * time.Millisecond }

// end stops the gateway and its device.
func (w *world) end() {
	w.gateway.Close()
	_ = w.device.Close()
}

func (w *world) put(subject string, id *seal.Identity, m proto.Message) {
	data, err := id.Sign(m)
	if err == nil {
		_, err = w.broker.PutOnce(context.Background(), subject, data)
	}
	if err != nil {
		w.t.Error(err)
	}
}

// openRound opens the next round.
func (w *world) openRound() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next()
}

// next opens the next round, with the world's lock.
func (w *world) next() {
	w.round++
	m := manifest.RoundOf(w.hash, uint64(w.round), uint64(w.round), make([]float64,
		w.task.Plan.Phases[0].Mechanism.Dim), nil)
	w.put(w.name().Round(w.round), w.learner, m)
	key, err := seal.NewRoundKey(w.task.Suite)
	if err != nil {
		w.t.Error(err)
		return
	}
	of := w.manifest()
	open := &wire.Open{Version: stream.Version, TaskHash: w.hash[:],
		Round: uint64(w.round), Attempt: 1, ManifestHash: of[:], Suite: w.task.Suite, PublicKey: key.Public(),
		Instance: make([]byte, stream.InstanceSize), StartedUnixMs: 1}
	w.put(w.name().Open(w.round, 1), w.stage, open)
	if w.helper != nil {
		w.join(open)
	}
}

// join puts the helper's part of an attempt, with the world's lock.
func (w *world) join(open *wire.Open) {
	opened, err := w.stage.Sign(open)
	must(w.t, err)
	hash := stream.HashOf(opened)
	key, err := seal.NewRoundKey(w.task.Suite)
	must(w.t, err)
	m := &wire.Join{Version: stream.Version, TaskHash: w.hash[:], Round: open.Round, Attempt: 1, ManifestHash: open.ManifestHash,
		OpenHash: hash[:], Suite: w.task.Suite, PublicKey: key.Public(), Instance: make([]byte, stream.InstanceSize),
		VerifyKeyHash: make([]byte, stream.HashSize), KeyEncapsulated: []byte{1}, KeyCiphertext: []byte{1}, StartedUnixMs: 1}
	joined, err := w.helper.Sign(m)
	must(w.t, err)
	both := stream.HashOf(joined)
	w.attempt.OpenHash, w.attempt.JoinHash = hash[:], both[:]
	w.put(w.name().Join(w.round, 1), w.helper, m)
}

// manifest returns the manifest hash of the newest round.
func (w *world) manifest() stream.Hash {
	m := manifest.RoundOf(w.hash, uint64(w.round), uint64(w.round), make([]float64,
		w.task.Plan.Phases[0].Mechanism.Dim), nil)
	hash, err := manifest.RoundHash(m)
	if err != nil {
		w.t.Error(err)
	}
	return hash
}

// closeRounds closes the round that is open, if it has a report, and each later one when it has.
func (w *world) closeRounds() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closes = true; w.sent > 0 {
		w.shut()
	}
}

// shut closes the newest round and opens another, with the world's lock.
func (w *world) shut() {
	of := w.manifest()
	w.put(w.name().Close(w.round, 1), w.stage, &wire.Close{Version: stream.Version, TaskHash: w.hash[:],
		Round: uint64(w.round), Attempt: 1, ManifestHash: of[:], BatchHash: make([]byte, stream.HashSize), Cutoff: 1 << 40,
		OpenHash: w.attempt.OpenHash, JoinHash: w.attempt.JoinHash})
	w.next()
}

// reports returns the number of reports that were sent.
func (w *world) reports() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// A watching transport notifies the world of reports.
type watching struct {
	stream.Transport
	world *world
}

// Publish implements stream.ReportWriter.
func (p watching) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := p.Transport.Publish(ctx, reports)
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	if p.world.sent += len(reports); p.world.closes {
		p.world.shut()
	}
	return acks, err
}

// A lockedWriter takes the lines of a log.
type lockedWriter struct {
	mu sync.Mutex
	to *bytes.Buffer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// do serves a request and reads its JSON.
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

// batch posts lines, and returns the response.
func (w *world) batch(query string, lines ...string) (status int, answers []map[string]any) {
	w.t.Helper()
	r := w.request(http.MethodPost, "/v1/batches"+query, strings.NewReader(strings.Join(lines, "\n")))
	r.Header.Set("Content-Type", "application/x-ndjson")
	return w.several(r)
}

// ask posts keys, and returns the response.
func (w *world) ask(query string, keys ...string) (status int, answers []map[string]any) {
	w.t.Helper()
	body, err := json.Marshal(question{Keys: keys})
	must(w.t, err)
	return w.several(w.request(http.MethodPost, "/v1/outcomes"+query, bytes.NewReader(body)))
}

func (w *world) several(r *http.Request) (status int, answers []map[string]any) {
	w.t.Helper()
	status, body := w.do(r)
	list, _ := body["answers"].([]any)
	for _, one := range list {
		answers = append(answers, one.(map[string]any))
	}
	if status == http.StatusOK && body["answers"] == nil {
		w.t.Error(fmt.Errorf("no answers in %v", body))
	}
	return status, answers
}
