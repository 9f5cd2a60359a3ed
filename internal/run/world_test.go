package run

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/deploy"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/memory"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func shipped(t testing.TB, name string, sets ...string) *task.Spec {
	t.Helper()
	file, err := deploy.Tasks.ReadFile("tasks/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := task.Parse(file, sets)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// small is a task whose planning and running take little.
func small(t testing.TB, sets ...string) *task.Spec {
	t.Helper()
	return shipped(t, "quickstart", append([]string{"schedule.users=600", "schedule.rounds.max=2"}, sets...)...)
}

func jobOf(t testing.TB, spec *task.Spec) Job {
	t.Helper()
	job, err := NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// learned runs a job in memory on batches of zero vectors, which need no users, until the task or the store
// has enough.
func learned(t testing.TB, job Job, store state.Store) {
	t.Helper()
	broker, err := memory.New(memory.Config{MaxPayload: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	learnedOn(t, broker, stream.Task(job.Spec.Name), body, identity(t), identity(t), store)
}

// learnedOn is the same on any broker, of a task that is begun or goes on.
func learnedOn(t testing.TB, broker stream.Records, name stream.Task, body *wire.Task, learner, mixer *seal.Identity, store state.Store) {
	t.Helper()
	ctx := t.Context()
	answer := answering{answer: func(r uint64) {
		m, err := broker.Get(ctx, name.Round(stream.Round(r)))
		if err != nil {
			t.Error(err)
			return
		}
		var round wire.Round
		canonical, err := seal.Verify(m.Data, learner.Public(), &round)
		if err != nil {
			t.Error(err)
			return
		}
		batch, err := mixer.Sign(zeroBatch(t, &round, stream.HashOf(canonical)))
		if err == nil {
			_, err = broker.PutOnce(ctx, name.Batch(stream.Round(r)), batch)
		}
		if err != nil {
			t.Error(err)
		}
	}}
	s, err := service.New(service.Config{Task: name, Records: broker, Store: store, Identity: learner, StageKey: mixer.Public(),
		Prepare: func() (*wire.Task, error) { return body, nil }, Build: BuildAlgorithm, Observer: &answer})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx); err != nil && !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
}

// answering is the stage, as an observer: it answers a round when it is announced.
type answering struct{ answer func(r uint64) }

func (a *answering) Resumed(service.Progress) {}
func (a *answering) Announced(r, _ uint64)    { a.answer(r) }
func (a *answering) Applied(service.Applied)  {}

// zeroBatch is what a full cohort of zero gradients gives, the noise at its mean but for a little of it.
func zeroBatch(t testing.TB, r *wire.Round, hash stream.Hash) *wire.Batch {
	t.Helper()
	params, err := manifest.Params(r.Mechanism)
	if err != nil {
		t.Fatal(err)
	}
	trials := r.Cohort * uint64(params.Trials)
	totals := make([]uint64, params.Dim)
	for i := range totals {
		totals[i] = r.Cohort*uint64(params.Levels)/2 + trials/2 + uint64(i)*r.Cohort/20
	}
	return &wire.Batch{Version: stream.Version, TaskHash: r.TaskHash, Round: r.Round, Attempt: 1, Users: r.Cohort,
		NoiseTrials: trials, Totals: totals, Cutoff: r.Cohort, ManifestHash: bytes.Clone(hash[:]),
		Rejects: []*wire.Reject{{Reason: "range", Count: 1}}}
}

func identity(t testing.TB) *seal.Identity {
	t.Helper()
	id, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}
