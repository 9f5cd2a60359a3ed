package device_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

const declaration = `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: 3, min: -1, max: 1}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 4, delta: 1e-3, trust: %s, seal: %s, honest_fraction: %s}
schedule: {users: %d, plan: proved}
validation: {off: true}
`

// A world is a broker, a learner that plays its part without learning, and shuffle stages.
type world struct {
	t              testing.TB
	broker         *memory.Broker
	learner, stage *seal.Identity
	helper         *seal.Identity // of two operators; nil: there is one
	leaderDir      string         // the folders of both operators
	helperDir      string
	name           stream.Task
	spec           *task.Spec
	task           *wire.Task
	hash           stream.Hash
	params         randomizer.Params
}

type plan struct {
	rounds, cohort, minimum uint64
	deadline                time.Duration
	trust                   accounting.Trust
	sealed                  bool
	bundle                  uint32
	tight                   bool   // the least noise for the budget, if all are honest
	honest                  string // the share that is promised; default 1
	grants                  bool   // each report has a token of the issuer of package granttest
	broker                  memory.Config
}

func newWorld(t testing.TB, p plan) *world {
	t.Helper()
	if p.minimum == 0 {
		p.minimum = p.cohort
	}
	if p.honest == "" {
		p.honest = "1"
	}
	suite, sealed := wire.Suite_SUITE_NONE, "none"
	if p.sealed || p.trust.HasOperators() {
		suite, sealed = wire.Suite_SUITE_X25519, "hpke"
	}
	p.broker.Keep, p.broker.AckWait = true, 5*time.Second
	w := &world{t: t, name: "churn", learner: identity(t), stage: identity(t)}
	var err error
	w.broker, err = memory.New(p.broker)
	must(t, err)
	issuer := ""
	if p.grants {
		issuer = "grants: pass\nissuer_key: " + task.IssuerKeyText(granttest.Signer(t).Public()) + "\n"
	}
	w.spec, err = task.Parse(fmt.Appendf(nil, declaration+issuer, p.trust, sealed, p.honest, p.rounds*p.cohort), nil)
	must(t, err)
	declared, err := w.spec.Canonical()
	must(t, err)
	if p.trust.HasOperators() {
		w.twoOperators()
		declared, err = w.spec.Canonical()
		must(t, err)
		suite = wire.Suite_SUITE_MLKEM768_X25519
	}
	w.params = randomizer.Params{Dim: 3, ClipNorm: 1, Levels: 4, Trials: uint32(400/p.cohort + 1), FloorTrials: 400,
		Coin: randomizer.Fair}
	if p.tight {
		c, err := accounting.Calibrate(accounting.Request{
			Users: p.cohort, Dim: 3, Epsilon: 4, Delta: 1e-3, Trust: p.trust, HonestFraction: accounting.One, Rounds: 1,
		})
		must(t, err)
		w.params.Coin, err = randomizer.CoinFromFloat(c.P)
		must(t, err)
		w.params.Levels, w.params.Trials, w.params.FloorTrials = uint32(c.Levels), uint32(c.Trials), c.FloorTrials
	}
	if !p.trust.HasReportNoise() {
		w.params.Trials = 0
	}
	if !p.trust.HasFloors() {
		w.params.FloorTrials = 0
	}
	if p.trust.HasOperators() && !p.tight {
		w.params.Levels = 3
	}
	trust, err := manifest.WireTrust(p.trust)
	must(t, err)
	w.task = &wire.Task{
		Version: stream.Version, Name: string(w.name), Declaration: declared,
		LearnerKey: w.learner.Public(), StageKey: w.stage.Public(), Suite: suite, Life: make([]byte, stream.LifeSize),
		Plan: &wire.Plan{
			Algorithm: "psgd", Trust: trust, HonestFraction: p.honest,
			Phases: []*wire.Phase{{Users: p.rounds * p.cohort, Rounds: p.rounds, Cohort: p.cohort, Minimum: p.minimum,
				Mechanism: manifest.Mechanism(w.params, max(p.bundle, 1)), RoundsPerUser: 1}},
			Epsilon: 4, Delta: 1e-3, DeadlineMs: uint64(p.deadline.Milliseconds()), EpsilonBudget: 4,
		},
	}
	if w.helper != nil {
		w.task.HelperKey, w.task.Plan.Prio3 = w.helper.Public(), manifest.Prio3
	}
	if p.grants {
		w.task.IssuerKey = granttest.Signer(t).Public()
	}
	w.hash = taskHash(t, w.task)
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func identity(t testing.TB) *seal.Identity {
	t.Helper()
	id, err := seal.NewIdentity()
	must(t, err)
	return id
}

func taskHash(t testing.TB, m *wire.Task) stream.Hash {
	t.Helper()
	body, err := stream.Marshal(m)
	must(t, err)
	return stream.HashOf(body)
}

// put retries until the record is stored.
func (w *world) put(ctx context.Context, subject string, id *seal.Identity, m proto.Message) {
	w.t.Helper()
	data, err := id.Sign(m)
	must(w.t, err)
	for ctx.Err() == nil {
		r, err := w.broker.PutOnce(ctx, subject, data)
		if err == nil {
			if !r.Ours {
				w.t.Errorf("%s holds something else", subject)
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (w *world) round(r stream.Round, step stream.Step) *wire.Round {
	point := make([]float64, w.params.Dim)
	point[0], point[2] = 0.1*float64(r%48), -1
	return manifest.RoundOf(w.hash, uint64(r), uint64(step), point, nil)
}

// announce puts the task and a round.
func (w *world) announce(ctx context.Context, r stream.Round) stream.Hash {
	w.put(ctx, w.name.Task(), w.learner, w.task)
	m := w.round(r, stream.Step(r))
	w.put(ctx, w.name.Round(r), w.learner, m)
	hash, err := manifest.RoundHash(m)
	must(w.t, err)
	return hash
}

// learn announces a round when it has the batch before, and ends when the plan is done.
func (w *world) learn(ctx context.Context) {
	w.put(ctx, w.name.Task(), w.learner, w.task)
	r, step := stream.Round(1), uint64(1)
	for ; step <= manifest.Steps(w.task.Plan); r++ {
		w.put(ctx, w.name.Round(r), w.learner, w.round(r, stream.Step(step)))
		b := w.batch(ctx, r)
		if b == nil {
			return
		}
		if at, _ := manifest.PhaseOf(w.task.Plan, step); !b.Void || at.Interactive() {
			step++
		}
	}
	w.end(ctx, r-1)
}

func (w *world) end(ctx context.Context, last stream.Round) {
	w.put(ctx, w.name.End(), w.learner, &wire.End{
		Version: stream.Version, TaskHash: w.hash[:], LastRound: uint64(last), Reason: "done",
	})
}

// batch waits for a round's batch; nil where the context ended first.
func (w *world) batch(ctx context.Context, r stream.Round) *wire.Batch {
	for ctx.Err() == nil {
		m, err := w.broker.Get(ctx, w.name.Batch(r))
		if err == nil {
			var b wire.Batch
			_, err := seal.Verify(m.Data, w.stage.Public(), &b)
			must(w.t, err)
			return &b
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// mix runs one stage process until ctx ends.
func (w *world) mix(ctx context.Context) {
	if w.helper != nil {
		w.mixByTwo(ctx)
		return
	}
	reader, err := w.broker.Reader(w.name)
	must(w.t, err)
	s, err := stage.New(stage.Config{
		Task: w.name, Records: w.broker, Reports: reader, PlaceServer: w.broker, Identity: w.stage,
		LeaseTTL: 10 * time.Second, Poll: time.Second,
	})
	must(w.t, err)
	if err := s.Run(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		w.t.Error(err)
	}
}

func (w *world) config(s participation.Store) device.Settings {
	c := device.Settings{
		Task: w.name, Transport: w.transport(), Store: s, Source: "users.libsvm",
		Policy: consent.Policy{AllowPlaintext: true}, CloseWait: 10 * time.Second,
	}
	if w.helper != nil {
		c.Policy = consent.Policy{StageKey: consent.Fingerprint(w.stage.Public()),
			HelperKey: consent.Fingerprint(w.helper.Public())}
	}
	return c
}

func (w *world) client(c device.Settings) *device.Device {
	w.t.Helper()
	got, err := device.New(c)
	must(w.t, err)
	return got
}

// replan gives a world other phases, which take the mechanism of its first.
func (w *world) replan(phases ...*wire.Phase) {
	mechanism := w.task.Plan.Phases[0].Mechanism
	w.task.Plan.Phases = phases
	for _, f := range phases {
		f.Mechanism = proto.CloneOf(mechanism)
		if f.RoundsPerUser == 0 {
			f.RoundsPerUser = 1
		}
		if f.Minimum == 0 {
			f.Minimum = f.Cohort
		}
	}
	w.hash = taskHash(w.t, w.task)
}

// asked is an interactive phase of some users who answer some rounds.
func asked(users, rounds, minimum uint64) *wire.Phase {
	return &wire.Phase{Users: users, Cohort: users, Rounds: rounds, RoundsPerUser: uint32(rounds), Minimum: minimum}
}

// once returns a phase of rounds of users who answer one of them.
func once(cohort, rounds uint64) *wire.Phase {
	return &wire.Phase{Users: cohort * rounds, Cohort: cohort, Rounds: rounds}
}

// dear returns a policy that takes what several rounds of one user cost here.
func (w *world) dear(s participation.Store) device.Settings {
	c := w.config(s)
	c.Policy.MaxEpsilon = 50
	return c
}

// identity of the summary.
func checkSum(t *testing.T, s device.Summary) {
	t.Helper()
	if s.Events != s.Counted+s.Uncounted+s.Unknown+s.Refused {
		t.Errorf("events %d: want counted + uncounted + unknown + refused in %+v", s.Events, s)
	}
}

// play runs learner and stage beside f and stops them after it.
func (w *world) play(ctx context.Context, f func(ctx context.Context)) {
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { w.learn(ctx) })
	group.Go(func() { w.mix(ctx) })
	f(ctx)
	stop()
	group.Wait()
}

// rows yields n valid rows; every tenth is broken if broken.
func rows(n int, broken bool) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for i := range n {
			row := task.Row{
				Line: int64(i) + 1, Number: int64(i), Index: []int32{int32(i % 3)}, Value: []float64{1}, Label: "1",
			}
			var err error
			if broken && i%10 == 3 {
				row, err = task.Row{Line: row.Line, Number: row.Number}, &task.RowError{Line: row.Line, Reason: "test"}
			} else if broken && i%10 == 7 {
				row.Label = "maybe"
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

type row = task.Row

// example returns a valid event with a label.
func example(label float64) convex.Example {
	return convex.Example{Index: []int32{1}, Value: []float64{0.5}, Label: label}
}

// openMessage returns an attempt that nobody collects.
func (w *world) openMessage(r stream.Round, a stream.Attempt, manifest stream.Hash) *wire.Open {
	key, err := seal.NewRoundKey(w.task.Suite)
	must(w.t, err)
	return &wire.Open{
		Version: stream.Version, TaskHash: w.hash[:], Round: uint64(r), Attempt: uint64(a), ManifestHash: manifest[:],
		Suite:     w.task.Suite,
		PublicKey: key.Public(), Instance: make([]byte, stream.InstanceSize), StartedUnixMs: 1,
	}
}

func (w *world) open(ctx context.Context, r stream.Round, a stream.Attempt, manifest stream.Hash) {
	w.put(ctx, w.name.Open(r, a), w.stage, w.openMessage(r, a, manifest))
}

func (w *world) closeMessage(c participation.Closed) *wire.Close {
	return &wire.Close{
		Version: stream.Version, TaskHash: w.hash[:], Round: uint64(c.Round), Attempt: uint64(c.Attempt.Number),
		ManifestHash: c.Manifest[:],
		BatchHash:    make([]byte, stream.HashSize), Cutoff: c.Cutoff, Void: c.Void,
	}
}

func (w *world) close(ctx context.Context, c participation.Closed) {
	w.put(ctx, w.name.Close(c.Round, c.Attempt.Number), w.stage, w.closeMessage(c))
}

// reports counts what was published to an attempt.
func (w *world) reports(r stream.Round, a stream.Attempt) int {
	n := 0
	for _, m := range w.broker.Dump() {
		if m.Subject == w.name.Report(r, a) {
			n++
		}
	}
	return n
}

// nth returns the attempt of a number whose Open has no hash to speak of.
func nth(n stream.Attempt) participation.Attempt { return participation.Attempt{Number: n} }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
