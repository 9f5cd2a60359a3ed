package stage

import (
	"context"
	crand "crypto/rand"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A world is a broker, a learner and users around the stages under test. User i sends one in coordinate i
// and zero elsewhere, without noise, so that in a full cohort a total above 1 is somebody counted twice.
type world struct {
	t              testing.TB
	broker         *memory.Broker
	learner, stage *seal.Identity
	name           stream.Task
	task           *wire.Task
	hash           stream.Hash
	params         randomizer.Params
	bundle         int               // users in a message
	issuer         *granttest.Issuer // nil: reports have no tokens
}

type plan struct {
	rounds, cohort, minimum uint64
	deadline                time.Duration
	stale                   time.Duration // longest deadline of a round's own
	suite                   wire.Suite
	bundle                  uint32
	trust                   wire.Trust
	spares                  uint64 // rounds' worth of users beyond the plan, for void rounds
	broker                  memory.Config
	grants                  bool
	stint                   bool // the same users answer all rounds
}

func newWorld(t testing.TB, p plan) *world {
	t.Helper()
	p.suite, p.trust = max(p.suite, wire.Suite_SUITE_NONE), max(p.trust, wire.Trust_TRUST_SHUFFLE)
	p.bundle, p.rounds = max(p.bundle, 1), max(p.rounds, 1)
	if p.minimum == 0 {
		p.minimum = p.cohort
	}
	if p.broker.AckWait == 0 {
		p.broker.AckWait = 5 * time.Second
	}
	w := &world{t: t, name: "churn", bundle: int(p.bundle)}
	var err error
	if w.broker, err = memory.New(p.broker); err != nil {
		t.Fatal(err)
	}
	w.learner, w.stage = identity(t), identity(t)
	w.params = randomizer.Params{
		Dim: int((p.rounds + p.spares) * p.cohort), ClipNorm: 1, Levels: 1, Trials: 1, Coin: randomizer.Fair,
	}
	if p.trust != wire.Trust_TRUST_SHUFFLE {
		w.params.FloorTrials = 100
	}
	if p.trust == wire.Trust_TRUST_PAN {
		w.params.Trials = 0
	}
	w.task = &wire.Task{
		Life:    make([]byte, stream.LifeSize),
		Version: stream.Version, Name: string(w.name), LearnerKey: w.learner.Public(), StageKey: w.stage.Public(),
		Suite: p.suite,
		Plan: &wire.Plan{
			Algorithm: "psgd", Trust: p.trust, HonestFraction: "1",
			Phases: []*wire.Phase{{Users: p.rounds * p.cohort, Rounds: p.rounds, Cohort: p.cohort, Minimum: p.minimum,
				Mechanism: manifest.Mechanism(w.params, p.bundle), RoundsPerUser: 1}},
			Epsilon: 1, Delta: 1e-6, DeadlineMs: uint64(p.deadline.Milliseconds()), StaleMs: uint64(p.stale.Milliseconds()),
			EpsilonBudget: 1,
		},
	}
	if p.stint {
		f := w.task.Plan.Phases[0]
		f.Users, f.RoundsPerUser = f.Cohort, uint32(f.Rounds)
	}
	if p.grants {
		w.task.IssuerKey = granttest.Signer(t).Public()
	}
	body, err := stream.Marshal(w.task)
	if err != nil {
		t.Fatal(err)
	}
	w.hash = stream.HashOf(body)
	if p.grants {
		w.issuer = granttest.New(t, w.hash)
	}
	return w
}

func identity(t testing.TB) *seal.Identity {
	t.Helper()
	id, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// config returns the configuration of a stage process on this broker.
func (w *world) config() Config {
	reader, err := w.broker.Reader(w.name)
	if err != nil {
		w.t.Fatal(err)
	}
	return Config{
		Task: w.name, Records: w.broker, Reports: reader, Identity: w.stage, Limits: w.broker.Limits(),
		LeaseTTL: 10 * time.Second, Poll: time.Second,
	}
}

func (w *world) new(c Config) *Stage {
	w.t.Helper()
	s, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// sign returns the signed message; it is the test's own mistake if it cannot be signed.
func (w *world) sign(id *seal.Identity, m proto.Message) []byte {
	w.t.Helper()
	data, err := id.Sign(m)
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

// put retries until the record is stored.
func (w *world) put(ctx context.Context, subject string, data []byte) {
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

// get waits until a record is there; nil where the context ended first.
func (w *world) get(ctx context.Context, subject string) *stream.Message {
	for ctx.Err() == nil {
		m, err := w.broker.Get(ctx, subject)
		if err == nil {
			return &m
		}
		time.Sleep(300 * time.Millisecond)
	}
	return nil
}

// batch returns the verified batch of a round, nil if there is none.
func (w *world) batch(r stream.Round) (*wire.Batch, stream.Message) {
	w.t.Helper()
	m, err := w.broker.Get(context.Background(), w.name.Batch(r))
	if errors.Is(err, stream.ErrNotFound) {
		return nil, m
	}
	var b wire.Batch
	if err == nil {
		_, err = seal.Verify(m.Data, w.stage.Public(), &b)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return &b, m
}

// round returns Round r of the world's task, at a step of the plan.
func (w *world) round(r stream.Round, step uint64) *wire.Round {
	return manifest.RoundOf(w.hash, uint64(r), step, make([]float64, w.task.Plan.Phases[0].Mechanism.Dim), nil)
}

// announce publishes the task and round 1.
func (w *world) announce(ctx context.Context) {
	w.put(ctx, w.name.Task(), w.sign(w.learner, w.task))
	w.put(ctx, w.name.Round(1), w.sign(w.learner, w.round(1, 1)))
}

// learn plays the learner: it announces a round when it has the batch before, and ends when the plan is done.
func (w *world) learn(ctx context.Context) {
	if w.get(ctx, w.name.Stage()) == nil {
		return
	}
	w.put(ctx, w.name.Task(), w.sign(w.learner, w.task))
	r, step := stream.Round(1), uint64(1)
	for ; step <= manifest.Steps(w.task.Plan); r++ {
		w.put(ctx, w.name.Round(r), w.sign(w.learner, w.round(r, step)))
		m := w.get(ctx, w.name.Batch(r))
		if m == nil {
			return
		}
		var b wire.Batch
		if _, err := seal.Verify(m.Data, w.stage.Public(), &b); err != nil {
			w.t.Error(err)
			return
		}
		if !b.Void {
			step++
		}
	}
	w.end(ctx, r-1)
}

func (w *world) end(ctx context.Context, last stream.Round) {
	w.put(ctx, w.name.End(), w.sign(w.learner, &wire.End{
		Version: stream.Version, TaskHash: w.hash[:], LastRound: uint64(last), Reason: "done",
	}))
}

// randomID returns a report or message id.
func randomID() (id [16]byte) {
	_, _ = crand.Read(id[:])
	return id
}
