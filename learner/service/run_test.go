package service

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

func isOther(err error) bool { return errors.Is(err, ErrOtherLearner) }

// A witness observes.
type witness struct {
	resumed   []Progress
	announced []uint64
	applied   []Applied
	stop      func()
	after     int // rounds until stop
}

func (o *witness) observer() Observer {
	return Observer{Resumed: func(p Progress) { o.resumed = append(o.resumed, p) },
		Announced: func(r, _ uint64) { o.announced = append(o.announced, r) }, Applied: o.add}
}

func (o *witness) add(a Applied) {
	o.applied = append(o.applied, a)
	if len(o.applied) == o.after {
		o.stop()
	}
}

// TestResumeEqualsUninterrupted: k rounds, a restart and m rounds give the bytes of k+m rounds, for every k.
func TestResumeEqualsUninterrupted(t *testing.T) {
	people := newCast(t)
	whole := undisturbedWorld(t, people, 4)
	for k := 1; k < 4; k++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, people, 4)
			w.play(func(ctx context.Context) {
				part, stop := context.WithCancel(ctx)
				first := &witness{stop: stop, after: k}
				c := w.config()
				c.Observer = first.observer()
				if err := w.new(c).Run(part); !errors.Is(err, context.Canceled) {
					t.Errorf("stopped after %d rounds: %v", k, err)
				}
				w.reopen()
				c, second := w.config(), &witness{}
				c.Observer = second.observer()
				if err := w.new(c).Run(ctx); err != nil {
					t.Error(err)
				}
				if r := second.resumed[0].Round; r != uint64(k) || len(second.applied) != 4-k {
					t.Errorf("resumed at round %d and applied %d, want %d and %d", r, len(second.applied), k, 4-k)
				}
			})
			same(t, w, whole)
		})
	}
}

// TestWhatIsObserved: every batch once, with its own figures.
func TestWhatIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 3)
		w.voids = map[uint64]bool{2: true}
		seen := &witness{}
		w.play(func(ctx context.Context) {
			c := w.config()
			c.Observer = seen.observer()
			if err := w.new(c).Run(ctx); err != nil {
				t.Error(err)
			}
		})
		if !slices.Equal(seen.announced, []uint64{1, 2, 3, 4}) || len(seen.applied) != 4 {
			t.Fatalf("announced %v, applied %d", seen.announced, len(seen.applied))
		}
		var users uint64
		for i, a := range seen.applied {
			r := uint64(i + 1)
			want := Applied{Attempt: 1, Cohort: cohort, BatchUsers: cohort - r%3, Rejects: map[string]uint64{"duplicate": r}}
			if r == 2 {
				want = Applied{Attempt: 2, Cohort: cohort, Void: true, Rejects: map[string]uint64{}}
			}
			if r == 4 {
				want.Cohort, want.BatchUsers = cohort+left, cohort+left-1
			}
			users += want.BatchUsers
			if a.Round != r || a.Attempt != want.Attempt || a.Cohort != want.Cohort || a.BatchUsers != want.BatchUsers ||
				a.Void != want.Void || !maps.Equal(a.Rejects, want.Rejects) || a.Users != users || a.Rounds != 3 {
				t.Errorf("round %d: %+v, want like %+v", r, a, want)
			}
			if steps := r - min(1, r/2); a.Steps != steps {
				t.Errorf("round %d: %d steps, want %d", r, a.Steps, steps)
			}
			if a.Took <= 0 || a.Took > time.Minute || (a.NoiseStd > 0) == a.Void || (a.GradientNorm > 0) == a.Void {
				t.Errorf("round %d: took %v, noise %v, gradient %v", r, a.Took, a.NoiseStd, a.GradientNorm)
			}
			if a.EpsilonSpent != w.budget || a.EpsilonBudget != w.budget || a.Delta != delta {
				t.Errorf("round %d: spent %v of %v at %v", r, a.EpsilonSpent, a.EpsilonBudget, a.Delta)
			}
		}
	})
}

