package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// losses counts what a learner was told to be lost.
type losses struct {
	subjects []string
}

func (l *losses) observer() Observer {
	return Observer{Lost: func(subject string) { l.subjects = append(l.subjects, subject) }}
}

// TestBrokerLosesRecords: while a learner waits for the batch of any round the broker loses streams, all of
// them or what was put last, with the connection or without. Within a minute or so the learner has put the same
// bytes again, and the task ends as if nothing had been; or, where a start would refuse, it ends with a start's
// error.
func TestBrokerLosesRecords(t *testing.T) {
	people := newCast(t)
	undisturbed := undisturbedWorld(t, people, 3, 2)
	outcomes := map[string]int{}
	for lostStreams, what := range map[string][]stream.Stream{
		"rounds": {stream.Rounds}, "attempts": {stream.Attempts}, "batches": {stream.Batches}, "all": {stream.Rounds,
			stream.Attempts, stream.Batches},
	} {
		for r := uint64(1); r <= 4; r++ {
			for _, empty := range []bool{true, false} {
				for _, apart := range []bool{true, false} {
					synctest.Test(t, func(t *testing.T) {
						rounds, batches := lostStreams == "rounds" || lostStreams == "all", lostStreams == "batches" ||
							lostStreams == "all"
						w := newWorld(t, people, 3)
						w.voids = map[uint64]bool{2: true}
						w.loses(r, what, empty, apart, r > 1 && (rounds && empty || batches), rounds || batches && r > 1, undisturbed,
							outcomes)
						if t.Failed() {
							t.Logf("%s are lost in round %d; all of it: %t; the connection too: %t", lostStreams, r, empty, apart)
						}
					})
				}
			}
		}
	}
	t.Log(outcomes)
	if outcomes["refused"] < 10 || outcomes["put again"] < 10 || outcomes["goes on"] < 10 {
		t.Errorf("%v: want some of each", outcomes)
	}
}

// loses plays one such loss in round r.
func (w *world) loses(r uint64, streams []stream.Stream, empty, apart, refused, told bool, undisturbed *world,
	outcomes map[string]int) {
	ctx, stop := context.WithCancel(w.t.(*testing.T).Context())
	defer stop()
	back := w.saves(streams)
	var log bytes.Buffer
	c, seen := w.config(), new(losses)
	c.Observer, c.Logger = seen.observer(), slog.New(slog.NewTextHandler(&log, nil))
	done := make(chan error, 1)
	go func() { done <- w.new(c).Run(ctx) }()
	identity := w.sign(w.stage, &wire.StageIdentity{Version: stream.Version, Task: string(name), Key: w.stage.Public()})
	w.put(ctx, name.Stage(), identity)
	for k := uint64(1); k < r; k++ {
		w.announced(ctx, k)
		if !empty {
			back = w.saves(streams)
		}
		w.answer(ctx, k)
	}
	w.announced(ctx, r)
	time.Sleep(3 * time.Second)
	if apart {
		w.broker.Disconnect()
		time.Sleep(time.Second)
	}
	for _, restore := range back {
		restore()
	}
	if apart {
		w.broker.Connect()
	}
	since, within := time.Now(), lookEvery+2*patience+5*time.Second
	if apart {
		within -= lookEvery
	}
	if refused {
		err := <-done
		if took := time.Since(since); took > within {
			w.t.Errorf("refused after %v, want within %v", took, within)
		}
		w.reopen()
		again := w.new(w.config()).Run(ctx)
		if !errors.Is(err, ErrBrokerRolledBack) || !errors.Is(again, ErrBrokerRolledBack) {
			w.t.Errorf("ends with %v, and a restart with %v: want %v of both", err, again, ErrBrokerRolledBack)
			return
		}
		if _, sentence, _ := strings.Cut(again.Error(), "task churn: "); !strings.Contains(err.Error(), sentence) {
			w.t.Errorf("ends with %v, a restart says %s", err, sentence)
		}
		outcomes["refused"]++
	} else {
		time.Sleep(within)
		w.put(ctx, name.Stage(), identity)
		for k := r; k <= 4; k++ {
			w.answer(ctx, k)
		}
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
		same(w.t, w, undisturbed)
		if told {
			outcomes["put again"]++
		} else {
			outcomes["goes on"]++
		}
	}
	if (len(seen.subjects) > 0) != told || told != strings.Contains(log.String(), "has lost a record") {
		w.t.Errorf("told of %v, want some: %t; log:\n%s", seen.subjects, told, &log)
	}
}

