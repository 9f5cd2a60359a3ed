package stage

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestRefusals: records on the broker that must end Run with an error that says why, or, if their writer did not write
// them, make the stage wait and log why. change comes before anything is put; put is done before the stage starts.
func TestRefusals(t *testing.T) {
	round := func(w *world, change func(*wire.Round)) []byte {
		r := proto.CloneOf(w.round(1, 1))
		change(r)
		return w.sign(w.learner, r)
	}
	for _, c := range []struct {
		name, want string
		waits, pin bool // pin: the learner's key is pinned
		plan       plan
		limits     stream.Limits
		task       func(*world)
		put        func(*world, func(string, []byte))
	}{
		{name: "another stage stands", want: "start with that stage's identity file",
			put: func(w *world, put func(string, []byte)) {
				other := identity(w.t)
				put(w.name.Stage(), w.sign(other, &wire.StageIdentity{Version: 1, Task: string(w.name), Key: other.Public()}))
			}},
		{name: "garbage stands for a stage", want: "not a stage's identity", put: func(w *world, put func(string, []byte)) {
			put(w.name.Stage(), []byte("garbage"))
		}},
		{name: "a task for another stage", want: "start with the identity file that the task was published with",
			task: func(w *world) { w.task.StageKey = w.learner.Public() }},
		{name: "a task that another learner signed", want: "pinned", put: func(w *world, put func(string, []byte)) {
			put(w.name.Task(), w.sign(w.stage, w.task))
		}, pin: true},
		{name: "a task of another learner", want: "names the learner",
			task: func(w *world) { w.task.LearnerKey = w.stage.Public() }},
		{name: "a task of another name", want: `named "other"`, task: func(w *world) { w.task.Name = "other" }},
		{name: "too few users", want: "want at least rounds", task: func(w *world) { w.task.Plan.Phases[0].Users-- }},
		{name: "a batch too large", want: "a batch of this plan takes up to", limits: stream.Limits{MaxPayload: 500}},
		{name: "a report too large", want: "a report of this plan takes up to", limits: stream.Limits{MaxPayload: 20}},
		{name: "a task that was tampered with", waits: true, want: "signature", put: func(w *world, put func(string, []byte)) {
			data := w.sign(w.learner, w.task)
			data[len(data)-1] ^= 1
			put(w.name.Task(), data)
		}},
		{name: "a round of another learner", waits: true, want: "pinned", put: func(w *world, put func(string, []byte)) {
			put(w.name.Round(1), w.sign(w.stage, w.round(1, 1)))
		}},
		{name: "a round that was tampered with", waits: true, want: "signature", put: func(w *world, put func(string, []byte)) {
			data := w.sign(w.learner, w.round(1, 1))
			data[len(data)-1] ^= 1
			put(w.name.Round(1), data)
		}},
		{name: "a round on another's subject", waits: true, want: "holds KIND_ROUND of round 2",
			put: func(w *world, put func(string, []byte)) {
				put(w.name.Round(1), round(w, func(r *wire.Round) { r.Round = 2 }))
			}},
		{name: "a round of another task", want: "another task", put: func(w *world, put func(string, []byte)) {
			put(w.name.Round(1), round(w, func(r *wire.Round) { r.TaskHash = make([]byte, 32) }))
		}},
		{name: "a step beyond the plan", want: "contradicts its task: step 99",
			put: func(w *world, put func(string, []byte)) {
				put(w.name.Round(1), round(w, func(r *wire.Round) { r.Step = 99 }))
			}},
		{name: "a longer point", want: "contradicts its task: number of values",
			put: func(w *world, put func(string, []byte)) {
				put(w.name.Round(1), round(w, func(r *wire.Round) { r.Point = append(r.Point, 0) }))
			}},
		{name: "a deadline that its plan does not allow", want: "contradicts its task: deadline_ms 3600000",
			put: func(w *world, put func(string, []byte)) {
				put(w.name.Round(1), round(w, func(r *wire.Round) { r.DeadlineMs = 3_600_000 }))
			}},
		{name: "a claim that nobody of us made", waits: true, want: "did not write", put: func(w *world, put func(string, []byte)) {
			put(w.name.Claim(1), w.sign(w.learner, w.claim(stream.Hash{})))
		}},
		{name: "a claim of another manifest", want: "another learner announced the same round",
			put: func(w *world, put func(string, []byte)) {
				put(w.name.Claim(1), w.sign(w.stage, w.claim(stream.Hash{1})))
			}},
		{name: "a claim of another task", want: "is of another task", put: func(w *world, put func(string, []byte)) {
			c := w.claim(stream.Hash{})
			c.TaskHash = make([]byte, 32)
			put(w.name.Claim(1), w.sign(w.stage, c))
		}},
		{name: "an End of another task", want: "is of another task", put: func(w *world, put func(string, []byte)) {
			put(w.name.End(), w.sign(w.learner, &wire.End{Version: 1, TaskHash: make([]byte, 32)}))
		}},
		{name: "a batch that nobody of us made", waits: true, want: "did not write", put: func(w *world, put func(string, []byte)) {
			put(w.name.Batch(1), w.sign(w.learner, w.real()))
		}},
		{name: "a Close of another batch", want: "is not the Close of the batch that stands",
			put: func(w *world, put func(string, []byte)) {
				put(w.name.Batch(1), w.sign(w.stage, w.real()))
				put(w.name.Close(1, 1), w.sign(w.stage, &wire.Close{
					Version: 1, TaskHash: w.hash[:], Round: 1, Attempt: 1, ManifestHash: make([]byte, 32), BatchHash: make([]byte, 32),
				}))
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.plan.cohort = 4
				w := newWorld(t, c.plan)
				if c.task != nil {
					c.task(w)
					body, _ := stream.Marshal(w.task)
					w.hash = stream.HashOf(body)
				}
				ctx := t.Context()
				if c.put != nil {
					c.put(w, func(subject string, data []byte) { w.put(ctx, subject, data) })
				}
				_, _ = w.broker.PutOnce(ctx, w.name.Task(), w.sign(w.learner, w.task))
				if data, err := w.learner.Sign(w.round(1, 1)); err == nil { // a broken plan has no rounds
					_, _ = w.broker.PutOnce(ctx, w.name.Round(1), data)
				}
				cfg := w.config()
				if c.pin {
					cfg.LearnerKey = w.learner.Public()
				}
				if c.limits.MaxPayload > 0 {
					cfg.Limits = c.limits
				}
				ctx, stop := context.WithTimeout(ctx, time.Minute)
				defer stop()
				running := w.new(cfg)
				err := running.Run(ctx)
				if said := running.Status().Trouble; c.waits && (!errors.Is(err, context.DeadlineExceeded) || !strings.Contains(said, c.want)) {
					t.Errorf("Run: %v, and the status has %q: want that it waits, and %q", err, said, c.want)
				}
				if !c.waits && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("Run: %v, want %q", err, c.want)
				}
			})
		})
	}
}

