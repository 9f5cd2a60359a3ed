package stage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
)

// memoryMarks are marks that outlive a stage's process, and can fail.
type memoryMarks struct {
	mu     sync.Mutex
	last   map[stream.Hash]ownMarks
	broken error
}

func (m *memoryMarks) Claimed(task stream.Hash) (stream.Round, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[task].round, m.broken
}

func (m *memoryMarks) Claim(task stream.Hash, round stream.Round, instance [stream.InstanceSize]byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return false, m.broken
	}
	if m.last == nil {
		m.last = map[stream.Hash]ownMarks{}
	}
	own := m.last[task]
	ours, err := own.Claim(task, round, instance)
	m.last[task] = own
	return ours, err
}

func (m *memoryMarks) set(broken error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = broken
}

// forget moves the world to a broker that has lost everything on ATTEMPTS, LEASES, REPORTS and BATCHES.
func (w *world) forget() {
	kept := w.broker.Dump()
	var err error
	if w.broker, err = memory.New(memory.Config{AckWait: 5 * time.Second}); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range kept {
		if m.Stream == stream.Rounds {
			w.put(w.t.Context(), m.Subject, m.Data)
		}
	}
}

// TestLostClaimAndBatch: the broker loses claim and batch of a round and keeps the round. Without marks the stage that
// starts next opens the round again, and its devices would answer with the same counts: that is what marks are for.
// With them the round is void, and nothing is opened.
func TestLostClaimAndBatch(t *testing.T) {
	for _, with := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 4})
			w.announce(t.Context())
			marks := &memoryMarks{}
			config := func() Config {
				c := w.config()
				if with {
					c.Marks = marks
				}
				return c
			}
			_, stop := w.start(config())
			w.answer(t.Context(), w.invited(t.Context(), 1, 0), w.users(1))
			if w.get(t.Context(), w.name.Close(1, 1)) == nil {
				t.Fatal("no Close")
			}
			_ = stop()
			w.forget()
			_, stop = w.start(config())
			time.Sleep(5 * time.Minute)
			_ = stop()
			_, err := w.broker.Latest(t.Context(), w.name.Opens(1))
			opened := err == nil
			b, _ := w.batch(1)
			if opened == with {
				t.Errorf("with marks: %t; the round was opened again: %t", with, opened)
			}
			if !with {
				return
			}
			if b == nil || !b.Void || b.Reason != stream.VoidRoundLost || b.Cutoff != math.MaxUint64 {
				t.Errorf("batch of the lost round: %v, want a void one that charges everybody", b)
			}
			if _, err := w.broker.Get(t.Context(), w.name.Close(1, 1)); err != nil {
				t.Errorf("Close of the void round: %v", err)
			}
		})
	}
}

// TestRolledBackTogether: broker and learner are restored from one old copy, so that rounds are announced a second
// time. Every round that was ever claimed is void, and so is the one after them, which the learner may have announced;
// the next is open.
func TestRolledBackTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 4, cohort: 3, spares: 5}) // a fourth round may be claimed before the stage ends
		marks := &memoryMarks{}
		c := w.config()
		c.Marks = marks
		ctx, stop := context.WithCancel(t.Context())
		var others sync.WaitGroup
		others.Go(func() { w.answerAll(ctx) })
		others.Go(func() { w.learn(ctx) })
		_, stopStage := w.start(c)
		if w.get(ctx, w.name.Close(3, 1)) == nil {
			t.Fatal("no Close of round 3")
		}
		_ = stopStage()
		stop()
		others.Wait() // they read the broker that is replaced
		claimed, _ := marks.Claimed(w.hash)
		if claimed < 3 {
			t.Fatalf("round %d is marked, want 3 at least", claimed)
		}
		claimed++ // announced, perhaps
		var err error
		if w.broker, err = memory.New(memory.Config{AckWait: 5 * time.Second}); err != nil {
			t.Fatal(err)
		}
		w.run(t.Context(), func(ctx context.Context) {
			c := w.config()
			c.Marks = marks
			if err := w.new(c).Run(ctx); err != nil {
				t.Error(err)
			}
		})
		if real, void := w.audit(); real != 4 || void != int(claimed) {
			t.Errorf("%d real and %d void batches, want 4 and %d", real, void, claimed)
		}
		for r := stream.Round(1); r <= claimed; r++ {
			if _, err := w.broker.Latest(t.Context(), w.name.Opens(r)); err == nil {
				t.Errorf("round %d was opened a second time", r)
			}
		}
	})
}