func (w *world) saves(streams []stream.Stream) (back []func()) {
	for _, s := range streams {
		back = append(back, w.broker.Save(name, s))
	}
	return back
}

// TestLaggingReplicaLosesNothing: reads that find nothing, for less long than a start is patient and then again, are no
// loss.
func TestLaggingReplicaLosesNothing(t *testing.T) {
	people := newCast(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, people, 1)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		c, seen := w.config(), new(losses)
		c.Observer = seen.observer()
		done := make(chan error, 1)
		go func() { done <- w.new(c).Run(ctx) }()
		w.announced(ctx, 1)
		begun := time.Now()
		w.broker.Inject(func(op memory.Op, _ string) memory.Fault {
			if since := time.Since(begun); op == memory.Get && since%(patience+lookEvery) < patience-2*time.Second {
				return memory.Lag
			}
			return memory.None
		})
		time.Sleep(5 * time.Minute)
		w.broker.Inject(nil)
		if len(seen.subjects) > 0 {
			t.Errorf("told of %v", seen.subjects)
		}
		w.answer(ctx, 1)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestQuietWait: a learner that waits for a day reads its own records no more often than its timer fires.
func TestQuietWait(t *testing.T) {
	people := newCast(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, people, 1)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.new(w.config()).Run(ctx) }()
		w.announced(ctx, 1)
		reads := 0
		w.broker.Inject(func(op memory.Op, subject string) memory.Fault {
			if op == memory.Get && subject == name.Task() {
				reads++
			}
			return memory.None
		})
		time.Sleep(24 * time.Hour)
		w.broker.Inject(nil)
		stop()
		<-done
		if most := int(24*time.Hour/lookEvery) + 2; reads < most/2 || reads > most {
			t.Errorf("%d looks in a day, want about %d", reads, most)
		}
	})
}

// TestVoidRoundsWait: a broken stage that makes every round void gets ever fewer cohorts. The wait grows from the third
// round on, is the same after a restart, and is over with the first round that is applied; a request to end the task
// ends it too.
func TestVoidRoundsWait(t *testing.T) {
	people := newCast(t)
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, people, 3)
			w.endless = true
			w.voids = map[uint64]bool{}
			for r := uint64(1); r <= 20; r++ {
				w.voids[r] = true
			}
			var announced []time.Time
			var log bytes.Buffer
			var progress Progress
			finish := NewFinisher()
			w.play(func(ctx context.Context) {
				for len(announced) < 23 && !t.Failed() {
					life, stop := context.WithCancel(ctx)
					c := w.config()
					c.Finish, c.Logger = finish, slog.New(slog.NewTextHandler(&log, nil))
					c.Observer = announcing(func(r uint64) {
						if r == uint64(len(announced))+1 {
							announced = append(announced, time.Now())
						}
					}, func(r uint64) {
						if restarts || len(announced) == 23 {
							stop()
						}
					})
					if err := w.new(c).Run(life); !errors.Is(err, context.Canceled) {
						t.Errorf("Run: %v", err)
					}
					stop()
					w.reopen()
				}
				_, at, _ := w.trace()
				progress.VoidsInARow = at.Ledger.InARow
			})
			if t.Failed() {
				return
			}
			for i := 1; i < len(announced); i++ {
				voids := uint64(i) // before round i+1
				if voids > 20 {
					voids = 0
				}
				want := min(pauseAfter(voids), maxVoidPause)
				if took := announced[i].Sub(announced[i-1]); took < want || took > want+10*time.Second {
					t.Errorf("restarts %t: after %d void rounds the next is announced after %v, want %v", restarts, voids, took, want)
				}
			}
			day := 0
			for _, at := range announced {
				if at.Sub(announced[0]) < 2*time.Hour {
					day++
				}
			}
			if day > 10 || progress.VoidsInARow != 0 {
				t.Errorf("%d cohorts were asked in two hours, %d void rounds in a row at the end", day, progress.VoidsInARow)
			}
			errors := 20 - CalmVoids
			if restarts {
				errors *= 2 // by the life that ends at the commit, and by the next
			}
			if n := strings.Count(log.String(), "level=ERROR"); n != errors {
				t.Errorf("restarts %t: %d errors are logged, want %d", restarts, n, errors)
			}
		})
	}
}