// claim returns a claim of attempt 1 at round 1 by a life that is over; the zero hash means the right manifest.
func (w *world) claim(hash stream.Hash) *wire.Claim {
	if hash == (stream.Hash{}) {
		hash, _ = manifest.RoundHash(w.round(1, 1))
	}
	return &wire.Claim{
		Version: stream.Version, TaskHash: w.hash[:], Round: 1, Attempt: 1, ManifestHash: hash[:], Instance: make([]byte, 16),
	}
}

// real returns a batch of attempt 1 at round 1.
func (w *world) real() *wire.Batch {
	hash, _ := manifest.RoundHash(w.round(1, 1))
	return &wire.Batch{
		Version: stream.Version, TaskHash: w.hash[:], Round: 1, Attempt: 1, ManifestHash: hash[:],
		Users:       w.task.Plan.Phases[0].Cohort,
		NoiseTrials: w.task.Plan.Phases[0].Cohort, Totals: append(make([]uint64, w.params.Dim-4), 1, 1, 1, 1), Cutoff: 9,
	}
}

// TestPinnedLearner: with a pinned key the first Task to come is not trusted.
func TestPinnedLearner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 4})
		w.announce(t.Context())
		c := w.config()
		c.LearnerKey = identity(t).Public()
		if err := w.new(c).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "pinned") {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestStaleAttemptsAreNotCounted: what was sent to a dead attempt and is delivered to the next one, however often.
func TestStaleAttemptsAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 4, suite: wire.Suite_SUITE_X25519})
		w.announce(t.Context())
		_, stop := w.start(w.config())
		in := w.invited(t.Context(), 1, 0)
		old := w.seal(in, [][16]byte{randomID()}, w.plaintext(0))
		_ = stop()
		// No purge gets through, and the dead attempt's report arrives after the new attempt has begun.
		w.broker.Inject(func(op memory.Op, _ string) memory.Fault {
			if op == memory.Purge {
				return memory.Lost
			}
			return memory.None
		})
		w.send(t.Context(), in, old)
		reasons := map[Reason]int{}
		failed := 0
		c := w.config()
		c.Observer.Report = func(r Reason) { reasons[r]++ }
		c.Observer.Failed = func(string) { failed++ }
		_, stop = w.start(c)
		again := w.invited(t.Context(), 1, 1)
		w.send(t.Context(), in, old)
		w.send(t.Context(), again, old)
		w.answer(t.Context(), again, w.users(1))
		time.Sleep(20 * time.Second)
		if real, _ := w.audit(); real != 1 || reasons[WrongAttempt] != 2 || reasons[Undecryptable] != 1 || failed == 0 {
			t.Errorf("%d real batches, reasons %v, %d failures", real, reasons, failed)
		}
		_ = stop()
	})
}
