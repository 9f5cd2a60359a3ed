package service

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestBatchesThatAreRefused: a batch that does not answer the announced round is refused with the reason, and
// changes nothing.
func TestBatchesThatAreRefused(t *testing.T) {
	people := newCast(t)
	stranger, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(*wire.Batch)
		by     *seal.Identity // nil: the stage
		want   string
	}{
		{"another key", func(*wire.Batch) {}, stranger, seal.ErrWrongKey.Error()},
		{"the learner's own key", func(*wire.Batch) {}, people.learner, seal.ErrWrongKey.Error()},
		{"another manifest", func(b *wire.Batch) { b.ManifestHash[0] ^= 1 }, nil, "another round manifest"},
		{"another task", func(b *wire.Batch) { b.TaskHash[31] ^= 1 }, nil, "of another task of this name"},
		{"another round", func(b *wire.Batch) { b.Round = 2 }, nil, "round"},
		{"fewer users", func(b *wire.Batch) { b.Users = minimum - 1 }, nil, "29 users: the round allows 30 to 42"},
		{"more users", func(b *wire.Batch) { b.Users = cohort + bundle }, nil, "43 users: the round allows 30 to 42"},
		{"a trial too few", func(b *wire.Batch) { b.NoiseTrials-- }, nil, "2559 noise trials"},
		{"a trial too many", func(b *wire.Batch) { b.NoiseTrials++ }, nil, "2561 noise trials"},
		{"without top-up", func(b *wire.Batch) { b.Users, b.NoiseTrials = minimum, minimum*64 }, nil, "owe 2560"},
		{"a total too few", func(b *wire.Batch) { b.Totals = b.Totals[1:] }, nil, "3"},
		{"a total too many", func(b *wire.Batch) { b.Totals = append(b.Totals, 1) }, nil, "5"},
		{"an impossible total", func(b *wire.Batch) { b.Totals[1] = cohort*5 + cohort*64 + 1 }, nil,
			"above the 2760 that the reports can have"},
		{"a huge total", func(b *wire.Batch) { b.Totals[3] = 1 << 63 }, nil, "estimate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, people, 2)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of the bubble's clock: who accepts waits for ever
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- w.new(w.config()).Run(ctx) }()
				round, hash, ok := w.announced(t.Context(), 1)
				if !ok {
					t.Fatal("round 1 was not announced")
				}
				_, before, entries := w.trace()
				b := w.batch(round, hash, cohort)
				b.TaskHash = bytes.Clone(b.TaskHash)
				test.change(b)
				by := test.by
				if by == nil {
					by = people.stage
				}
				w.put(t.Context(), name.Batch(1), w.sign(by, b))
				err := <-done
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "batch of round 1") {
					t.Errorf("Run: %v, want an error about %q", err, test.want)
				}
				public, after, now := w.trace()
				if !after.Equal(before) || len(now) != len(entries) {
					t.Error("something was committed")
				}
				if public[name.Round(2)] != nil || public[name.End()] != nil {
					t.Error("something was announced")
				}
				w.reopen() // and it stays refused
				if again := w.new(w.config()).Run(ctx); again == nil || again.Error() != err.Error() {
					t.Errorf("after a restart: %v, before: %v", again, err)
				}
			})
		})
	}
}

// TestBatchOnAnotherSubject: a batch of round 1, moved to round 2, is not an answer to round 2.
func TestBatchOnAnotherSubject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 2)
		done := make(chan error, 1)
		go func() { done <- w.new(w.config()).Run(t.Context()) }()
		w.answer(t.Context(), 1)
		first := w.get(t.Context(), name.Batch(1))
		w.put(t.Context(), name.Batch(2), first.Data)
		err := <-done
		if err == nil || !strings.Contains(err.Error(), "batch of round 2") {
			t.Errorf("Run: %v", err)
		}
		if _, at, _ := w.trace(); at.Cursor.Round != 1 {
			t.Errorf("round %d is committed, want 1", at.Cursor.Round)
		}
	})
}

