package service

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// The task of these tests. The last cohort takes the users that are left over.
const (
	name    = stream.Task("churn")
	cohort  = 40
	minimum = 30
	left    = 7
	dim     = 4
	bundle  = 3
	delta   = 1e-6
)

var params = randomizer.Params{Dim: dim, ClipNorm: 1, Levels: 5, Trials: 64, Coin: randomizer.Fair}

// release returns the accountant's question about a round of n users, written down independently of the
// service.
func release(n uint64) accounting.Release {
	return accounting.Release{Trust: accounting.Shuffle, Users: n, Dim: dim, Levels: 5, Trials: 64, P: 0.5,
		HonestFraction: accounting.One, Rounds: 1}
}

func epsilonOf(t testing.TB, n uint64) float64 {
	t.Helper()
	g, err := release(n).Epsilon(delta)
	if err != nil {
		t.Fatal(err)
	}
	return g.Epsilon
}

// A cast holds the identities that take part. Two worlds with one cast write the same bytes.
type cast struct{ learner, stage *seal.Identity }

func newCast(t testing.TB) cast {
	t.Helper()
	var c cast
	for _, id := range []**seal.Identity{&c.learner, &c.stage} {
		var err error
		if *id, err = seal.NewIdentity(); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// A world is a broker, a disk and a stage around the learners under test.
type world struct {
	t testing.TB
	cast
	rounds  uint64
	phases  []*wire.Phase // nil: one phase of rounds
	endless bool
	silos   uint64          // of a task of trust local
	voids   map[uint64]bool // rounds whose batch is void
	// lostRounds are the void rounds whose batch tells that the broker lost them.
	lostRounds map[uint64]bool
	budget     float64
	accept     bool                                                 // a rollback of the folder
	change     func(*wire.Plan)                                     // of the plan; nil: none
	comes      func(*wire.Round) (users uint64, took time.Duration) // to a round; nil: a cohort or nearly, at once
	// rounds have deadlines, and after the first one their own: those of the plan are short
	timed  bool
	broker *memory.Broker
	store  *storetest.Memory
}

func newWorld(t testing.TB, c cast, rounds uint64) *world {
	t.Helper()
	broker, err := memory.New(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, cast: c, rounds: rounds, budget: epsilonOf(t, cohort), broker: broker,
		store: storetest.NewMemory()}
}

// body returns the Task that Prepare returns.
func (w *world) body() (*wire.Task, error) {
	plan := &wire.Plan{Algorithm: "psgd", Phases: w.phases, Trust: wire.Trust_TRUST_SHUFFLE, HonestFraction: "1",
		Set:     &wire.Set{Radius: 2},
		Epsilon: w.budget, Delta: delta, EpsilonBudget: w.budget}
	if w.timed {
		plan.DeadlineMs, plan.StaleMs = 1, uint64(time.Hour.Milliseconds())
	}
	if w.phases == nil {
		plan.Phases = []*wire.Phase{{Users: w.rounds*cohort + left, Rounds: w.rounds, Cohort: cohort, Minimum: minimum,
			Mechanism: manifest.Mechanism(params, bundle), RoundsPerUser: 1}}
	}
	if w.silos > 0 {
		plan.Trust, plan.Silos = wire.Trust_TRUST_LOCAL, w.silos
	}
	if w.endless {
		plan.Continuous = wire.Continuous_CONTINUOUS_CONSTANT
	}
	if w.change != nil {
		w.change(plan)
	}
	for _, f := range plan.Phases {
		if f.Statistic == wire.Statistic_STATISTIC_GRADIENT {
			f.Constants = &wire.Phase_Descent{Descent: &wire.Descent{StepSize: 0.3}}
		}
	}
	return &wire.Task{Life: make([]byte, stream.LifeSize), Suite: wire.Suite_SUITE_NONE, Declaration: []byte("{}"),
		Plan: plan}, nil
}

func (w *world) config() Config {
	return Config{Task: name, Records: w.broker, Store: w.store, Identity: w.learner, StageKey: w.stage.Public(),
		Prepare: w.body, AcceptRollback: w.accept, Poll: time.Second, Rest: time.Second}
}

func (w *world) new(c Config) *Service {
	w.t.Helper()
	s, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// reopen opens the folder again as the next process finds it.
func (w *world) reopen() {
	w.t.Helper()
	_ = w.store.Close() // its failure, if it was one, is the point
	var err error
	if w.store, err = w.store.Reopen(); err != nil {
		w.t.Fatal(err)
	}
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

// put insists until the record is stored.
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

// announced returns round r as it is stored, with its manifest hash.
func (w *world) announced(ctx context.Context, r uint64) (*wire.Round, stream.Hash, bool) {
	m := w.get(ctx, name.Round(stream.Round(r)))
	if m == nil {
		return nil, stream.Hash{}, false
	}
	var round wire.Round
	body, err := seal.Verify(m.Data, w.learner.Public(), &round)
	if err != nil {
		w.t.Error(err)
		return nil, stream.Hash{}, false
	}
	return &round, stream.HashOf(body), true
}

// batch returns the honest answer of n users to a round: a function of the round alone.
func (w *world) batch(round *wire.Round, hash stream.Hash, n uint64) *wire.Batch {
	w.t.Helper()
	totals := make([]uint64, dim)
	rng := rand.New(rand.NewPCG(round.Round, n))
	params, err := manifest.Params(w.place(round).Phase.Mechanism)
	if err != nil {
		w.t.Fatal(err)
	}
	device, err := randomizer.NewVectorSum(params, rand.NewPCG(round.Round, 99))
	if err != nil {
		w.t.Fatal(err)
	}
	var counts []uint32
	x := make([]float64, dim)
	for range n {
		for i := range x { // the gradient of |theta - z|^2/2 at a random z, or its square
			z := rng.NormFloat64()/4 + 0.3
			if len(round.Point) == 0 {
				x[i] = z * z
				continue
			}
			x[i] = round.Point[i] - z
		}
		if counts, err = device.Encode(counts, x); err != nil {
			w.t.Fatal(err)
		}
		for i, v := range counts {
			totals[i] += uint64(v)
		}
	}
	trials := n * uint64(params.Trials)
	for ; params.Window == 0 && trials < w.place(round).Cohort*uint64(params.Trials); trials++ {
		// the missing users' noise
		for i := range totals {
			totals[i] += rng.Uint64() & 1
		}
	}
	return &wire.Batch{Version: stream.Version, TaskHash: round.TaskHash, Round: round.Round, Attempt: 1, Users: n,
		NoiseTrials: trials, Totals: totals, Cutoff: n, ManifestHash: hash[:],
		Rejects: []*wire.Reject{{Reason: "duplicate", Count: round.Round}}}
}

// place returns the place of a round in the plan.
func (w *world) place(round *wire.Round) manifest.Place {
	body, _ := w.body()
	at, _ := manifest.PhaseOf(body.Plan, round.Step)
	return at
}

func (w *world) void(round *wire.Round, hash stream.Hash) *wire.Batch {
	return &wire.Batch{Version: stream.Version, TaskHash: round.TaskHash, Round: round.Round, Attempt: 2,
		ManifestHash: hash[:],
		Void:         true, Reason: "the claimer died"}
}

// answer plays the stage at round r: it puts the batch of the round.
func (w *world) answer(ctx context.Context, r uint64) {
	round, hash, ok := w.announced(ctx, r)
	if !ok {
		return
	}
	// sometimes below the cohort; mixing takes time of the bubble's clock
	users, work := w.place(round).Cohort-r%3, time.Millisecond
	if w.comes != nil {
		users, work = w.comes(round)
	}
	time.Sleep(work)
	b := w.batch(round, hash, users)
	if w.voids[r] {
		b = w.void(round, hash)
		if w.lostRounds[r] {
			b.Reason = stream.VoidRoundLost
		}
	}
	w.put(ctx, name.Batch(stream.Round(r)), w.sign(w.stage, b))
}

// play runs lives of learners one after the other beside the stage, and stops the stage after the last.
func (w *world) play(lives func(ctx context.Context)) {
	ctx, stop := context.WithCancel(w.t.(*testing.T).Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.put(ctx, name.Stage(), w.sign(w.stage, &wire.StageIdentity{Version: stream.Version, Task: string(name),
			Key: w.stage.Public()}))
		for r := uint64(1); ctx.Err() == nil; r++ {
			w.answer(ctx, r)
		}
	}()
	lives(ctx)
	stop()
	<-over
}

// run lets one learner live in the world until its task ends.
func (w *world) run() {
	w.t.Helper()
	w.play(func(ctx context.Context) {
		if err := w.new(w.config()).Run(ctx); err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
}

// undisturbedWorld returns the world that one learner leaves when nothing disturbs it.
func undisturbedWorld(t *testing.T, people cast, rounds uint64, voids ...uint64) *world {
	t.Helper()
	return undisturbedRun(t, func(t *testing.T) *world { return newWorld(t, people, rounds) }, voids...)
}

// undisturbedRun is like undisturbedWorld, for the world that build returns.
func undisturbedRun(t *testing.T, build func(*testing.T) *world, voids ...uint64) *world {
	t.Helper()
	var w *world
	synctest.Test(t, func(t *testing.T) { // which owns its channels, so it is made inside
		w = build(t)
		w.voids = map[uint64]bool{}
		for _, r := range voids {
			w.voids[r] = true
		}
		w.run()
	})
	w.t = t
	return w
}

// trace returns all that a world leaves: what everybody can read, and the learner's disk.
func (w *world) trace() (public map[string][]byte, at state.Checkpoint, ledger []state.Entry) {
	w.t.Helper()
	ctx := context.Background()
	public = map[string][]byte{}
	for _, m := range w.broker.Dump() {
		public[m.Subject] = m.Data
	}
	at, err := w.store.Load(ctx)
	if err != nil && !errors.Is(err, state.ErrEmpty) {
		w.t.Fatal(err)
	}
	for e, err := range w.store.Ledger(ctx) {
		if err != nil {
			w.t.Fatal(err)
		}
		ledger = append(ledger, e)
	}
	return public, at, ledger
}

// chargedOf returns one entry for each round, the one that counts.
func chargedOf(entries []state.Entry) (charged []state.Entry) {
	for e := range state.Charged(state.Entries(entries)) {
		charged = append(charged, e)
	}
	return charged
}

// same insists that two worlds have left the same bytes everywhere.
func same(t testing.TB, got, want *world) {
	t.Helper()
	public, at, ledger := got.trace()
	wantPublic, wantAt, wantLedger := want.trace()
	for subject, data := range wantPublic {
		if !bytes.Equal(public[subject], data) {
			t.Errorf("%s: %d bytes, the undisturbed run has other %d", subject, len(public[subject]), len(data))
		}
	}
	for subject := range public {
		if wantPublic[subject] == nil {
			t.Errorf("%s is there, in the undisturbed run it is not", subject)
		}
	}
	if !at.Equal(wantAt) {
		t.Errorf("checkpoint of round %d differs from the undisturbed run's of round %d", at.Cursor.Round,
			wantAt.Cursor.Round)
	}
	if len(ledger) != len(wantLedger) {
		t.Errorf("%d ledger entries, want %d", len(ledger), len(wantLedger))
		return
	}
	for i := range ledger {
		if ledger[i] != wantLedger[i] {
			t.Errorf("ledger entry %d differs", i+1)
		}
	}
}
