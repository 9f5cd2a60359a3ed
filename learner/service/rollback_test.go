package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A recorder keeps every commit, so that the folder can be had as it was after any of them.
type recorder struct {
	state.Store
	commits []commit
}

func (r *recorder) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry, kept ...state.Kept) error {
	err := r.Store.Commit(ctx, next, entries, kept...)
	if err == nil {
		r.commits = append(r.commits, commit{next: next.Clone(), entries: slices.Clone(entries)})
	}
	return err
}

// A history is a whole run, of which copies of folder and broker are taken as they were at any time.
type history struct {
	*world
	commits []commit // the start, then one a round
	public  map[string][]byte
	last    uint64 // round
}

// recorded returns a run of 4 rounds, the second of which is void.
func recorded(t *testing.T, people cast) *history { return recordedWhere(t, people, false) }

// recordedWhere is like recorded; if timed, the rounds of the world have deadlines of their own.
func recordedWhere(t *testing.T, people cast, timed bool) *history {
	t.Helper()
	h := new(history)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, people, 3)
		w.voids, w.timed = map[uint64]bool{2: true}, timed
		r := &recorder{Store: w.store}
		w.play(func(ctx context.Context) {
			c := w.config()
			c.Store = r
			if err := w.new(c).Run(ctx); err != nil {
				t.Error(err)
			}
		})
		h.world, h.commits = w, r.commits
		h.public, _, _ = w.trace()
	})
	h.t, h.last = t, uint64(len(h.commits)-1)
	if h.last != 4 {
		t.Fatalf("the run has %d rounds, want 4", h.last)
	}
	return h
}

// at returns a world with the folder as it was when round k was committed, and with these records on the
// broker, in the order in which they were written.
func (h *history) at(t *testing.T, k uint64, stands func(stream.Address) bool) *world {
	t.Helper()
	w := newWorld(t, h.cast, h.rounds)
	w.voids, w.timed = h.voids, h.timed
	for _, c := range h.commits[:k+1] {
		if err := w.store.Commit(t.Context(), c.next, c.entries); err != nil {
			t.Fatal(err)
		}
	}
	order := []string{name.Stage(), name.Task()}
	for r := uint64(1); r <= h.last; r++ {
		order = append(order, name.Round(stream.Round(r)), name.Batch(stream.Round(r)))
	}
	for _, subject := range append(order, name.End()) {
		if a, err := stream.ParseSubject(subject); err != nil || stands(a) {
			w.put(t.Context(), subject, h.public[subject])
		}
	}
	return w
}

// until selects the records that exist when round r is announced, and perhaps answered.
func until(r stream.Round, answered bool) func(stream.Address) bool {
	return func(a stream.Address) bool {
		switch a.Verb {
		case "round":
			return a.Round <= r
		case "batch":
			return a.Round < r || a.Round == r && answered
		case "end":
			return false
		}
		return true
	}
}

func everything(stream.Address) bool { return true }

// refused runs a learner that must refuse at its start, with these words, and write nothing.
func (w *world) refused(change func(*Config), want error, words ...string) {
	w.t.Helper()
	before, at, _ := w.trace()
	c := w.config()
	if change != nil {
		change(&c)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Hour) // of the bubble's clock, if it is not refused
	defer stop()
	err := w.new(c).Run(ctx)
	if !errors.Is(err, want) {
		w.t.Errorf("Run: %v, want %v", err, want)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("%v does not say %q", err, word)
		}
	}
	after, now, _ := w.trace()
	if len(after) != len(before) {
		w.t.Errorf("%d records stand, %d before it refused", len(after), len(before))
	}
	if !now.Equal(at) {
		w.t.Error("something was committed")
	}
}

func accept(c *Config) { c.AcceptRollback = true }