// watchful checks at every claim that crosses the wire that it is marked.
type watchful struct {
	stream.Records
	w     *world
	marks *memoryMarks
	seen  int
}

func (r *watchful) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	if a, _ := stream.ParseSubject(subject); a.Verb == "claim" {
		r.seen++
		if marked, _ := r.marks.Claimed(r.w.hash); marked != a.Round {
			r.w.t.Errorf("claim of round %d is sent, round %d is marked", a.Round, marked)
		}
	}
	return r.Records.PutOnce(ctx, subject, data)
}

// TestMarkComesBeforeClaim in an undisturbed run, which marks do not change otherwise.
func TestMarkComesBeforeClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 3, cohort: 3})
		c := w.config()
		marks := &memoryMarks{}
		records := &watchful{Records: c.Records, w: w, marks: marks}
		c.Records, c.Marks = records, marks
		w.run(t.Context(), func(ctx context.Context) {
			if err := w.new(c).Run(ctx); err != nil {
				t.Error(err)
			}
		})
		if real, void := w.audit(); real != 3 || void != 0 || records.seen != 3 {
			t.Errorf("%d real, %d void batches, %d claims: want 3, 0, 3", real, void, records.seen)
		}
	})
}

// TestMarksOnAFullDisk: nothing is claimed that cannot be marked. The round is released when the disk has room again,
// and a stage that is stopped before that has claimed nothing.
func TestMarksOnAFullDisk(t *testing.T) {
	full := errors.New("no space left on device")
	for _, recovers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 4})
			w.announce(t.Context())
			marks := &memoryMarks{}
			c := w.config()
			c.Marks = marks
			var log bytes.Buffer
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s, stop := w.start(c)
			in := w.invited(t.Context(), 1, 0)
			marks.set(full)
			w.answer(t.Context(), in, w.users(1))
			time.Sleep(5 * time.Minute)
			for _, subject := range []string{w.name.Claim(1), w.name.Batch(1)} {
				if _, err := w.broker.Get(t.Context(), subject); !errors.Is(err, stream.ErrNotFound) {
					t.Errorf("%s is there without a mark: %v", subject, err)
				}
			}
			if got := s.Status().Phase; !strings.Contains(got, "marking") {
				t.Errorf("the stage is %s, want marking", got)
			}
			if got := s.Status().Trouble; !strings.HasPrefix(got, OwnDisk) {
				t.Errorf("the cause is %q, want that it is the stage's own disk", got)
			}
			if text := log.String(); !strings.Contains(text, "its own --state") ||
				strings.Contains(text, "call of the broker failed") {
				t.Errorf("the log calls the stage's own disk the broker's:\n%s", text)
			}
			if !recovers {
				_ = stop()
				if _, err := w.broker.Get(t.Context(), w.name.Claim(1)); !errors.Is(err, stream.ErrNotFound) {
					t.Error("claimed while stopping")
				}
				return
			}
			marks.set(nil)
			time.Sleep(time.Minute)
			if real, void := w.audit(); real != 1 || void != 0 {
				t.Errorf("%d real, %d void batches", real, void)
			}
			_ = stop()
		})
	}
}

// TestUnreadableMarks: who cannot read its marks opens nothing.
func TestUnreadableMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 4})
		w.announce(t.Context())
		c := w.config()
		c.Marks = &memoryMarks{broken: errors.New("damaged")}
		_, stop := w.start(c)
		time.Sleep(5 * time.Minute)
		_ = stop()
		if _, err := w.broker.Latest(t.Context(), w.name.Opens(1)); !errors.Is(err, stream.ErrNotFound) {
			t.Errorf("opened: %v", err)
		}
	})
}

// TestCrashBetweenMarkAndClaim costs the round: nobody can tell whether a claim was sent.
func TestCrashBetweenMarkAndClaim(t *testing.T) {
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 2, cohort: 3, spares: 1})
			marks := &memoryMarks{}
			with := func(c *Config) { c.Marks = marks }
			var sent wires
			w.run(t.Context(), func(ctx context.Context) {
				if _, lived := w.life(ctx, "put claim.1 #1", after, &sent, with); lived {
					t.Error("the first life did not die")
				}
				if _, lived := w.life(ctx, "", false, &sent, with); !lived {
					t.Error("the second life did not end the task")
				}
			})
			sent.audit(t, w)
			if real, void := w.audit(); real != 2 || void != 1 {
				t.Errorf("%d real, %d void batches, want 2 and 1", real, void)
			}
		})
	}
}
