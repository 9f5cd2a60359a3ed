package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// standingEnd returns the End of a world, nil for none.
func (w *world) standingEnd() *wire.End {
	w.t.Helper()
	m, err := w.broker.Get(context.Background(), name.End())
	if err != nil {
		return nil
	}
	end := &wire.End{}
	if _, err := seal.Verify(m.Data, w.learner.Public(), end); err != nil {
		w.t.Fatal(err)
	}
	return end
}

// ended checks how a world was finished: the last round, the reason, the disk, and a charge for each round that was
// reserved.
func (w *world) ended(last uint64, reason string) {
	w.t.Helper()
	end := w.standingEnd()
	if end == nil || end.LastRound != last || end.Reason != reason {
		w.t.Fatalf("End is %v, want last round %d: %s", end, last, reason)
	}
	_, at, entries := w.trace()
	if !at.Ended() || at.Cursor.Round != last || at.VerifyLedger(state.Ledger{}, state.Entries(entries)) != nil {
		w.t.Errorf("on disk: ended %v, round %d, want %d", at.Ended(), at.Cursor.Round, last)
	}
	charged := chargedOf(entries)
	want := last
	if reason == ReasonGivenUp {
		want++
		if given := charged[len(charged)-1]; given.Kind != state.Void || given.Round != last+1 || given.Epsilon <= 0 ||
			!given.BatchHash.IsZero() {
			w.t.Errorf("the round that was given up: %+v, want it void and charged", given)
		}
	}
	if open := at.Ledger.IsOpen(); open || uint64(len(charged)) != want {
		w.t.Errorf("%d rounds are charged and one is open: %v, want %d and none", len(charged), open, want)
	}
}

// announcing returns an observer that is called when a round is announced, and when one is applied.
func announcing(announced, applied func(round uint64)) (o Observer) {
	if announced != nil {
		o.Announced = func(r, _ uint64) { announced(r) }
	}
	if applied != nil {
		o.Applied = func(a Applied) { applied(a.Round) }
	}
	return o
}

// TestFinish ends a task at each place: with a round announced, which is taken along; with one committed and not
// announced, which nobody is asked for any more; and before the first one. Asking a learner again whose task has ended
// changes nothing.
func TestFinish(t *testing.T) {
	for what, test := range map[string]struct {
		endless bool
		observe func(f *Finisher) Observer
		last    uint64
		reason  string
	}{
		"an open round is taken along": {false, func(f *Finisher) Observer {
			return announcing(func(r uint64) {
				if r == 2 {
					f.Finish(false)
				}
			}, nil)
		}, 2, reasonFinished},
		"the next one is not announced": {false, func(f *Finisher) Observer {
			return announcing(nil, func(r uint64) {
				if r == 2 {
					f.Finish(false)
				}
			})
		}, 2, ReasonGivenUp},
		"before the first": {false, func(f *Finisher) Observer { f.Finish(false); return Observer{} }, 0, ReasonGivenUp},
		"the last round": {false, func(f *Finisher) Observer {
			return announcing(func(r uint64) {
				if r == 4 {
					f.Finish(false)
				}
			}, nil)
		}, 4, ReasonDone},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, newCast(t), 4)
			if test.endless {
				w = endless(t, newCast(t))
			}
			c := w.config()
			c.Finish = NewFinisher()
			c.Observer = test.observe(c.Finish)
			w.play(func(ctx context.Context) {
				if err := w.new(c).Run(ctx); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
			w.ended(test.last, test.reason)
			if _, err := w.broker.Get(t.Context(), name.Round(stream.Round(test.last+1))); err == nil {
				t.Errorf("%s: round %d stands", what, test.last+1)
			}
			_, before, _ := w.trace()
			w.reopen()
			again := w.config()
			again.Finish = NewFinisher()
			again.Finish.Finish(true)
			if err := w.new(again).Run(t.Context()); err != nil {
				t.Errorf("%s, again: %v", what, err)
			}
			if _, after, _ := w.trace(); !after.Equal(before) {
				t.Errorf("%s: finishing again changed the state", what)
			}
			if t.Failed() {
				t.Log(what)
			}
		})
	}
}