// TestEveryPairOfCopies takes every copy of the folder and every copy of the broker of one run. Only those that a crash
// can leave go on; where the folder is older the learner refuses until a flag lets it apply the batches again, and where
// the broker is older it refuses. Whatever goes on leaves, byte for byte, what the undisturbed run left.
func TestEveryPairOfCopies(t *testing.T) {
	h := recorded(t, newCast(t))
	type copied struct {
		what   string
		stands func(stream.Address) bool
		newest uint64
		batch  uint64 // newest batch
		ended  bool
	}
	brokers := []copied{{what: "all of it", stands: everything, newest: h.last, batch: h.last, ended: true}}
	for r := uint64(0); r <= h.last; r++ {
		brokers = append(brokers, copied{fmt.Sprintf("round %d", r), until(stream.Round(r), false), r, max(r, 1) - 1, false})
		if r > 0 {
			brokers = append(brokers, copied{fmt.Sprintf("round %d and its batch", r), until(stream.Round(r), true), r, r,
				false})
		}
	}
	outcomes := map[string]int{}
	for k := range h.last + 1 {
		for _, b := range brokers {
			synctest.Test(t, func(t *testing.T) {
				w := h.at(t, k, b.stands)
				goesOn := func(change func(*Config)) {
					w.play(func(ctx context.Context) {
						c := w.config()
						change(&c)
						if err := w.new(c).Run(ctx); err != nil {
							t.Error(err)
						}
					})
					same(t, w, h.world)
				}
				done := k == h.last
				switch {
				case b.newest > k+1, b.ended && !done:
					outcomes["folder is older"]++
					standing := fmt.Sprintf("there stands round %d", b.newest)
					if b.ended {
						standing = fmt.Sprintf("the end of the task after round %d", h.last)
					}
					w.refused(nil, ErrStateRolledBack, fmt.Sprintf("round %d is committed here", k), standing, "--accept-rollback")
					goesOn(accept)
				case !done && (b.newest < k || b.batch < k):
					outcomes["broker is older"]++
					w.refused(nil, ErrBrokerRolledBack, "restore the broker's streams")
					w.refused(accept, ErrBrokerRolledBack)
				case done && b.batch < k: // a task that has ended asks nothing of its broker
					outcomes["over"]++
					if err := w.new(w.config()).Run(t.Context()); err != nil {
						t.Error(err)
					}
				default:
					outcomes["goes on"]++
					goesOn(func(*Config) {})
				}
				if t.Failed() {
					t.Logf("folder after round %d, broker with %s", k, b.what)
				}
			})
		}
	}
	t.Log(outcomes)
	for _, what := range []string{"folder is older", "broker is older", "goes on"} {
		if outcomes[what] < 8 {
			t.Errorf("%s: %d times only", what, outcomes[what])
		}
	}
}

// TestCrashWhileApplyingAgain kills a learner that catches up at every effect, done or not. The next life ends with the
// same bytes, so the ledger charges again every round that was ever announced.
func TestCrashWhileApplyingAgain(t *testing.T) {
	h := recorded(t, newCast(t))
	for k := 1; ; k++ {
		lived := false
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := h.at(t, 0, until(stream.Round(h.last), false))
				w.accept = true
				w.play(func(ctx context.Context) {
					if _, lived = w.life(ctx, k, after); lived {
						return
					}
					w.reopen()
					if _, again := w.life(ctx, 0, false); !again {
						t.Error("the second life did not end the task")
					}
				})
				same(t, w, h.world)
			})
		}
		if lived {
			break
		}
	}
}

// TestAcceptingNeedsTheBatches checks that a batch that is gone cannot be applied again, and that its round is
// not asked a second time.
func TestAcceptingNeedsTheBatches(t *testing.T) {
	h := recorded(t, newCast(t))
	synctest.Test(t, func(t *testing.T) {
		w := h.at(t, 0, func(a stream.Address) bool { return a.Verb != "end" && (a.Verb != "batch" || a.Round == 1) })
		before, _, _ := w.trace()
		c := w.config()
		c.AcceptRollback = true
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		err := w.new(c).Run(ctx)
		if !errors.Is(err, ErrBrokerRolledBack) || !strings.Contains(err.Error(), "batch of round 2 was there and is gone") {
			t.Errorf("Run: %v", err)
		}
		if after, at, _ := w.trace(); len(after) != len(before) || at.Cursor.Round != 1 {
			t.Errorf("round %d is committed, %d records stand, %d before", at.Cursor.Round, len(after), len(before))
		}
	})
}