// TestLostRoundsDoNotWait: rounds that are void because the broker lost them, and asked nobody, make no pause, also
// across restarts; a void round among them that asked a cohort counts as ever.
func TestLostRoundsDoNotWait(t *testing.T) {
	people := newCast(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, people, 3)
		w.endless, w.voids, w.lostRounds = true, map[uint64]bool{}, map[uint64]bool{}
		for r := uint64(1); r <= 25; r++ {
			w.voids[r], w.lostRounds[r] = true, r != 10 && r != 20
		}
		var announced []time.Time
		w.play(func(ctx context.Context) {
			for len(announced) < 28 && !t.Failed() {
				life, stop := context.WithCancel(ctx)
				c := w.config()
				c.Observer = announcing(func(r uint64) {
					if r == uint64(len(announced))+1 {
						announced = append(announced, time.Now())
					}
				}, func(r uint64) {
					if r%5 == 0 || len(announced) == 28 {
						stop()
					}
				})
				if err := w.new(c).Run(life); !errors.Is(err, context.Canceled) {
					t.Errorf("Run: %v", err)
				}
				stop()
				w.reopen()
			}
		})
		if len(announced) == 28 {
			if took := announced[26].Sub(announced[0]); took > 10*time.Minute {
				t.Errorf("25 rounds that the broker lost took %v", took)
			}
		}
	})
}

// TestVoidPausesByHand checks the waits after each number of void rounds in a row.
func TestVoidPausesByHand(t *testing.T) {
	var got []string
	for n := range uint64(12) {
		got = append(got, fmt.Sprint(min(pauseAfter(n), maxVoidPause)))
	}
	if want := "0s 0s 0s 1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h0m0s 1h0m0s 1h0m0s"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
	if pauseAfter(1<<63) <= 0 {
		t.Error("the wait overflows")
	}
}

// TestFinishDuringVoidPause: a task that is asked to end while it waits after void rounds ends at once, and the
// round is not announced.
func TestFinishDuringVoidPause(t *testing.T) {
	people := newCast(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, people, 3)
		w.voids = map[uint64]bool{1: true, 2: true, 3: true}
		finish := NewFinisher()
		w.play(func(ctx context.Context) {
			c := w.config()
			c.Finish = finish
			done := make(chan error, 1)
			go func() { done <- w.new(c).Run(ctx) }()
			w.get(ctx, name.Batch(3))
			time.Sleep(30 * time.Second)
			begun := time.Now()
			finish.Finish(false)
			if err := <-done; err != nil || time.Since(begun) > 5*time.Second {
				t.Errorf("ended after %v, %v", time.Since(begun), err)
			}
		})
		w.ended(3, ReasonGivenUp)
	})
}

// TestOthersRecordsWhileItWaits: while a learner waits, the broker loses its Task or Round, and holds another
// learner's instead. The learner ends.
func TestOthersRecordsWhileItWaits(t *testing.T) {
	h := recorded(t, newCast(t))
	for _, subject := range []string{name.Task(), name.Round(3)} {
		synctest.Test(t, func(t *testing.T) {
			w := h.at(t, 2, until(3, false))
			done := make(chan error, 1)
			go func() { done <- w.new(w.config()).Run(t.Context()) }()
			time.Sleep(time.Second)
			if !w.broker.Lose(subject) {
				t.Fatalf("%s does not stand", subject)
			}
			w.put(t.Context(), subject, []byte("another's"))
			time.Sleep(time.Minute)
			select {
			case err := <-done:
				if !errors.Is(err, ErrOtherLearner) {
					t.Errorf("%s: %v", subject, err)
				}
			default:
				t.Errorf("%s is another's, and the learner waits", subject)
			}
		})
	}
}
