package service_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A forever is a task without an end whose rounds are all of 100 users and have the plan's deadline, so that its
// records are functions of its batches, which are functions of the rounds.
type forever struct {
	t              *testing.T
	broker         *memory.Broker
	store          *storetest.Memory
	learner, stage *seal.Identity
	body           *wire.Task
	name           stream.Task
	history        *service.History
	keep           service.Retention
	accept         bool
	before         map[uint64]func() // is called when a round is announced, before it is answered
	upTo           uint64            // the last round that is answered
}

func newForever(t *testing.T, upTo uint64, more ...string) *forever {
	t.Helper()
	words := strings.NewReplacer("schedule: {users: 600, rounds: {max: 2}}",
		"schedule: {users: 800, continuous: adaptive, deadline: 24h, minimum_cohort: 100}",
		"epsilon: 1,", "epsilon: 8,").Replace(runtest.Words) + strings.Join(more, "\n")
	job := runtest.Job(t, runtest.Parsed(t, words))
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	broker, err := memory.New(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	f := &forever{t: t, broker: broker, store: storetest.NewMemory(), learner: runtest.Identity(t),
		stage: runtest.Identity(t), body: body,
		name: stream.Task(job.Spec.Name), keep: service.Retention{Rounds: 1, Newest: 100}, before: map[uint64]func(){},
		upTo: upTo}
	f.history = service.NewHistory(f.store)
	return f
}

// run lives one life of the learner, which ends after the last round that is answered, or with an error.
func (f *forever) run() error {
	f.t.Helper()
	ctx, stop := context.WithCancel(f.t.Context())
	defer stop()
	s, err := service.New(service.Config{Task: f.name, Records: f.broker, Store: f.store, Identity: f.learner,
		StageKey: f.stage.Public(),
		Prepare:  func() (*wire.Task, error) { return f.body, nil }, History: f.history, Snapshots: f.keep,
		AcceptRollback: f.accept,
		Observer: runtest.Stage(func(r stream.Round) {
			if do := f.before[uint64(r)]; do != nil {
				do()
			}
			if uint64(r) > f.upTo {
				stop()
				return
			}
			f.answer(r)
		})})
	if err != nil {
		f.t.Fatal(err)
	}
	if err = s.Run(ctx); errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// announced returns a round as it is stored, with its hash.
func (f *forever) announced(r stream.Round) (*wire.Round, stream.Hash) {
	f.t.Helper()
	m, err := f.broker.Get(context.Background(), f.name.Round(r))
	if err != nil {
		f.t.Fatal(err)
	}
	round := &wire.Round{}
	body, err := seal.Verify(m.Data, f.learner.Public(), round)
	if err != nil {
		f.t.Fatal(err)
	}
	return round, stream.HashOf(body)
}

// answer puts the batch of a round, if none is stored.
func (f *forever) answer(r stream.Round) {
	round, hash := f.announced(r)
	at, _ := manifest.PhaseOf(f.body.Plan, round.Step)
	params, err := manifest.Params(at.Phase.GetMechanism())
	if err != nil {
		f.t.Fatal(err)
	}
	users := at.Cohort
	if round.Cohort > 0 {
		users = round.Cohort
	}
	trials, rng := params.NoiseTrials(users, at.Planned), rand.New(rand.NewPCG(uint64(r), 3))
	totals := make([]uint64, params.Dim)
	for i := range totals {
		totals[i] = users*uint64(params.Levels)/2 + trials/2 + rng.Uint64N(users*uint64(params.Levels)/20)
	}
	signed, err := f.stage.Sign(&wire.Batch{Version: stream.Version, TaskHash: round.TaskHash, Round: round.Round,
		Attempt: 1, Users: users,
		NoiseTrials: trials, Totals: totals, Cutoff: users, ManifestHash: slices.Clone(hash[:])})
	if err == nil {
		_, err = f.broker.PutOnce(context.Background(), f.name.Batch(r), signed)
	}
	if err != nil {
		f.t.Error(err)
	}
}

func (f *forever) records() []service.Record {
	f.t.Helper()
	out, err := service.ReadRecords(f.t.Context(), f.store, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

func (f *forever) kept(round uint64) []float64 {
	f.t.Helper()
	out, err := service.ReadModel(f.t.Context(), f.store, round)
	if err != nil || len(out) == 0 {
		f.t.Fatalf("model of round %d: %d numbers, %v", round, len(out), err)
	}
	return out
}

// model returns the stored model, and the checkpoint with what is spent.
func (f *forever) model() ([]float64, state.Checkpoint) {
	f.t.Helper()
	at, err := f.store.Load(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	alg, err := learner.New(f.body.Plan)
	if err == nil {
		err = alg.UnmarshalBinary(at.Algorithm)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return alg.Model(), at
}

// reopen opens the folder again as the next process finds it.
func (f *forever) reopen() {
	f.t.Helper()
	_ = f.store.Close() // its failure may be the point
	var err error
	if f.store, err = f.store.Reopen(); err != nil {
		f.t.Fatal(err)
	}
	f.history = service.NewHistory(f.store)
}

func near(a, b []float64) bool {
	return len(a) == len(b) &&
		slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*(1+math.Abs(x)) })
}

// TestHistoryIsBounded: models are kept at the retention's interval, the newest ones up to its number, and
// pinned ones beside them; the same after a restart.
func TestHistoryIsBounded(t *testing.T) {
	f := newForever(t, 12)
	f.keep = service.Retention{Rounds: 2, Newest: 3}
	f.before[5] = func() {
		if _, err := f.history.Pin(t.Context(), 4, true); err != nil {
			t.Error(err)
		}
	}
	if err := f.run(); err != nil {
		t.Fatal(err)
	}
	f.reopen()
	f.upTo = 20
	if err := f.run(); err != nil {
		t.Fatal(err)
	}
	records := f.records()
	if len(records) != 20 {
		t.Fatalf("%d records", len(records))
	}
	var kept, pinned []uint64
	for i, r := range records {
		if r.Round != uint64(i+1) || r.Users == 0 || r.Time.IsZero() || r.Round > 2 && (r.Scores.Loss == nil ||
			r.Memory == nil || !(r.Clip > 0)) {
			t.Errorf("record %+v", r)
		}
		if r.Snapshot {
			kept = append(kept, r.Round)
			f.kept(r.Round)
		} else if m, err := f.store.Model(t.Context(), r.Round); m != nil || err != nil {
			t.Errorf("round %d has a model that its record does not know: %v", r.Round, err)
		}
		if r.Pinned {
			pinned = append(pinned, r.Round)
		}
	}
	if !slices.Equal(kept, []uint64{4, 16, 18, 20}) || !slices.Equal(pinned, []uint64{4}) {
		t.Errorf("kept %d, pinned %d", kept, pinned)
	}
	var missing *service.NotKeptError
	if _, err := f.history.Pin(t.Context(), 10, true); !errors.As(err, &missing) ||
		!slices.Equal(missing.Nearest, []uint64{4, 16}) {
		t.Errorf("a round that is not kept: %v", err)
	}
	if _, err := f.history.Pin(t.Context(), 4, false); err != nil {
		t.Error(err)
	}
	f.upTo = 21
	if err := f.run(); err != nil {
		t.Fatal(err)
	}
	if m, err := f.store.Model(t.Context(), 4); m != nil || err != nil {
		t.Errorf("an unpinned model stays: %v", err)
	}
}

// TestRollBack: the model of an earlier round is released at once, the announced round is counted and teaches
// nothing, the one after it asks at the earlier model, nothing more is spent, and the model that was withdrawn
// can be had, and released, again.
func TestRollBack(t *testing.T) {
	for what, more := range map[string]string{"with an intercept": "", "without": "intercept: 0\n"} {
		t.Run(what, func(t *testing.T) { testRollBack(t, more) })
	}
}

func testRollBack(t *testing.T, more string) {
	f := newForever(t, 12, more)
	f.before[8] = func() {
		bad, before := f.model()
		r, err := f.history.RollBack(t.Context(), 4, time.Unix(1e9, 0))
		if err != nil {
			t.Fatal(err)
		}
		now, after := f.model()
		if !near(now, f.kept(4)) || near(now, bad) {
			t.Error("the model of round 4 does not stand")
		}
		if after.Ledger != before.Ledger || string(after.NextRound) != string(before.NextRound) {
			t.Error("the ledger or the announced round changed")
		}
		if !r.RolledBack() || r.Round != 7 || r.Rollback.To != 4 || !slices.Equal(f.kept(7), bad) {
			t.Errorf("record %+v", r)
		}
	}
	if err := f.run(); err != nil {
		t.Fatal(err)
	}
	records := f.records()
	if got := records[7]; !got.Unused || got.Users != 100 || got.Version != records[6].Version+2 || records[8].Unused {
		t.Errorf("the round that was announced: %+v", got)
	}
	ninth, _ := f.announced(9)
	fourth, _ := f.announced(5) // asked at the model of round 4
	if !near(ninth.Point, fourth.Point) || ninth.Step != 9 {
		t.Errorf("round 9, step %d, asks at %v, want %v", ninth.Step, ninth.Point, fourth.Point)
	}
	plain := newForever(t, 12, more)
	if err := plain.run(); err != nil {
		t.Fatal(err)
	}
	_, a := f.model()
	_, b := plain.model()
	if a.Ledger.Spent() != b.Ledger.Spent() || a.Ledger.Users() != b.Ledger.Users() || a.Ledger.Steps != b.Ledger.Steps {
		t.Errorf("%+v, without a rollback %+v", a.Ledger, b.Ledger)
	}
	// Each rollback names the model that it withdraws; a rollback to the current model is refused.
	for _, to := range []uint64{7, 12, 7} {
		from := map[uint64]uint64{7: 12, 12: 7}[to]
		r, err := f.history.RollBack(t.Context(), to, time.Now())
		if err != nil || r.Rollback.From != from {
			t.Errorf("to %d: it withdraws round %d, want %d; %v", to, r.Rollback.From, from, err)
		}
		_, err = f.history.RollBack(t.Context(), to, time.Now())
		if want := "its model is the one that stands"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("to %d twice: %v", to, err)
		}
	}
	for round, want := range map[uint64]string{0: "no model of round 0 is kept",
		99: "no model of round 99 is kept: the nearest is that of round 12"} {
		if _, err := f.history.RollBack(t.Context(), round, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

// TestRollBackAndKills: whatever commit the learner dies at, before or after it is durable, it goes on with the
// rollback or without it, by its folder, and a rollback that was durable leaves the bytes of a life without a
// kill.
func TestRollBackAndKills(t *testing.T) {
	people := newForever(t, 0)
	lived := func(at uint64, rollback bool, fault storetest.Fault) *forever {
		f := newForever(t, 11)
		f.learner, f.stage, f.body = people.learner, people.stage, people.body
		var once sync.Once
		f.before[8] = func() {
			once.Do(func() {
				if _, err := f.history.RollBack(t.Context(), 4, time.Unix(1e9, 0)); err != nil && !errors.Is(err, state.ErrFailed) {
					t.Error(err)
				}
			})
		}
		last, died := uint64(0), false
		f.store.Fault = func(next state.Checkpoint) storetest.Fault {
			between := next.Cursor.Round == last && last > 0
			last = next.Cursor.Round
			if died || last != at || between != rollback {
				return storetest.NoFault
			}
			died = true
			return fault
		}
		if err := f.run(); at > 0 && !errors.Is(err, state.ErrFailed) || at == 0 && err != nil {
			t.Fatalf("a life that dies at round %d: %v", at, err)
		}
		if at > 0 {
			f.reopen()
			if rollback && fault == storetest.FailBefore {
				if _, err := f.history.RollBack(t.Context(), 4, time.Unix(1e9, 0)); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.run(); err != nil {
				t.Fatalf("the life after a kill at round %d: %v", at, err)
			}
		}
		return f
	}
	want := lived(0, false, storetest.NoFault)
	for _, fault := range []storetest.Fault{storetest.FailBefore, storetest.FailAfter} {
		lived(7, true, fault).same(want)
		for _, round := range []uint64{7, 8, 9} {
			if round == 7 && fault == storetest.FailBefore {
				continue // the rollback comes before the same round as ever
			}
			lived(round, false, fault).same(want)
		}
	}
}

// same insists on the same records, checkpoint and history, times aside.
func (f *forever) same(want *forever) {
	f.t.Helper()
	public := map[string]string{}
	for _, m := range want.broker.Dump() {
		public[m.Subject] = string(m.Data)
	}
	for _, m := range f.broker.Dump() {
		if public[m.Subject] != string(m.Data) {
			f.t.Errorf("%s differs", m.Subject)
		}
		delete(public, m.Subject)
	}
	if len(public) > 0 {
		f.t.Errorf("%d records are missing", len(public))
	}
	_, a := f.model()
	_, b := want.model()
	if !a.Equal(b) {
		f.t.Error("the checkpoint differs")
	}
	mine, theirs := f.records(), want.records()
	if len(mine) != len(theirs) {
		f.t.Fatalf("%d records, want %d", len(mine), len(theirs))
	}
	for i, r := range mine {
		w := theirs[i]
		if r.Snapshot != w.Snapshot || r.Unused != w.Unused || r.RolledBack() != w.RolledBack() || r.Version != w.Version {
			f.t.Errorf("%+v, want %+v", r, w)
		}
		if r.Snapshot && !slices.Equal(f.kept(r.Round), want.kept(r.Round)) {
			f.t.Errorf("the model of round %d differs", r.Round)
		}
	}
}

// TestRolledBackCopy: a folder that is an older copy of one whose model was rolled back since applies the
// stored batches again, the rollback too, and ends with the same bytes.
func TestRolledBackCopy(t *testing.T) {
	for _, upTo := range []uint64{5, 7} {
		f := newForever(t, 7)
		if upTo < 7 {
			f.upTo = upTo
		}
		if err := f.run(); err != nil {
			t.Fatal(err)
		}
		old := *f
		old.store = copied(t, f.store)
		old.history, old.accept = service.NewHistory(old.store), true
		f.before, f.upTo = map[uint64]func(){8: func() {
			if _, err := f.history.RollBack(t.Context(), 4, time.Unix(1e9, 0)); err != nil {
				t.Error(err)
			}
		}}, 11
		if err := f.run(); err != nil {
			t.Fatal(err)
		}
		old.before, old.upTo = map[uint64]func(){}, 11
		if err := old.run(); err != nil {
			t.Errorf("a copy of round %d: %v", upTo, err)
		}
		old.same(f)
	}
}

// copied returns a copy of a store.
func copied(t *testing.T, from *storetest.Memory) *storetest.Memory {
	t.Helper()
	to, err := from.Copy().Reopen()
	if err != nil {
		t.Fatal(err)
	}
	return to
}