// TestAppliedBatchChanged: other bytes, or the same ones at an earlier place, where the last applied batch was.
func TestAppliedBatchChanged(t *testing.T) {
	h := recorded(t, newCast(t))
	without := func(a stream.Address) bool {
		return until(3, true)(a) && a != (stream.Address{Task: name, Verb: "batch", Round: 3})
	}
	synctest.Test(t, func(t *testing.T) {
		w := h.at(t, 3, without)
		round, hash, _ := w.announced(t.Context(), 3)
		w.put(t.Context(), name.Batch(3), w.sign(w.stage, w.batch(round, hash, minimum)))
		w.refused(nil, ErrBrokerRolledBack, "the batch of round 3 there has hash")
	})
	synctest.Test(t, func(t *testing.T) {
		lost := func(a stream.Address) bool { return without(a) && (a.Verb != "batch" || a.Round > 1) }
		w := h.at(t, 3, lost)
		w.put(t.Context(), name.Batch(3), h.public[name.Batch(3)])
		w.refused(nil, ErrBrokerRolledBack, "at stream sequence 2, it was applied from sequence 3")
	})
}

// TestLostWhileRunning: reads show the history, but the write of the next round tells that its stream has lost some;
// and a batch comes from a stream that has lost some.
func TestLostWhileRunning(t *testing.T) {
	h := recorded(t, newCast(t))
	synctest.Test(t, func(t *testing.T) {
		w := h.at(t, 3, func(a stream.Address) bool { return until(3, true)(a) && (a.Verb != "round" || a.Round == 3) })
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		err := w.new(w.config()).Run(ctx)
		if !errors.Is(err, ErrBrokerRolledBack) ||
			!strings.Contains(err.Error(), "round.4 stands at stream sequence 3, and 4 records were written before it") {
			t.Errorf("Run: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := h.at(t, 3, until(3, true))
		lossy := &amnesiac{Records: w.broker, fresh: newWorld(t, h.cast, 3)}
		c := w.config()
		c.Records = lossy
		done := make(chan error, 1)
		go func() { done <- w.new(c).Run(t.Context()) }()
		round, hash, _ := w.announced(t.Context(), 4)
		lossy.fresh.put(t.Context(), name.Batch(4), w.sign(w.stage, w.batch(round, hash, w.place(round).Cohort)))
		var back *state.RollbackError
		if err := <-done; !errors.Is(err, ErrBrokerRolledBack) || !errors.As(err, &back) || back.Sequence != 1 ||
			back.Earlier != 3 {
			t.Errorf("Run: %v, want a batch at sequence 1 after one at 3 refused", err)
		}
		if _, at, _ := w.trace(); at.Cursor.Round != 3 {
			t.Errorf("round %d is committed", at.Cursor.Round)
		}
	})
}

// amnesiac answers batch 4 from a broker that has no other.
type amnesiac struct {
	stream.Records
	fresh *world
}

func (a *amnesiac) Get(ctx context.Context, subject string) (stream.Message, error) {
	if subject == name.Batch(4) {
		return a.fresh.broker.Get(ctx, subject)
	}
	return a.Records.Get(ctx, subject)
}

// TestLostRounds: only the rounds' stream was rolled back. The batches are there, and nothing is written before the
// refusal.
func TestLostRounds(t *testing.T) {
	h := recorded(t, newCast(t))
	synctest.Test(t, func(t *testing.T) {
		w := h.at(t, 3, func(a stream.Address) bool { return until(3, true)(a) && (a.Verb != "round" || a.Round == 1) })
		w.refused(accept, ErrBrokerRolledBack, "round 3 is committed here, and the newest round there is 1")
	})
}

// TestLagIsNotARollback: a broker that cannot be reached, then is answered for by a replica that lags, is waited for.
func TestLagIsNotARollback(t *testing.T) {
	h := recorded(t, newCast(t))
	for _, op := range []memory.Op{memory.Latest, memory.Get} {
		synctest.Test(t, func(t *testing.T) {
			w := h.at(t, 3, until(3, true))
			lagging := 8 // at most a second each, within patience
			w.broker.Inject(func(o memory.Op, subject string) memory.Fault {
				if o == op && lagging > 0 && subject != name.End() {
					lagging--
					return memory.Lag
				}
				return memory.None
			})
			w.broker.Disconnect()
			time.AfterFunc(10*time.Minute, w.broker.Connect)
			w.play(func(ctx context.Context) {
				if err := w.new(w.config()).Run(ctx); err != nil {
					t.Error(err)
				}
			})
			same(t, w, h.world)
			if lagging > 0 {
				t.Errorf("%d reads to lag are left", lagging)
			}
		})
	}
}

// TestPastOfAnotherLearner: records of another learner under our subjects are no rollback.
func TestPastOfAnotherLearner(t *testing.T) {
	h := recorded(t, newCast(t))
	foreign := bytes.Repeat([]byte{7}, 32)
	for what, sign := range map[string]struct {
		by   func(*world) *seal.Identity
		hash []byte
	}{
		"another key":  {func(w *world) *seal.Identity { return w.stage }, nil},
		"another task": {func(w *world) *seal.Identity { return w.learner }, foreign},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := h.at(t, 1, until(1, true))
			round, _, _ := w.announced(t.Context(), 1)
			round.Round = 9
			if sign.hash != nil {
				round.TaskHash = sign.hash
			}
			w.put(t.Context(), name.Round(9), w.sign(sign.by(w), round))
			w.refused(accept, ErrOtherLearner, name.Round(9))
			if t.Failed() {
				t.Log(what)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // an end that this state does not lead to
		w := h.at(t, 2, until(2, true))
		end := &wire.End{Version: stream.Version, TaskHash: h.commits[0].next.Cursor.TaskHash[:], LastRound: 2,
			Reason: ReasonDone}
		w.put(t.Context(), name.End(), w.sign(w.learner, end))
		w.refused(accept, ErrOtherLearner, "going on after round 2 here", "over after round 2 there")
	})
	synctest.Test(t, func(t *testing.T) { // and a round after the end
		w := h.at(t, h.last, until(stream.Round(h.last), true))
		round, _, _ := w.announced(t.Context(), 1)
		round.Round = h.last + 2
		w.put(t.Context(), name.Round(stream.Round(h.last+2)), w.sign(w.learner, round))
		w.refused(accept, ErrOtherLearner, "over after round 4 here", "going on after round 5 there")
	})
}

// TestAnEmptyFolderAndATaskThatBegan: a learner without a state does not wait for the stage's key where a
// learner's records exist, or are put meanwhile: the stages of a task that is over put none.
func TestAnEmptyFolderAndATaskThatBegan(t *testing.T) {
	h := recorded(t, newCast(t))
	for _, stands := range []string{name.Task(), name.Round(2), name.End()} {
		for _, meanwhile := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, h.cast, h.rounds)
				c := w.config()
				c.StageKey = nil
				if !meanwhile {
					w.put(t.Context(), stands, h.public[stands])
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Hour) // of the bubble's clock
				defer stop()
				done := make(chan error, 1)
				go func() { done <- w.new(c).Run(ctx) }()
				if meanwhile {
					time.Sleep(time.Minute)
					w.put(ctx, stands, h.public[stands])
				}
				if err := <-done; !errors.Is(err, ErrOtherLearner) || !strings.Contains(err.Error(), stands) {
					t.Errorf("Run: %v, want ErrOtherLearner, as %s stands", err, stands)
				}
				if _, at, _ := w.trace(); !at.IsZero() {
					t.Error("something is committed")
				}
			})
		}
	}
}