// TestFinishNow gives up a round that nobody answers, also when an earlier request would have waited for it; a
// stored batch is used all the same, and one that comes later is not.
func TestFinishNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 4)
		c := w.config()
		c.Finish = NewFinisher()
		patient := false
		c.Observer = announcing(func(r uint64) {
			if r == 1 {
				w.answer(t.Context(), 1)
				return
			}
			c.Finish.Finish(false)
			time.AfterFunc(time.Hour, func() { patient = true; c.Finish.Finish(true) })
		}, nil)
		if err := w.new(c).Run(t.Context()); err != nil || !patient {
			t.Fatalf("%v; an hour was waited: %v", err, patient)
		}
		w.ended(1, ReasonGivenUp)
		w.answer(t.Context(), 2) // the stage had claimed it
		w.reopen()
		if err := w.new(w.config()).Run(t.Context()); err != nil {
			t.Error(err)
		}
		w.ended(1, ReasonGivenUp)
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 4)
		c := w.config()
		c.Finish = NewFinisher()
		c.Observer = announcing(func(r uint64) { w.answer(t.Context(), r); c.Finish.Finish(true) }, nil)
		if err := w.new(c).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.ended(1, reasonFinished)
	})
}

// TestFinishBesideCrash: a commit of the end that is lost, and one whose process dies after it, leave a task that
// another request ends.
func TestFinishBesideCrash(t *testing.T) {
	for _, fault := range []storetest.Fault{storetest.FailBefore, storetest.FailAfter} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, newCast(t), 4)
			w.store.Fault = func(next state.Checkpoint) storetest.Fault {
				if next.Ended() {
					return fault
				}
				return storetest.NoFault
			}
			c := w.config()
			c.Finish = NewFinisher()
			c.Observer = announcing(func(r uint64) { c.Finish.Finish(true) }, nil)
			if err := w.new(c).Run(t.Context()); err == nil || w.standingEnd() != nil {
				t.Fatalf("fault %d: %v, and End %v", fault, err, w.standingEnd())
			}
			w.reopen()
			c = w.config()
			c.Finish = NewFinisher()
			c.Finish.Finish(true)
			if err := w.new(c).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.ended(0, ReasonGivenUp)
		})
	}
}

// TestOldCopyOfAFinishedTask: a folder from before the end is refused, and reaches the same bytes where that is
// accepted, whichever end it was.
func TestOldCopyOfAFinishedTask(t *testing.T) {
	for _, now := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, newCast(t), 4)
			type kept struct {
				next    state.Checkpoint
				entries []state.Entry
			}
			var commits []kept
			c := w.config()
			c.Store = keeping{w.store, func(n state.Checkpoint, e []state.Entry) {
				commits = append(commits,
					kept{n.Clone(), e})
			}}
			c.Finish = NewFinisher()
			c.Observer = announcing(func(r uint64) {
				if r < 3 {
					w.answer(t.Context(), r)
					return
				}
				c.Finish.Finish(now)
				if !now {
					w.answer(t.Context(), r)
				}
			}, nil)
			if err := w.new(c).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			for upTo := 1; upTo < len(commits); upTo++ {
				old := &world{t: t, cast: w.cast, rounds: w.rounds, budget: w.budget, broker: w.broker,
					store: storetest.NewMemory()}
				for _, k := range commits[:upTo] {
					if err := old.store.Commit(t.Context(), k.next, k.entries); err != nil {
						t.Fatal(err)
					}
				}
				old.refused(nil, ErrStateRolledBack, "the end of the task")
				old.reopen()
				old.accept = true
				if err := old.new(old.config()).Run(t.Context()); err != nil {
					t.Errorf("now %v, %d commits: %v", now, upTo, err)
				}
				same(t, old, w)
			}
		})
	}
}

type keeping struct {
	state.Store
	keep func(state.Checkpoint, []state.Entry)
}

func (k keeping) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry, kept ...state.Kept) error {
	err := k.Store.Commit(ctx, next, entries, kept...)
	if err == nil {
		k.keep(next, entries)
	}
	return err
}
