package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestBatchesThatAreRefused: a batch that the stage signed, and that does not answer the announced round, is refused with
// the reason, and changes nothing.
func TestBatchesThatAreRefused(t *testing.T) {
	people := newCast(t)
	for _, test := range []struct {
		name   string
		change func(*wire.Batch)
		want   string
	}{
		{"another manifest", func(b *wire.Batch) { b.ManifestHash[0] ^= 1 }, "another round manifest"},
		{"another task", func(b *wire.Batch) { b.TaskHash = make([]byte, stream.HashSize) }, "of another task"},
		{"fewer users", func(b *wire.Batch) { b.Users = minimum - 1 }, "29 users: the round allows 30 to 42"},
		{"more users", func(b *wire.Batch) { b.Users = cohort + bundle }, "43 users: the round allows 30 to 42"},
		{"a trial too few", func(b *wire.Batch) { b.NoiseTrials-- }, "2559 noise trials"},
		{"a trial too many", func(b *wire.Batch) { b.NoiseTrials++ }, "2561 noise trials"},
		{"without top-up", func(b *wire.Batch) { b.Users, b.NoiseTrials = minimum, minimum*64 }, "owe 2560"},
		{"a total too few", func(b *wire.Batch) { b.Totals = b.Totals[1:] }, "3"},
		{"a total too many", func(b *wire.Batch) { b.Totals = append(b.Totals, 1) }, "5"},
		{"an impossible total", func(b *wire.Batch) { b.Totals[1] = cohort*5 + cohort*64 + 1 },
			"above the 2760 that the reports can have"},
		{"a huge total", func(b *wire.Batch) { b.Totals[3] = 1 << 63 }, "estimate"},
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
				test.change(b)
				w.put(t.Context(), name.Batch(1), w.sign(people.stage, b))
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

// A liar is a broker that shows a record of its own making under one subject, as long as lies are left.
type liar struct {
	stream.Records
	subject string
	lie     []byte
	left    int
}

func (l *liar) Get(ctx context.Context, subject string) (stream.Message, error) {
	if subject == l.subject && l.left > 0 {
		l.left--
		return stream.Message{Subject: subject, Data: l.lie, Sequence: 1 << 40}, nil
	}
	return l.Records.Get(ctx, subject)
}

// TestBatchThatTheStageDidNotWrite: what a broker shows under the subject of a batch, and the stage did not write there,
// costs waiting, never the task: the learner says so once, goes on looking, and takes the batch that comes. It can be
// ended meanwhile. So it is where the batch is known to stand, after a restart.
func TestBatchThatTheStageDidNotWrite(t *testing.T) {
	for lie, forge := range map[string]func(w *world, first, second []byte) []byte{
		"a batch of round 1, moved to round 2": func(_ *world, first, _ []byte) []byte { return first },
		"no signature": func(_ *world, _, second []byte) []byte {
			second = bytes.Clone(second)
			second[len(second)-1] ^= 1
			return second
		},
		"no record": func(*world, []byte, []byte) []byte { return []byte("batch") },
		"another key": func(w *world, _, second []byte) []byte {
			return w.sign(w.learner, batchIn(w, second))
		},
	} {
		t.Run(lie, func(t *testing.T) {
			people := newCast(t)
			want := undisturbedWorld(t, people, 3)
			first, second := want.get(t.Context(), name.Batch(1)).Data, want.get(t.Context(), name.Batch(2)).Data
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, people, 3)
				lying := &liar{Records: w.broker, subject: name.Batch(2), lie: forge(w, first, second), left: 200}
				c, said := w.config(), 0
				c.Records = lying
				c.Logger = slog.New(warnings{slog.DiscardHandler, passedOver, &said})
				w.play(func(ctx context.Context) {
					life, stop := context.WithTimeout(ctx, 50*time.Second)
					defer stop()
					if err := w.new(c).Run(life); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("while the broker lies: %v", err)
					}
					if _, at, _ := w.trace(); at.Cursor.Round != 1 || said != 1 || lying.left == 0 {
						t.Errorf("round %d is committed, and the lie was told %d times; %d lies are left", at.Cursor.Round, said,
							lying.left)
					}
					if err := w.new(c).Run(ctx); err != nil {
						t.Errorf("after the lies: %v", err)
					}
				})
				_, got, _ := w.trace()
				if _, at, _ := want.trace(); !bytes.Equal(got.Algorithm, at.Algorithm) || !got.Ended() {
					t.Error("another model than without lies")
				}
			})
		})
	}
}

// warnings counts the warnings of one message.
type warnings struct {
	slog.Handler
	message string
	n       *int
}

func (c warnings) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c warnings) Enabled(context.Context, slog.Level) bool { return true }
func (c warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Message == c.message && r.Level >= slog.LevelWarn {
		*c.n++
	}
	return nil
}

// batchIn returns the batch in a record.
func batchIn(w *world, record []byte) *wire.Batch {
	var b wire.Batch
	if _, err := seal.Verify(record, w.stage.Public(), &b); err != nil {
		w.t.Fatal(err)
	}
	return &b
}

// TestForgedBatchIsGivenUp: a learner that is asked to end at once does so while the broker holds a batch that the stage
// did not sign.
func TestForgedBatchIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 3)
		c := w.config()
		c.Finish = NewFinisher()
		done := make(chan error, 1)
		go func() { done <- w.new(c).Run(t.Context()) }()
		w.answer(t.Context(), 1)
		w.put(t.Context(), name.Batch(2), w.get(t.Context(), name.Batch(1)).Data)
		time.Sleep(5 * time.Minute)
		c.Finish.Finish(true)
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if _, at, _ := w.trace(); at.Cursor.Round != 1 || !at.Ended() {
			t.Errorf("round %d is committed, ended: %t", at.Cursor.Round, at.Ended())
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