// TestVoidRound: it is charged as reserved, the model stays, and the same point is asked under the next number.
func TestVoidRound(t *testing.T) {
	w := undisturbedWorld(t, newCast(t), 2, 1, 3)
	public, at, ledger := w.trace()
	rounds := make([]*wire.Round, 5)
	for r := uint64(1); r <= 4; r++ {
		rounds[r] = &wire.Round{}
		if _, err := seal.Verify(public[name.Round(stream.Round(r))], w.learner.Public(), rounds[r]); err != nil {
			t.Fatal(err)
		}
	}
	for _, again := range []int{2, 4} {
		a, b := rounds[again-1], rounds[again]
		if !slices.Equal(a.Point, b.Point) || a.Step != b.Step || b.Round != a.Round+1 {
			t.Errorf("after void round %d another question is asked", again-1)
		}
	}
	if rounds[3].Step != 2 || slices.Equal(rounds[2].Point, rounds[3].Point) {
		t.Error("the real batch of round 2 moved nothing")
	}
	kinds := []state.EntryKind{}
	for _, e := range ledger {
		kinds = append(kinds, e.Kind)
		if e.Kind == state.Void && (e.Epsilon != epsilonOf(t, w.place(rounds[e.Round]).Cohort) || e.Attempt != 2) {
			t.Errorf("void round %d: %+v", e.Round, e)
		}
	}
	v, s, r := state.Void, state.Spent, state.Reserved
	if !slices.Equal(kinds, []state.EntryKind{r, v, r, s, r, v, r, s}) {
		t.Errorf("ledger: %v", kinds)
	}
	if at.Cursor.Round != 4 || !at.Ended() {
		t.Errorf("committed round %d, ended %t", at.Cursor.Round, at.Ended())
	}
}

// TestStoreFailure: when the disk breaks between commits, the learner stops at once.
func TestStoreFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 2)
		broken := breakable{Memory: w.store, failed: make(chan struct{})}
		c := w.config()
		c.Store = broken
		done := make(chan error, 1)
		go func() { done <- w.new(c).Run(t.Context()) }()
		w.announced(t.Context(), 1)
		close(broken.failed)
		if err := <-done; !errors.Is(err, state.ErrFailed) {
			t.Errorf("Run: %v, want ErrFailed", err)
		}
	})
}

type breakable struct {
	*storetest.Memory
	failed chan struct{}
}

func (b breakable) Failed() <-chan struct{} { return b.failed }

// TestStopsWithItsContext wherever it waits: for the stage, for the broker, for a batch.
func TestStopsWithItsContext(t *testing.T) {
	for what, set := range map[string]func(*world, *Config){
		"stage":  func(_ *world, c *Config) { c.StageKey = nil },
		"broker": func(w *world, _ *Config) { w.broker.Disconnect() },
		"batch":  func(*world, *Config) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, newCast(t), 1)
			c := w.config()
			set(w, &c)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- w.new(c).Run(ctx) }()
			time.Sleep(time.Hour)
			stop()
			begun := time.Now()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("waiting for the %s: %v", what, err)
			}
			if took := time.Since(begun); took > 0 {
				t.Errorf("waiting for the %s: it took %v to stop", what, took)
			}
		})
	}
}

// TestBrokerComesBack: an outage of any length is waited out, also one at the start.
func TestBrokerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 2)
		w.broker.Disconnect()
		time.AfterFunc(24*time.Hour, w.broker.Connect)
		w.run()
		if _, at, _ := w.trace(); !at.Ended() {
			t.Error("the task did not end")
		}
	})
}

// TestTooLargeForTheBroker: what the broker will never take is an error and not a wait.
func TestTooLargeForTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newCast(t), 2)
		var err error
		if w.broker, err = memory.New(memory.Config{MaxPayload: 100}); err != nil {
			t.Fatal(err)
		}
		if err := w.new(w.config()).Run(t.Context()); !errors.Is(err, stream.ErrRefused) ||
			!strings.Contains(err.Error(), "100") {
			t.Errorf("Run: %v, want ErrRefused with the limit", err)
		}
	})
}

// TestNewRefuses a configuration with something missing, and names all of it.
func TestNewRefuses(t *testing.T) {
	_, err := New(Config{Task: "NOT a name", StageKey: make([]byte, 3), Poll: -1})
	if err == nil {
		t.Fatal("an empty configuration is taken")
	}
	for _, field := range []string{"task name", "Records", "Store", "Identity", "Prepare", "StageKey has 3 bytes",
		"Poll"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}