// TestOtherLearner: bytes that are not ours, where only we write, stop the learner.
func TestOtherLearner(t *testing.T) {
	for _, subject := range []string{name.Task(), name.Round(1), name.Round(2), name.End()} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, newCast(t), 2)
			w.put(t.Context(), subject, []byte("another learner's"))
			ctx, stop := context.WithCancel(t.Context())
			over := make(chan struct{})
			go func() {
				defer close(over)
				for r := uint64(1); r <= 2 && name.Round(stream.Round(r)) != subject; r++ {
					w.answer(ctx, r)
				}
			}()
			err := w.new(w.config()).Run(ctx)
			stop()
			<-over
			if !isOther(err) || !strings.Contains(err.Error(), subject) {
				t.Errorf("%s: %v, want ErrOtherLearner", subject, err)
			}
		})
	}
}

// TestTwoLearners: of two state folders on one task, one gives way.
func TestTwoLearners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := newWorld(t, newCast(t), 2), newWorld(t, newCast(t), 2)
		other.broker, other.stage = w.broker, w.stage
		w.play(func(ctx context.Context) {
			if err := w.new(w.config()).Run(ctx); err != nil {
				t.Error(err)
			}
			if err := other.new(other.config()).Run(ctx); !isOther(err) {
				t.Errorf("second learner: %v, want ErrOtherLearner", err)
			}
		})
	})
}

// TestStageIdentitiesThatAreRefused: trust on first use still checks what it can.
func TestStageIdentitiesThatAreRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		data func(w *world) []byte
		want string
	}{
		{"no message", func(*world) []byte { return []byte("hello") }, "stage identity"},
		{"of another task", func(w *world) []byte {
			return w.sign(w.stage, &wire.StageIdentity{Version: stream.Version, Task: "other", Key: w.stage.Public()})
		}, `for task "other"`},
		{"another kind of message", func(w *world) []byte {
			return w.sign(w.stage, &wire.End{Version: stream.Version, TaskHash: make([]byte, 32), LastRound: 1})
		}, seal.ErrWrongKind.Error()},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, newCast(t), 1)
			w.put(t.Context(), name.Stage(), test.data(w))
			c := w.config()
			c.StageKey = nil
			err := w.new(c).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.name, err, test.want)
			}
			if _, at, _ := w.trace(); !at.IsZero() {
				t.Errorf("%s: something is committed", test.name)
			}
		})
	}
}

// TestResumeRefuses what does not belong to the folder.
func TestResumeRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Config, *world)
		want   string
	}{
		{"another identity", func(c *Config, w *world) { c.Identity = w.stage }, "--identity"},
		{"another task", func(c *Config, _ *world) { c.Task = "other" }, `belongs to task "churn", not "other"`},
		{"another stage", func(c *Config, w *world) { c.StageKey = w.learner.Public() }, "stage key"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, newCast(t), 2)
			w.run()
			w.reopen()
			_, before, _ := w.trace()
			c := w.config()
			test.change(&c, w)
			c.Prepare = func() (*wire.Task, error) { t.Error("planned again"); return w.body() }
			err := w.new(c).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.name, err, test.want)
			}
			if _, after, _ := w.trace(); !after.Equal(before) {
				t.Errorf("%s: the state changed", test.name)
			}
		})
	}
}

// TestDamagedStates: a folder whose parts do not belong together is refused at the start.
func TestDamagedStates(t *testing.T) {
	people := newCast(t)
	w := undisturbedWorld(t, people, 2)
	public, at, _ := w.trace()
	for what, damage := range map[string]func(*state.Checkpoint){
		"hash":      func(c *state.Checkpoint) { c.Cursor.TaskHash[0] ^= 1 },
		"task":      func(c *state.Checkpoint) { c.Task = c.Task[1:] },
		"optimizer": func(c *state.Checkpoint) { c.Algorithm = c.Algorithm[1:] },
		"end":       func(c *state.Checkpoint) { c.End = c.Task },
		"round":     func(c *state.Checkpoint) { c.End, c.NextRound = nil, public[name.Round(1)] },
	} {
		damaged := at.Clone()
		damage(&damaged)
		if _, err := resume(people.learner, damaged); err == nil {
			t.Errorf("a damaged %s is taken", what)
		}
	}
	if _, err := resume(people.learner, at); err != nil {
		t.Error(err)
	}
}
