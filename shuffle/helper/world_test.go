package helper

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A world is a broker, a learner, a leader and devices around the helper under test. User i of a round sends levels in
// coordinate i and zero elsewhere, so that a total above levels and both floors is somebody counted twice.
type world struct {
	t               testing.TB
	broker          *memory.Broker
	learner, leader *seal.Identity
	dir             string // of the helper's folder
	helperKey       []byte
	name            stream.Task
	task            *wire.Task
	hash            stream.Hash
	params          randomizer.Params
}

const levels = 3

func identity(t testing.TB) *seal.Identity {
	t.Helper()
	id, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func newWorld(t testing.TB, cohort, minimum uint64) *world {
	t.Helper()
	w := &world{t: t, name: "churn", learner: identity(t), leader: identity(t), dir: filepath.Join(t.TempDir(), "helper")}
	var err error
	if w.broker, err = memory.New(memory.Config{}); err != nil {
		t.Fatal(err)
	}
	key, _, err := folder.Create(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	w.helperKey = key
	w.params = randomizer.Params{Dim: int(cohort), ClipNorm: 1, Levels: levels, FloorTrials: 50, Coin: randomizer.Fair}
	w.task = &wire.Task{
		Life: make([]byte, stream.LifeSize), Version: stream.Version, Name: string(w.name), LearnerKey: w.learner.Public(),
		StageKey: w.leader.Public(), HelperKey: key, Suite: wire.Suite_SUITE_MLKEM768_X25519,
		Plan: &wire.Plan{Algorithm: "psgd", Trust: wire.Trust_TRUST_SPLIT, HonestFraction: "1", Prio3: manifest.Prio3,
			Phases: []*wire.Phase{{Users: 9 * cohort, Rounds: 9, Cohort: cohort, Minimum: minimum,
				Mechanism: manifest.Mechanism(w.params, 2), RoundsPerUser: 1}},
			Epsilon: 1, Delta: 1e-6, EpsilonBudget: 1},
	}
	w.rehash()
	return w
}

// rehash computes the task hash again, after a change of the task.
func (w *world) rehash() {
	body, err := stream.Marshal(w.task)
	if err != nil {
		w.t.Fatal(err)
	}
	w.hash = stream.HashOf(body)
}

// opened returns the helper's folder, given back at the end of the test.
func (w *world) opened() *folder.Folder {
	w.t.Helper()
	f, err := folder.Open(w.dir, time.Second)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

func (w *world) config(f Folder, id *seal.Identity) Config {
	return Config{Task: w.name, Records: w.broker, Exchange: w.broker, Folder: f, Identity: id, LeaderKey: w.leader.Public(),
		LearnerKey: w.learner.Public(), Limits: w.broker.Limits(), Lease: 10 * time.Second, Poll: time.Second, Workers: 2}
}

// A process is a helper that runs.
type process struct {
	*Helper
	stop func() error // ends it, and returns what Run did
}

// start begins a helper process with the world's folder; change changes its configuration.
func (w *world) start(ctx context.Context, change func(*Config)) *process {
	w.t.Helper()
	f := w.opened()
	c := w.config(f, f.Identity())
	if change != nil {
		change(&c)
	}
	h, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		err := h.Run(ctx)
		_ = f.Close()
		done <- err
	}()
	var ended bool
	var err2 error
	return &process{Helper: h, stop: func() error {
		if !ended {
			cancel()
			err2, ended = <-done, true
		}
		return err2
	}}
}

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
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// absent reports whether a subject has no record.
func (w *world) absent(subject string) bool {
	_, err := w.broker.Get(context.Background(), subject)
	return errors.Is(err, stream.ErrNotFound)
}

func (w *world) round(r, step uint64) *wire.Round {
	return manifest.RoundOf(w.hash, r, step, make([]float64, w.params.Dim), nil)
}

// announce puts the task and Round r.
func (w *world) announce(ctx context.Context, r uint64) {
	w.put(ctx, w.name.Task(), w.sign(w.learner, w.task))
	w.put(ctx, w.name.Round(stream.Round(r)), w.sign(w.learner, w.round(r, r)))
}

func (w *world) end(ctx context.Context, last uint64) {
	w.put(ctx, w.name.End(), w.sign(w.learner, &wire.End{Version: stream.Version, TaskHash: w.hash[:], LastRound: last,
		Reason: "done"}))
}

// shareOf returns the verified Share of a round, nil if there is none.
func (w *world) shareOf(r uint64) *split.Share {
	w.t.Helper()
	m, err := w.broker.Get(context.Background(), w.name.Share(stream.Round(r)))
	if errors.Is(err, stream.ErrNotFound) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := splitwire.VerifyShare(m.Data, w.helperKey)
	if err != nil {
		w.t.Fatal(err)
	}
	return &s
}
